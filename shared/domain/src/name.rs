//! Names that callers choose, each with its grammar, checked once where they enter.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a name: a phrase that completes "`field` …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(&'static str);

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident: $rule:literal, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Box<str>);

        impl $type {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let check: fn(&[u8]) -> bool = $check;
                if check(text.as_bytes()) { Ok(Self(text.into())) } else { Err(NameError($rule)) }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

names! {
    /// Names a workspace, project, Process, agent or person: 1 to 64 letters, digits, `_` or `-`.
    Name: "must be 1 to 64 characters out of letters, digits, `_` and `-`",
        |text| (1..=64).contains(&text.len()) && text.iter().copied().all(is_word);

    /// Names a background job of a project: a letter, then letters, digits and `_`, at most 100.
    JobKey: "must start with a letter and have at most 100 letters, digits and `_`",
        |text| (1..=100).contains(&text.len())
            && text.first().is_some_and(u8::is_ascii_alphabetic)
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');

    /// What a caller sends so that two starts become one run: 1 to 128 characters.
    IdempotencyKey: "must be 1 to 128 characters out of letters, digits, `.`, `_`, `:` and `-`, starting with a letter or digit",
        |text| (1..=128).contains(&text.len())
            && text.first().is_some_and(u8::is_ascii_alphanumeric)
            && text.iter().all(|byte| is_word(*byte) || *byte == b'.' || *byte == b':');

    /// The unique id of a message: chosen by the client for requests, derived for everything else.
    MessageId: "must be 1 to 128 printable ASCII characters without spaces",
        |text| (1..=128).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grammar_takes_its_longest_name_and_refuses_one_more() {
        for (longest, ok) in [(64, true), (65, false), (0, false)] {
            assert_eq!("a".repeat(longest).parse::<Name>().is_ok(), ok, "{longest}");
        }
        for (longest, ok) in [(100, true), (101, false), (0, false)] {
            assert_eq!("a".repeat(longest).parse::<JobKey>().is_ok(), ok, "{longest}");
        }
        for (longest, ok) in [(128, true), (129, false), (0, false)] {
            assert_eq!("a".repeat(longest).parse::<IdempotencyKey>().is_ok(), ok, "{longest}");
            assert_eq!("a".repeat(longest).parse::<MessageId>().is_ok(), ok, "{longest}");
        }
    }

    #[test]
    fn characters_outside_a_grammar_are_refused() {
        for bad in ["a b", "a.b", "é", "a/b", "a\n"] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
        for bad in ["1a", "_a", "a-b", "ä"] {
            assert!(bad.parse::<JobKey>().is_err(), "{bad:?}");
        }
        for bad in [".a", "-a", "a b", "a/b", "ä"] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad:?}");
        }
        for bad in ["a b", "ä", "a\t"] {
            assert!(bad.parse::<MessageId>().is_err(), "{bad:?}");
        }
    }
}
