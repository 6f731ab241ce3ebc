//! What an answer costs. Pure.
//!
//! Prices are whole credits for a million tokens, so the cost of an answer is a whole number of millionths of a credit, and
//! nothing is ever rounded.

use std::collections::BTreeMap;

use runfleet_catalog::Price;

use crate::turn::Usage;

/// What `usage` of `model` costs, in millionths of a credit, at most `u64::MAX`; none when the model has no price. Kept tokens
/// cost what others do, unless the price says otherwise.
pub fn cost(prices: &BTreeMap<String, Price>, model: &str, usage: &Usage) -> Option<u64> {
    let price = prices.get(model)?;
    let kept = usage.cached_tokens.min(usage.input_tokens);
    let of = |tokens: u64, price: u32| tokens.saturating_mul(price.into());
    let parts = [
        of(usage.input_tokens - kept, price.input_per_million),
        of(kept, price.cached_per_million.unwrap_or(price.input_per_million)),
        of(usage.output_tokens, price.output_per_million),
    ];
    Some(parts.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cached_per_million: Option<u32>, input: u64, output: u64, cached: u64) -> u64 {
        let price = Price { input_per_million: 3, output_per_million: 15, cached_per_million };
        let prices = [("m".to_owned(), price)].into();
        let usage = Usage { input_tokens: input, output_tokens: output, cached_tokens: cached };
        assert_eq!(cost(&prices, "other", &usage), None);
        cost(&prices, "m", &usage).unwrap()
    }

    #[test]
    fn a_cost_is_exact_in_millionths_of_a_credit() {
        assert_eq!(of(None, 1_000_000, 1_000_000, 0), 18_000_000);
        assert_eq!(of(None, 1, 0, 0), 3);
        assert_eq!(of(None, 0, 0, 0), 0);
        assert_eq!(of(None, u64::MAX, u64::MAX, 0), u64::MAX);
    }

    #[test]
    fn kept_tokens_cost_what_the_price_says_and_otherwise_what_others_do() {
        assert_eq!(of(None, 10, 0, 4), 30);
        assert_eq!(of(Some(1), 10, 0, 4), 22);
        assert_eq!(of(Some(0), 10, 0, 10), 0);
        // A provider that counts them beside what was read gets no more than was read.
        assert_eq!(of(Some(1), 10, 0, 50), 10);
    }
}
