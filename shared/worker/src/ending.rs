//! What an end calls for, whoever has ended the run: its outcome is handed over, its parent is woken, and the runs that it has
//! called end with it.
//!
//! Nothing here decides that a run ends. Everything may be done again: the repetition finds what is left to do.

use runfleet_broker::{Classify, Failure, Publisher};
use runfleet_store::{Finished, RunRecord, Store};

use crate::effects;

/// Does what the end of a run calls for, after the ledger has said what became of it. `record` is the run as it was before.
/// Nothing is done for a run that has not ended.
pub async fn follow(
    store: &Store,
    publisher: &Publisher,
    record: &RunRecord,
    finished: &Finished,
) -> Result<(), Failure> {
    match finished {
        Finished::Finished { .. } => follow_record(store, publisher, record).await,
        Finished::Ended(now) => follow_record(store, publisher, now).await,
        Finished::Lost | Finished::Busy | Finished::Missing => Ok(()),
    }
}

/// The same for a run that was found ended: whoever ended it may have been cut off.
pub async fn follow_record(
    _store: &Store,
    publisher: &Publisher,
    record: &RunRecord,
) -> Result<(), Failure> {
    if let Some(outcome) = effects::of_ended_run(record).permanent("writing the outcome message")? {
        effects::publish(publisher, outcome).await.transient("publishing the outcome")?;
    }
    Ok(())
}
