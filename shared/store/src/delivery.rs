//! What became of a message to a person, in the words of the ledger.

use std::fmt;
use std::str::FromStr;

use runfleet_domain::ConversationId;

/// What became of it, without the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// It is in the conversation.
    Sent,
    /// The run had somebody to write to and did not.
    NotSent,
    /// A rule said no.
    Blocked,
    /// An attempt broke, or nobody knows how far it got.
    Failed,
}

impl DeliveryStatus {
    const ALL: [Self; 4] = [Self::Sent, Self::NotSent, Self::Blocked, Self::Failed];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "SENT",
            Self::NotSent => "NOT_SENT",
            Self::Blocked => "BLOCKED",
            Self::Failed => "FAILED",
        }
    }
}

/// What became of a message, or of all messages of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What became of it.
    pub status: DeliveryStatus,
    /// Why it was blocked or failed: a word of the contract.
    pub error_code: Option<String>,
    /// Where it is, if it was sent.
    pub conversation: Option<ConversationId>,
    /// Whether it opened that conversation.
    pub new_conversation: bool,
}

/// The text is not what the ledger writes about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a word for what became of a message")]
pub struct DeliveryError;

impl FromStr for Delivery {
    type Err = DeliveryError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let (status, rest) = word.split_once(':').unwrap_or((word, ""));
        let status = DeliveryStatus::ALL.into_iter().find(|known| known.as_str() == status);
        let status = status.ok_or(DeliveryError)?;
        let plain = Self { status, error_code: None, conversation: None, new_conversation: false };
        match status {
            DeliveryStatus::Sent => {
                let (id, new) = rest.split_once(':').ok_or(DeliveryError)?;
                let conversation = Some(id.parse().map_err(|_| DeliveryError)?);
                Ok(Self { conversation, new_conversation: new == "1", ..plain })
            }
            DeliveryStatus::NotSent => Ok(plain),
            DeliveryStatus::Blocked | DeliveryStatus::Failed if rest.is_empty() => {
                Err(DeliveryError)
            }
            DeliveryStatus::Blocked | DeliveryStatus::Failed => {
                Ok(Self { error_code: Some(rest.to_owned()), ..plain })
            }
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.status.as_str())?;
        if let Some(code) = &self.error_code {
            write!(f, ":{code}")?;
        }
        if let Some(conversation) = self.conversation {
            write!(f, ":{conversation}:{}", u8::from(self.new_conversation))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read_back_as_it_was_written() {
        for word in [
            "SENT:CV1501KC5Q8A9B2C3D4E5F6G7H8J9K:1",
            "SENT:CV1501KC5Q8A9B2C3D4E5F6G7H8J9K:0",
            "NOT_SENT",
            "BLOCKED:RECIPIENT_RATE_LIMITED",
            "FAILED:DELIVERY_UNAVAILABLE",
        ] {
            assert_eq!(word.parse::<Delivery>().unwrap().to_string(), word);
        }
        for word in ["", "SENT", "SENT:1:1", "BLOCKED", "FAILED:", "LOST:X"] {
            assert_eq!(word.parse::<Delivery>(), Err(DeliveryError), "{word}");
        }
    }
}
