//! The word that a request to a host carries and its answer repeats: only whoever has read the request can answer it.
//!
//! It is an HMAC of the id of the request, so nothing has to be stored, and every process-runner with the same key knows it.

use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Shortest key, in bytes.
const KEY_BYTES_MIN: usize = 32;

/// Bytes of the HMAC that travel: 128 bits, written as 32 hexadecimal digits.
const WORD_BYTES: usize = 16;

/// A key is too short, or there is none. Never tells what was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("every key must have at least 32 characters")]
pub struct AnswerKeyError;

/// The keys of a fleet: the first one makes words, all of them are believed, so that a key can be changed.
pub struct AnswerKeys {
    keys: Vec<SecretString>,
}

impl std::fmt::Debug for AnswerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerKeys").field("keys", &self.keys.len()).finish()
    }
}

impl AnswerKeys {
    /// Reads keys, the newest first, separated by commas.
    pub fn new(keys: &SecretString) -> Result<Self, AnswerKeyError> {
        let keys: Vec<_> =
            keys.expose_secret().split(',').map(|key| SecretString::from(key.trim())).collect();
        if keys.iter().any(|key| key.expose_secret().len() < KEY_BYTES_MIN) {
            return Err(AnswerKeyError);
        }
        Ok(Self { keys })
    }

    /// The word for the request of this id.
    pub fn word(&self, request: &str) -> Option<String> {
        let code = mac(self.keys.first()?, request)?.finalize().into_bytes();
        let mut number = [0; WORD_BYTES];
        number.copy_from_slice(code.get(..WORD_BYTES)?);
        Some(format!("{:032x}", u128::from_be_bytes(number)))
    }

    /// Whether `word` is the one for the request of this id. Takes as long whether it is right or wrong.
    pub fn knows(&self, request: &str, word: &str) -> bool {
        let Some(bytes) = bytes(word) else { return false };
        self.keys.iter().any(|key| {
            mac(key, request).is_some_and(|mac| mac.verify_truncated_left(&bytes).is_ok())
        })
    }
}

fn mac(key: &SecretString, request: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.expose_secret().as_bytes()).ok()?;
    // The key may come to serve for something else one day.
    mac.update(b"answer:");
    mac.update(request.as_bytes());
    Some(mac)
}

fn bytes(word: &str) -> Option<[u8; WORD_BYTES]> {
    let digits = word.as_bytes();
    let mut bytes = [0; WORD_BYTES];
    if digits.len() != 2 * WORD_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> AnswerKeys {
        AnswerKeys::new(&SecretString::from(text)).unwrap()
    }

    fn long(letter: &str) -> String {
        letter.repeat(KEY_BYTES_MIN)
    }

    #[test]
    fn a_word_is_that_of_one_request_and_of_one_key() {
        let ours = keys(&long("a"));
        let word = ours.word("run:7:1").unwrap();
        assert_eq!(word.len(), 32);
        assert!(ours.knows("run:7:1", &word) && ours.knows("run:7:1", &word.to_uppercase()));
        assert!(!ours.knows("run:7:2", &word) && !keys(&long("b")).knows("run:7:1", &word));
        let first = if word.starts_with('0') { "1" } else { "0" };
        let changed = format!("{first}{}", &word[1..]);
        for wrong in ["", "00", &word[..30], &format!("{word}00"), &"g".repeat(32), &changed] {
            assert!(!ours.knows("run:7:1", wrong), "{wrong}");
        }
        assert!(!ours.knows("run:7:1", &"é".repeat(16)));
    }

    #[test]
    fn an_old_key_is_believed_until_it_is_taken_out() {
        let old = keys(&long("a")).word("r").unwrap();
        let both = keys(&format!("{}, {}", long("b"), long("a")));
        assert!(both.knows("r", &old) && both.word("r").unwrap() != old);
        assert!(!keys(&long("b")).knows("r", &old));
    }

    #[test]
    fn a_short_key_is_refused_and_none_is_shown() {
        for text in ["", "s3cret", &format!("{},", long("a")), &format!("{},s3cret", long("a"))] {
            assert_eq!(AnswerKeys::new(&SecretString::from(text)).unwrap_err(), AnswerKeyError);
        }
        assert!(!format!("{:?}", keys(&long("s3cret"))).contains("s3cret"));
    }
}
