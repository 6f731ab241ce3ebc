//! Runs of agents without a model: journeys, codes, and whatever chance brings.

#[cfg(test)]
mod codes;
mod conversations;
#[cfg(test)]
mod journeys;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod random;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
