//! Writes an error with its causes on one line.

use std::error::Error;

/// The error and its causes, joined by `: `. A cause that the text before it already repeats is left out, because some
/// libraries print their source inside their own message.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("connecting: {0}")]
    struct Repeats(#[source] std::io::Error);

    #[test]
    fn a_cause_that_is_already_part_of_the_text_is_not_repeated() {
        let repeats = Repeats(std::io::Error::other("refused"));
        assert_eq!(chain(&repeats), "connecting: refused");
    }

    #[test]
    fn every_cause_is_named_once_from_the_outside_in() {
        let error =
            Err::<(), _>(anyhow!("refused")).context("connecting").context("starting").unwrap_err();
        assert_eq!(chain(error.as_ref()), "starting: connecting: refused");
    }
}
