//! FEEL expressions: compiled once when a definition is read, evaluated without touching anything but their scope.
//!
//! The library underneath trusts its expressions; this module does not. Before an expression is prepared,
//! `check` refuses what would leave the process (external functions), read the clock, recurse, or mean something else
//! than its author thinks (unknown names), and `guard` puts counters around everything that can repeat or grow.

mod check;
mod expression;
mod guard;
mod meter;
mod names;
mod pattern;
mod quick;
mod tree;
mod untangle;

pub(crate) use expression::{EvaluationError, Expression};
pub(crate) use meter::TYPE_STEPS;
pub(crate) use names::{Names, problem_of as variable_name_problem};

#[cfg(test)]
mod tests;
