//! Texts within bounds: cut at a character boundary, without control characters, measured as JSON.

use serde::Serialize;

/// The longest beginning of `text` with at most `max` bytes.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A text of at most `max` bytes without control characters but line breaks and tabs: as JSON it is at most twice as long.
pub(crate) fn clean(text: &str, max: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(max));
    for char in text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')) {
        if clean.len() + char.len_utf8() > max {
            break;
        }
        clean.push(char);
    }
    clean
}

/// How long `value` is as JSON, in bytes.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

/// A number for a text that is the same everywhere and always (FNV-1a, 64 bits).
pub(crate) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_character_boundary() {
        assert_eq!(cut("aä€", 3), "aä");
        assert_eq!(cut("aä€", 5), "aä");
        assert_eq!(cut("aä€", 6), "aä€");
        assert_eq!(clean("a\u{0}\u{1b}\nä", 3), "a\n");
    }
}
