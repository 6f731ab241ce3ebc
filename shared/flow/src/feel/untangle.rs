//! Keeps the reading of long expressions fast.
//!
//! FEEL names may hold spaces and operators, so the library takes everything from a name to the next bracket, comma or
//! comparison for a candidate and tries all its beginnings: cubic in the number of words, seconds for one kilobyte of
//! `a + b + c`. Where such a run is long, names that stand between operators are put into parentheses, which mean
//! nothing and end the run.

use std::borrow::Cow;

use super::names::{is_word, may_be_name};

/// Words and operators in a row that are still quick to read.
const RUN_QUICK: usize = 12;
/// Words and operators in a row that are read at all.
pub(super) const RUN_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    /// A character that may be part of a name without being of a word.
    Operator,
    /// Anything that ends a name.
    Other,
}

struct Token<'t> {
    text: &'t str,
    start: usize,
    kind: Kind,
}

/// The same expression with short runs, or nothing when it cannot be had.
pub(super) fn untangle(text: &str) -> Option<Cow<'_, str>> {
    let tokens = tokens(text);
    if longest_run(&tokens) <= RUN_QUICK {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() + 2 * tokens.len());
    let mut copied = 0;
    for (position, token) in tokens.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| &tokens[before]);
        if stands_alone(before, token, tokens.get(position + 1)) {
            out.push_str(&text[copied..token.start]);
            out.push('(');
            out.push_str(token.text);
            out.push(')');
            copied = token.start + token.text.len();
        }
    }
    out.push_str(&text[copied..]);
    (longest_run(&self::tokens(&out)) <= RUN_MAX).then_some(Cow::Owned(out))
}

/// Whether a token is a name of its own, by what is around it.
fn stands_alone(before: Option<&Token<'_>>, token: &Token<'_>, after: Option<&Token<'_>>) -> bool {
    let opens = before.is_some_and(|before| match before.kind {
        Kind::Operator => before.text != "." && before.text != "'",
        Kind::Word => {
            matches!(before.text, "and" | "or" | "if" | "then" | "else" | "return" | "satisfies")
        }
        Kind::Other => false,
    });
    let closes = after.is_none_or(|after| match after.kind {
        Kind::Operator => after.text != "'",
        Kind::Word => matches!(after.text, "and" | "or" | "then" | "else"),
        Kind::Other => matches!(after.text, ")" | "]" | "}" | "," | "=" | "<" | ">" | "!" | "["),
    });
    opens && closes && token.kind == Kind::Word && may_be_name(token.text)
}

/// Longest run of words and operators, from its first name on; what is before it is read by itself.
fn longest_run(tokens: &[Token<'_>]) -> usize {
    let runs = tokens.split(|token| token.kind == Kind::Other).map(|run| {
        let name = run.iter().position(|token| token.kind == Kind::Word && may_be_name(token.text));
        name.map_or(0, |name| run.len() - name)
    });
    runs.max().unwrap_or_default()
}

/// Words, single characters and whole string literals; white space is between them.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let start = text.len() - rest.len();
        let length = match first {
            '"' => literal_length(rest),
            first if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let kind = match first {
            '.' | '/' | '-' | '\'' | '+' | '*' => Kind::Operator,
            first if is_word(first) => Kind::Word,
            _ => Kind::Other,
        };
        let (token, tail) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(Token { text: token, start, kind });
        }
        rest = tail;
    }
    tokens
}

/// Length of the string literal at the beginning of `text`, up to the end of the text when it is not closed.
fn literal_length(text: &str) -> usize {
    let mut escaped = true;
    for (position, c) in text.char_indices() {
        match c {
            '"' if !escaped => return position + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::untangle;

    fn long(part: &str) -> String {
        format!("{part} + {}", vec!["z"; 20].join(" + "))
    }

    #[test]
    fn short_expressions_stay_as_they_are() {
        for text in ["a + b", "a.b - \"c + d\"", ""] {
            assert_eq!(untangle(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn names_between_operators_are_put_into_parentheses() {
        for (part, expected) in [
            ("a + b", "a + (b)"),
            ("a + b.c.d", "a + (b).c.d"),
            ("a and b or c", "a and (b) or (c)"),
            ("1 + \"a + \\\" b\" + c", "1 + \"a + \\\" b\" + (c)"),
            ("x + string length(y)", "x + string length(y)"),
            ("x + date and time(y)", "x + date and time(y)"),
            ("x + years and months duration(y, z)", "x + years and months duration(y, z)"),
            ("1 - 1.5e-3 + 2", "1 - 1.5e-3 + 2"),
            ("if a then b else c", "if (a) then (b) else (c)"),
            ("{k: v - w}", "{k: v - (w)}"),
        ] {
            let text = long(part);
            let out = untangle(&text).expect("it can be read");
            assert!(out.starts_with(&format!("{expected} + (z) + ")), "{part}: {out}");
        }
    }

    #[test]
    fn what_stays_long_is_not_read() {
        assert!(untangle(&"a ".repeat(200)).is_none());
        assert!(untangle(&format!("a{}", " + 1".repeat(200))).is_none());
        assert!(untangle(&format!("1{}", " + 1".repeat(200))).is_some());
    }
}
