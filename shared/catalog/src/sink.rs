//! Where messages of agents to people go, and when they may: chat sinks and quiet hours, as they are declared.

use runfleet_domain::Name;
use serde::{Deserialize, Serialize};

use crate::tool::Secretly;

/// The sink of agents that name none: the conversation itself is all there is.
pub const BUILTIN_SINK: &str = "builtin";

/// A place where messages of agents to people go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSink {
    /// How it is reached.
    pub kind: SinkKind,
    /// Longest time of one attempt, in seconds.
    pub timeout_seconds: u32,
    /// Messages on their way to it at once, from one worker.
    pub parallel: u32,
}

impl ChatSink {
    /// The one that nobody has to declare.
    pub fn builtin() -> Self {
        Self { kind: SinkKind::Builtin, timeout_seconds: 10, parallel: 64 }
    }
}

/// How a sink is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SinkKind {
    /// The conversation in the ledger.
    Builtin,
    /// An HTTP service that takes signed messages.
    Webhook {
        /// Its address.
        url: Secretly,
        /// By which it knows the sender.
        key: Secretly,
        /// Whether it does one `Idempotency-Key` once, however often it gets it.
        deduplicates: bool,
    },
    /// An incoming webhook of Slack, or of something that understands the same.
    Slack {
        /// Its address, which is a secret as a rule.
        url: Secretly,
    },
    /// An incoming webhook of Mattermost.
    Mattermost {
        /// Its address, which is a secret as a rule.
        url: Secretly,
    },
    /// A server of electronic mail.
    Smtp(SmtpServer),
}

/// A server that takes electronic mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SmtpServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub security: SmtpSecurity,
    /// Who logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// By what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secretly>,
    /// The sender of all mail.
    pub from: String,
    /// The subject of mail in a conversation without a title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// How a connection to a mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SmtpSecurity {
    /// TLS from the start.
    Tls,
    /// TLS before anything is said; without it nothing is sent.
    Starttls,
    /// None: only to places that the operator has listed.
    None,
}

/// What becomes of a message in quiet hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuietPolicy {
    /// It waits for their end, a day at most.
    #[default]
    Wait,
    /// It is not sent.
    Block,
}

/// Hours of a day in which a person is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuietHours {
    /// The first minute, `HH:MM`.
    pub from: String,
    /// The first minute after them, `HH:MM`; before `from` on the next day.
    pub to: String,
    /// An IANA time zone.
    pub time_zone: String,
}

/// How an agent treats quiet hours.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuietRules {
    /// What becomes of a message in them.
    pub policy: QuietPolicy,
    /// Those of people who have set none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<QuietHours>,
}

impl QuietRules {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Minutes of a day of a text `HH:MM`.
pub fn minute_of(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str, below: u16| {
        let good = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|number| good && *number < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

impl crate::Snapshot {
    /// The sink that an agent names; none when it names one that is not declared. The built-in one without a name.
    pub fn sink_of(&self, agent: &Name) -> Option<(Name, ChatSink)> {
        let builtin: Name = BUILTIN_SINK.parse().ok()?;
        let named = self.agent(agent).and_then(|agent| agent.spec.chat_sink.clone());
        let name = named.unwrap_or(builtin.clone());
        match self.chat_sinks.get(&name) {
            Some(sink) => Some((name, sink.clone())),
            None if name == builtin => Some((name, ChatSink::builtin())),
            None => None,
        }
    }

    /// How a sink reaches a person, where it needs to know.
    pub fn reach_of(&self, person: &Name, sink: &Name) -> Option<&str> {
        self.person(person)?.reach.get(sink).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_read_to_the_minute() {
        let read: Vec<_> = ["00:00", "07:30", "23:59"].into_iter().map(minute_of).collect();
        assert_eq!(read, [Some(0), Some(450), Some(1_439)]);
        for text in ["", "7:30", "24:00", "00:60", "07:3", "+7:30", "07:30:00", "ab:cd"] {
            assert_eq!(minute_of(text), None, "{text}");
        }
    }
}
