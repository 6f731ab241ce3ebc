//! Names in expressions.
//!
//! FEEL names may hold spaces and operators, so `price*qty` is one name unless `price` is known when the text is read.
//! Item properties in a filter never are, and the library then silently finds nothing. Here names are single words: the
//! reader is told every word of the expression, and only names of built-in functions may have several.

use std::collections::BTreeSet;
use std::str::FromStr;

use dsntk_feel::bif::Bif;
use dsntk_feel::context::FeelContext;
use dsntk_feel::{FeelScope, Name};

use crate::limits::VARIABLE_NAME_BYTES_MAX;

/// The variables that an expression may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Names that are sure to exist.
    pub known: BTreeSet<String>,
    /// Whether there may be others, as where variables come from outside: a name that nobody has set is null then.
    pub open: bool,
}

impl Names {
    /// The same names and some that only one place has, such as the answer that its expression is about.
    pub(crate) fn with(&self, more: &[&str]) -> Self {
        let more = more.iter().map(|name| (*name).to_owned());
        Self { known: self.known.iter().cloned().chain(more).collect(), open: self.open }
    }

    /// Whether `name` can be a variable here.
    pub(super) fn allow(&self, name: &str) -> bool {
        self.known.contains(name) || (self.open && problem_of(name).is_none())
    }
}

/// Words with a meaning in the grammar; telling them as names would hide that meaning.
const WORDS: [&str; 33] = [
    "Any",
    "Null",
    "and",
    "between",
    "boolean",
    "context",
    "date",
    "days",
    "else",
    "every",
    "external",
    "false",
    "for",
    "function",
    "if",
    "in",
    "instance",
    "item",
    "list",
    "not",
    "null",
    "number",
    "of",
    "or",
    "partial",
    "range",
    "return",
    "satisfies",
    "some",
    "string",
    "then",
    "time",
    "true",
];

/// Built-in functions of several words, without the temporal ones, which the grammar knows by itself.
const FUNCTIONS: [&str; 38] = [
    "context merge",
    "context put",
    "day of week",
    "day of year",
    "distinct values",
    "ends with",
    "finished by",
    "get entries",
    "get value",
    "index of",
    "insert before",
    "list contains",
    "list replace",
    "lower case",
    "met by",
    "month of year",
    "overlaps after",
    "overlaps before",
    "round down",
    "round half down",
    "round half up",
    "round up",
    "started by",
    "starts with",
    "string join",
    "string length",
    "substring after",
    "substring before",
    "upper case",
    "week of year",
    // Properties of temporal values and ranges.
    "time offset",
    "start included",
    "end included",
    // Named parameters.
    "decimal separator",
    "grouping separator",
    "start position",
    "new item",
    "years and months duration",
];

/// Why `name` cannot be the name of a variable.
pub(crate) fn problem_of(name: &str) -> Option<String> {
    let mut chars = name.chars();
    let starts_well = chars.next().is_some_and(|first| first.is_alphabetic() || first == '_');
    if !starts_well || !chars.all(is_word) || name.len() > VARIABLE_NAME_BYTES_MAX {
        return Some(format!(
            "a variable name is one word of letters, digits and `_` that begins with no digit, of at most \
             {VARIABLE_NAME_BYTES_MAX} bytes"
        ));
    }
    if WORDS.contains(&name) || name == "years" || Bif::from_str(name).is_ok() {
        return Some(format!(
            "`{name}` has a meaning in expressions and cannot be the name of a variable"
        ));
    }
    None
}

/// Scope for reading `text`: its own words, and the functions of several words that it calls.
pub(super) fn reading_scope(text: &str) -> FeelScope {
    let mut context = FeelContext::default();
    for name in FUNCTIONS.into_iter().filter(|name| text.contains(name)).chain(words(text)) {
        context.set_null(Name::from(name));
    }
    FeelScope::from(context)
}

/// The words outside string literals that may be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |c: char| {
        if quoted {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            quoted = !closes;
            return true;
        }
        quoted = c == '"';
        escaped = false;
        !is_word(c)
    })
    .filter(|word| !WORDS.contains(word) && may_be_name(word))
}

/// Whether a word of an expression may be a name and is no part of the grammar.
pub(super) fn may_be_name(word: &str) -> bool {
    let grammar = WORDS.contains(&word) && !matches!(word, "item" | "partial");
    word.starts_with(|first: char| !first.is_numeric()) && !grammar && word != "years"
}

/// Whether a character belongs to a word.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a name as read is one word.
pub(super) fn is_single(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_word)
}

#[cfg(test)]
mod tests {
    use super::{problem_of, words};

    #[test]
    fn words_of_a_text_leave_out_its_strings() {
        let found: Vec<_> = words(r#"if a_1+b > 2 then "c \" d" else x.y*z"#).collect();
        assert_eq!(found, ["a_1", "b", "x", "y", "z"]);
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for bad in ["", "1a", "a b", "a-b", "if", "sum", "now", "item", "date", "true", "years"] {
            assert!(problem_of(bad).is_some(), "{bad}");
        }
        for good in ["amount", "_x", "customerTier", "giá", "value2"] {
            assert!(problem_of(good).is_none(), "{good}");
        }
    }
}
