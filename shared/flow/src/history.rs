//! What happened to the elements of a run, in a form short enough to keep.

use serde::{Deserialize, Serialize};

/// One thing that happened to one visit of an element. As JSON: `["ComputeTotal",12,"e",1,1764500000000]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry(
    /// Id of the element.
    pub String,
    /// The instance, which is this visit of the element.
    pub u64,
    /// What happened.
    pub What,
    /// Number of the attempt, from 1.
    pub u32,
    /// Unix milliseconds.
    pub u64,
);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum What {
    /// It was entered.
    #[serde(rename = "e")]
    Entered,
    /// It came to its end and was left.
    #[serde(rename = "l")]
    Left,
    /// An attempt failed, or it ended the run.
    #[serde(rename = "f")]
    Failed,
    /// It was ended early by something else.
    #[serde(rename = "c")]
    Canceled,
}

impl What {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Left => "left",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}
