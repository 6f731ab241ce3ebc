//! What has happened in a run: as the ledger keeps it, and as callers see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened to an instance of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HistoryWhat {
    /// It began.
    Entered,
    /// It ended as drawn.
    Left,
    /// It failed.
    Failed,
    /// It was ended from outside.
    Canceled,
}

impl HistoryWhat {
    const LETTERS: [(Self, &'static str); 4] =
        [(Self::Entered, "e"), (Self::Left, "l"), (Self::Failed, "f"), (Self::Canceled, "c")];
}

/// Something that has happened in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The id of the element in the definition.
    pub element: String,
    /// The instance of it, unique in the run.
    pub instance: u64,
    /// What happened.
    pub what: HistoryWhat,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Unix milliseconds.
    pub at: u64,
}

impl HistoryEntry {
    /// The entry as the ledger keeps it: `["Element",12,"e",1,1764500000000]`.
    pub fn to_stored(&self) -> String {
        let letter = HistoryWhat::LETTERS.iter().find(|(what, _)| *what == self.what);
        let letter = letter.map_or("", |(_, letter)| letter);
        Value::from(vec![
            Value::from(self.element.as_str()),
            self.instance.into(),
            letter.into(),
            self.attempt.into(),
            self.at.into(),
        ])
        .to_string()
    }

    /// The entry that the ledger keeps as `text`; none when a newer version wrote something else there.
    pub fn from_stored(text: &str) -> Option<Self> {
        let (element, instance, letter, attempt, at): (String, u64, String, u32, u64) =
            serde_json::from_str(text).ok()?;
        let (what, _) = HistoryWhat::LETTERS.into_iter().find(|(_, known)| *known == letter)?;
        Some(Self { element, instance, what, attempt, at })
    }
}

/// Answer to `processes.history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// What has happened, oldest first.
    pub entries: Vec<HistoryEntry>,
    /// `from` of the next page, or null when this is the last one. A run that goes on drops its oldest entries beyond 1,000.
    pub next: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_history_is_read_back_as_it_was_kept() {
        for (what, letter) in HistoryWhat::LETTERS {
            let entry = HistoryEntry {
                element: "Ask \"Ada\"".into(),
                instance: u64::MAX,
                what,
                attempt: 2,
                at: 1_764_500_000_000,
            };
            let stored = entry.to_stored();
            assert!(stored.contains(&format!(r#","{letter}",2,1764500000000]"#)), "{stored}");
            assert_eq!(HistoryEntry::from_stored(&stored), Some(entry));
        }
        for other in ["", "{}", r#"["a",1,"x",1,1]"#, r#"["a",1,"e",1]"#, r#"["a",-1,"e",1,1]"#] {
            assert_eq!(HistoryEntry::from_stored(other), None, "{other}");
        }
    }
}
