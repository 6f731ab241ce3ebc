//! What an answer costs. Pure.
//!
//! Prices are whole credits for a million tokens, so the cost of an answer is a whole number of millionths of a credit, and no
//! rounding happens until something is charged. Kept tokens cost what others do: the table has one price for reading.

use std::collections::BTreeMap;

use runfleet_catalog::Price;

use crate::turn::Usage;

/// Millionths in one credit.
const PER_CREDIT: u64 = 1_000_000;

/// A cost, exact. Adding never overflows: beyond the largest it stays there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Millionths of a credit.
    pub millionths: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { millionths: self.millionths.saturating_add(other.millionths) }
    }

    /// Whole credits, rounded up: a part of a credit is charged as one.
    pub fn credits(self) -> u64 {
        self.millionths.div_ceil(PER_CREDIT)
    }

    /// What is to be charged when `self` was charged and `more` is added. However a run's cost is divided, its charges add up to
    /// the credits of the whole: a run is rounded up once, not each of its answers.
    pub fn charge(self, more: Self) -> u64 {
        self.plus(more).credits() - self.credits()
    }
}

/// What `usage` of `model` costs; none when the model has no price.
pub fn cost(prices: &BTreeMap<String, Price>, model: &str, usage: &Usage) -> Option<Cost> {
    let price = prices.get(model)?;
    let input = usage.input_tokens.saturating_mul(price.input_per_million.into());
    let output = usage.output_tokens.saturating_mul(price.output_per_million.into());
    Some(Cost { millionths: input.saturating_add(output) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> BTreeMap<String, Price> {
        let price = Price { input_per_million: 3, output_per_million: 15 };
        [("m".to_owned(), price)].into()
    }

    fn of(input_tokens: u64, output_tokens: u64) -> Cost {
        let usage = Usage { input_tokens, output_tokens, cached_tokens: input_tokens };
        cost(&prices(), "m", &usage).unwrap()
    }

    #[test]
    fn a_cost_is_exact_and_its_credits_are_rounded_up() {
        assert_eq!(of(1_000_000, 1_000_000).credits(), 18);
        assert_eq!(of(1, 0), Cost { millionths: 3 });
        assert_eq!(of(1, 0).credits(), 1);
        assert_eq!(of(0, 0).credits(), 0);
        assert_eq!(of(1_000_000, 1).credits(), 4);
        assert_eq!(of(u64::MAX, u64::MAX).millionths, u64::MAX);
        assert_eq!(cost(&prices(), "other", &Usage::default()), None);
    }

    #[test]
    fn charges_add_up_to_the_credits_of_the_whole_however_it_is_divided() {
        for part in [1, 7, 999, 70_001, 333_333] {
            let (mut so_far, mut charged) = (Cost::default(), 0);
            for _ in 0..100 {
                charged += so_far.charge(of(part, part));
                so_far = so_far.plus(of(part, part));
            }
            assert_eq!(charged, of(part * 100, part * 100).credits(), "{part}");
        }
    }
}
