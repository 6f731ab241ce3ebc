//! What stands for texts of a caller's choice in names.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

/// Stands for texts of a caller's choice in the names of keys and events: 128 bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Digest(String);

impl Digest {
    /// Of a list of texts; where one ends and the next begins counts too.
    pub(crate) fn of(texts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for text in texts {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let mut hex = String::with_capacity(32);
        for byte in hash.finalize().iter().take(16) {
            // Writing to a text cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Self(hex)
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
