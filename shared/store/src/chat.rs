//! What all operations on conversations share.

use runfleet_domain::limits::{
    CONVERSATION_BYTES_MAX, CONVERSATION_MESSAGES_MAX, CONVERSATIONS_OF_PAIR_MAX, RETENTION_MARGIN,
};

use crate::error::StoreError;
use crate::store::Store;

/// A character has at most four bytes.
const BYTES_OF_A_CHARACTER: usize = 4;

impl Store {
    /// How much conversations hold and how long they are kept, as `chat.lua` reads it.
    pub(crate) fn conversation_bounds(&self) -> String {
        let retention = self.inner.chat_retention;
        format!(
            "{} {} {CONVERSATION_MESSAGES_MAX} {CONVERSATION_BYTES_MAX} {CONVERSATIONS_OF_PAIR_MAX}",
            retention.as_millis(),
            (retention + RETENTION_MARGIN).as_millis(),
        )
    }
}

/// Refuses a text that is empty or has more than `chars_max` characters.
pub(crate) fn check_chars(
    text: &str,
    chars_max: usize,
    complaint: &'static str,
) -> Result<(), StoreError> {
    let short = text.len() <= chars_max;
    let long = text.len() > chars_max.saturating_mul(BYTES_OF_A_CHARACTER);
    if text.is_empty() || long || (!short && text.chars().count() > chars_max) {
        return Err(StoreError::Invalid(complaint));
    }
    Ok(())
}
