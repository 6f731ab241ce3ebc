#![doc = include_str!("../README.md")]

mod alarms;
mod batch;
mod call;
mod catalog;
mod chat;
mod chat_message;
mod chat_reply;
mod chat_settings;
mod chat_waiting;
mod children;
mod claim;
mod config;
mod conversations;
mod credits;
mod days;
mod delivery;
mod digest;
mod error;
mod find;
mod finish;
mod get;
mod hand_over;
mod held_key;
mod history;
mod host_calls;
mod inbox;
mod job_list;
mod job_new;
mod job_record;
mod jobs;
mod keys;
mod link;
mod messages;
mod metrics;
mod projects;
mod record;
mod reply;
mod runs;
mod script;
mod start;
mod store;
mod upkeep;
mod url;
mod waits;

pub use alarms::{AlarmCount, DUE_AT_ONCE_MAX, Due};
pub use batch::{BATCH_REVOKED_MAX, BatchProgress};
pub use catalog::{
    CATALOG_BYTES_MAX, CatalogChanges, CatalogPut, DEFINITION_BYTES_MAX, DEFINITIONS_MAX,
    Definition, StoredCatalog,
};
pub use chat_message::{MarkHow, Marked, MessageCaps, Refused, Reserve, Reserved, Sending};
pub use chat_reply::{HOLD_BYTES_MAX, Said, StartTurn, TurnHeld};
pub use chat_settings::{ChangeQuietHours, ChatSettings, QuietHours};
pub use chat_waiting::{DueMessage, WaitingMessage};
pub use children::{Child, ChildStarted, StartChild, attempt_of};
pub use claim::{Checkpoint, Claim, Claimed, Renewed, Saved, Wake};
pub use config::{CONNECTIONS_MAX, NAMESPACE_CHARS_MAX, StoreConfig, Timings};
pub use conversations::{
    ChatFrom, ChatMessage, Conversation, ConversationList, ConversationPage, ListConversations,
    ReadConversation,
};
pub use credits::{Held, ModelAnswer};
pub use days::DayStarts;
pub use delivery::{Delivery, DeliveryStatus};
pub use error::{Cause, StoreError};
pub use find::FindStart;
pub use finish::{End, Finished, Told};
pub use get::{GetRun, Got};
pub use hand_over::{HandOver, HandOverVerdict, HandedOver};
pub use held_key::HeldKey;
pub use host_calls::{
    BeginCall, CALL_ANSWER_BYTES_MAX, CallAttempt, CallBegun, CallEnded, EndCall,
};
pub use inbox::{Appended, EVENTS_AT_ONCE, EVENTS_BYTES_AT_ONCE, Event, Woken};
pub use job_list::{JobEntry, JobPage};
pub use job_new::{EnqueueJob, Enqueued, JobTime, NewJobOrigin};
pub use job_record::{JOB_VERSION, JobOrigin, JobOutcome, JobRecord, JobState};
pub use jobs::{JobBegun, JobDue, JobFailed, JobFinished};
pub use keys::AlarmSet;
pub use messages::{
    Broadcast, BroadcastSignal, PublishMessage, Published, SIGNAL_RUNS_AT_ONCE_MAX,
};
pub use projects::{
    KeptVersion, MANIFEST_BYTES_MAX, ProjectState, Registered, Registration, SeenHost, VERSIONS_MAX,
};
pub use record::{AsksIn, OutcomeState, Parent, RUN_VERSION, RunError, RunRecord};
pub use runs::{Paused, RunExplained};
pub use start::{OutcomeJob, StartRun, Started, Verdict};
pub use store::Store;
pub use waits::{Wait, Waits};
