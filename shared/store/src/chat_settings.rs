//! What a person has said about messages of agents. What follows from it is decided elsewhere.

use runfleet_domain::{Name, Shard};

use crate::error::StoreError;
use crate::keys::AlarmSet;
use crate::metrics::Operation;
use crate::reply::Reply;
use crate::store::{Args, Store};

/// Waiting messages that a change of quiet hours has looked at anew.
const LOOKED_AT_MAX: u32 = 1_000;

/// Longest name of a time zone, in bytes.
const TIME_ZONE_BYTES_MAX: usize = 64;

/// The hours in which a person wants no messages. Over midnight when they end before they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHours {
    /// `HH:MM`
    pub from: String,
    /// `HH:MM`
    pub to: String,
    /// The name of a time zone, such as `Europe/Berlin`.
    pub time_zone: String,
}

/// What a person has said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChatSettings {
    /// Whether no agent may write to the person.
    pub opt_out: bool,
    /// When agents do not write.
    pub quiet_hours: Option<QuietHours>,
}

/// What happens to the quiet hours of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeQuietHours<'a> {
    /// They stay as they are.
    Keep,
    /// There are none any more.
    Clear,
    /// These.
    Set(&'a QuietHours),
}

impl QuietHours {
    /// As they stand in the ledger.
    pub(crate) fn words(&self) -> Result<String, StoreError> {
        let zone = self.time_zone.as_str();
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        let good = is_time(&self.from)
            && is_time(&self.to)
            && (1..=TIME_ZONE_BYTES_MAX).contains(&zone.len())
            && zone.bytes().all(letters);
        if !good {
            return Err(StoreError::Invalid("quiet hours are two times of a day and a time zone"));
        }
        Ok(format!("{} {} {zone}", self.from, self.to))
    }

    fn read(words: &str) -> Option<Self> {
        let mut words = words.split(' ').map(str::to_owned);
        Some(Self { from: words.next()?, to: words.next()?, time_zone: words.next()? })
    }
}

/// Whether a text is `HH:MM`.
fn is_time(text: &str) -> bool {
    let two = |part: &str, below: u8| {
        part.len() == 2
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|number| number < below)
    };
    text.split_once(':').is_some_and(|(hour, minute)| two(hour, 24) && two(minute, 60))
}

impl Store {
    /// What a person has said about messages of agents.
    pub async fn chat_settings(
        &self,
        workspace: &Name,
        person: &Name,
    ) -> Result<ChatSettings, StoreError> {
        self.change_chat_settings(workspace, person, None, ChangeQuietHours::Keep).await
    }

    /// Changes what a person has said, and gives what is so now. What is none or kept stays as it is. When the quiet hours change,
    /// the alarms of the messages that wait for the person ring now, at most 1,000: perhaps they may be sent.
    pub async fn change_chat_settings(
        &self,
        workspace: &Name,
        person: &Name,
        opt_out: Option<bool>,
        quiet_hours: ChangeQuietHours<'_>,
    ) -> Result<ChatSettings, StoreError> {
        let quiet_hours = match quiet_hours {
            ChangeQuietHours::Keep => String::new(),
            ChangeQuietHours::Clear => "-".to_owned(),
            ChangeQuietHours::Set(hours) => hours.words()?,
        };
        let (keys, shard) = (self.keys(), Shard::of_workspace(workspace.as_str()));
        let names = [
            keys.chat_settings(workspace, person),
            keys.chat_waiting(workspace, person),
            keys.alarms(shard, AlarmSet::Chat),
        ];
        let opt_out = opt_out.map_or("", |out| if out { "1" } else { "0" });
        let args = Args::default().with(opt_out).with(quiet_hours).with(LOOKED_AT_MAX);
        let lua = &self.scripts().chat_settings;
        let value = self.run_script(Operation::ChatSettings, lua, &names, args).await?;
        let (tag, mut reply) = Reply::open("chat_settings", value)?;
        if tag != "settings" {
            return reply.unknown();
        }
        let (opt_out, quiet) = (reply.flag()?, reply.text()?);
        let corrupt = StoreError::Corrupt { kind: "chat_settings", field: "quiet" };
        let quiet_hours = match quiet.as_str() {
            "" => None,
            words => Some(QuietHours::read(words).ok_or(corrupt)?),
        };
        Ok(ChatSettings { opt_out, quiet_hours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_are_two_times_of_a_day_and_a_time_zone() {
        let hours = |from: &str, to: &str, time_zone: &str| QuietHours {
            from: from.to_owned(),
            to: to.to_owned(),
            time_zone: time_zone.to_owned(),
        };
        let good = hours("22:00", "07:30", "Europe/Berlin");
        assert_eq!(QuietHours::read(&good.words().unwrap()), Some(good));
        for bad in [
            hours("24:00", "07:30", "UTC"),
            hours("22:60", "07:30", "UTC"),
            hours("2:00", "07:30", "UTC"),
            hours("22:00", "+7:30", "UTC"),
            hours("22:00", "07:30", ""),
            hours("22:00", "07:30", "a b"),
        ] {
            assert!(bad.words().is_err(), "{bad:?}");
        }
    }
}
