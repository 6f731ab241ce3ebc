//! How much a regular expression costs, judged by its text before it is translated.
//!
//! The engine underneath never goes back in the text, but it takes memory and time for every state of the pattern, and
//! counted repetitions multiply states: `(\w{100}){100}` is 14 bytes long and millions of states.

/// States that one class of characters takes, roughly; `\w` has this many, `[01]` far fewer.
const CLASS_STATES: u64 = 300;
/// States of a class that are in use at one place of the text.
const CLASS_ACTIVE: u64 = 4;

/// Weight of a pattern. Never too small for what the engine would accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    /// What translating it costs.
    pub(super) states: u64,
    /// What one byte of text can cost at worst.
    pub(super) active: u64,
}

impl Weight {
    const CHARACTER: Self = Self { states: 1, active: 1 };
    const CLASS: Self = Self { states: CLASS_STATES, active: CLASS_ACTIVE };

    fn plus(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            active: self.active.saturating_add(other.active),
        }
    }

    fn times(self, times: u64) -> Self {
        Self {
            states: self.states.saturating_mul(times),
            active: self.active.saturating_mul(times),
        }
    }
}

/// Judges a pattern.
pub(super) fn weight(pattern: &str) -> Weight {
    // A comment may hide brackets; then every count is taken to multiply everything.
    if pattern.contains('#') {
        let all = Weight::CLASS.times(pattern.len() as u64);
        return pattern
            .match_indices('{')
            .fold(all, |all, (at, _)| all.times(braces(&pattern[at..]).0));
    }
    // Sums of the groups that are open, and the part that a count behind it would multiply.
    let (mut open, mut last) = (vec![Weight::CHARACTER], Weight::default());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        if c == '{' {
            let times;
            (times, length) = braces(rest);
            last = last.times(times);
        } else {
            if let Some(sum) = open.last_mut() {
                *sum = sum.plus(last);
            }
            (last, length) = match c {
                '(' => {
                    open.push(Weight::CHARACTER);
                    (Weight::default(), length)
                }
                ')' => (close(&mut open), length),
                '[' => (Weight::CLASS, class_length(rest)),
                '.' => (Weight::CLASS, length),
                '\\' => escape(rest),
                _ => (Weight::CHARACTER, length),
            };
        }
        rest = &rest[length..];
    }
    open.into_iter().fold(last, Weight::plus)
}

/// Takes the innermost group; one that was never opened is all there is.
fn close(open: &mut Vec<Weight>) -> Weight {
    match open.pop() {
        Some(all) if open.is_empty() => {
            open.push(Weight::CHARACTER);
            all
        }
        group => group.unwrap_or_default(),
    }
}

/// The largest number in the braces at the beginning of `text`, at least 1, and the length of the braces.
fn braces(text: &str) -> (u64, usize) {
    let length = text.find('}').map_or(text.len(), |end| end + 1);
    let numbers = text[..length].split(|c: char| !c.is_ascii_digit() && !c.is_whitespace());
    let numbers = numbers.filter_map(|number| {
        let digits: String = number.split_whitespace().collect();
        // What does not fit is more than the engine takes.
        (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
    });
    (numbers.max().unwrap_or(1).max(1), length)
}

/// Length of the class at the beginning of `text`, with classes inside it.
fn class_length(text: &str) -> usize {
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => depth += 1,
            ']' if depth == 1 => return at + 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    // Not closed: if it is a pattern at all, the bracket is a character.
    1
}

/// Weight and length of the escape at the beginning of `text`.
fn escape(text: &str) -> (Weight, usize) {
    let escaped = text.chars().nth(1);
    let length = 1 + escaped.map_or(0, char::len_utf8);
    match escaped {
        Some('p' | 'P' | 'x' | 'u' | 'U') if text[length..].starts_with('{') => {
            (Weight::CLASS, length + braces(&text[length..]).1)
        }
        Some(c) if c.is_alphabetic() => (Weight::CLASS, length),
        _ => (Weight::CHARACTER, length),
    }
}

#[cfg(test)]
mod tests {
    use super::weight;

    #[test]
    fn counted_repetitions_multiply() {
        for (pattern, states) in [
            ("", 1),
            ("abc", 4),
            ("a{1000}", 1_001),
            ("a{2,1000}", 1_001),
            ("a{1000,}", 1_001),
            ("a{10}{10}", 101),
            ("(a{1000}){100}", 100_101),
            ("(a|(bc{5})){3}", 1 + 3 * (1 + 2 + 1 + 1 + 5)),
            ("\\{9}", 4),
            ("[a-z]{3}", 901),
            ("[a-z-[aeiou{7}]]{3}", 901),
            ("\\p{L}{3}", 901),
            ("\\w{100}", 30_001),
        ] {
            assert_eq!(weight(pattern).states, states, "{pattern}");
        }
        assert_eq!(weight("a{99999999999999999999}").states, u64::MAX);
    }

    #[test]
    fn what_hides_a_bracket_makes_nothing_cheaper() {
        for hiding in [
            "(?x)(a{10} # (\n b){1000}",
            "a)(a{10}){1000}",
            "[[](a{10}){1000}",
            "\\[(a{10}){1000}",
            "\\Q(a{10}){1000}",
            "(?x)(a{ 10 }){1 000}",
        ] {
            assert!(weight(hiding).states >= 10_000, "{hiding}: {:?}", weight(hiding));
        }
    }

    #[test]
    fn patterns_of_every_day_are_cheap() {
        for pattern in [
            "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$",
            "^\\w+@\\w+\\.\\w+$",
            "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        ] {
            let weight = weight(pattern);
            assert!(weight.states < 12_000 && weight.active < 200, "{pattern}: {weight:?}");
        }
    }
}
