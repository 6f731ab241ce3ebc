//! Runs of agents without a model: journeys, codes, and whatever chance brings.

mod codes;
mod journeys;
mod limits;
mod random;
mod support;
mod tools;
