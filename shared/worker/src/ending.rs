//! What an end calls for, whoever has ended the run: its outcome is handed over, the run that has called it is woken, the next
//! turn of its conversation begins, live readers hear what was said there, and the runs that it has called end with it.
//!
//! Nothing here decides that a run ends. Everything may be done again: the repetition finds what is left to do, and what is
//! given up here because it is too much for one go is done when the alarm of the run rings.

use runfleet_broker::{Classify, Failure, Publisher};
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_store::{End, Finished, RunRecord, Store, Woken};

use crate::{effects, facts};

/// Runs that one call ends at most. What is left keeps the alarm of its parent.
const ENDED_AT_ONCE: u32 = 256;

/// Children that are asked for at once.
const CHILDREN_AT_ONCE: u32 = 64;

/// How a run ends because the one that has called it has ended, or wants it no more.
const CALLED_OFF: End<'static> = End {
    state: RunState::Canceled,
    output: None,
    error: Some(("CALLED_OFF", "The run that called this one has ended or wants it no more.")),
    history: &[],
};

/// How a run of an agent ends that is wanted no more while the one that has called it goes on.
const GIVEN_UP: End<'static> = End {
    state: RunState::TimedOut,
    output: None,
    error: Some(("CALLER_TIMEOUT", "The caller no longer waits for the run.")),
    history: &[],
};

/// Does what the end of a run calls for, after the ledger has said what became of the wish to end it. `record` is the run as
/// it was before. For a run that has not ended nothing is done.
pub async fn follow(
    store: &Store,
    publisher: &Publisher,
    record: &RunRecord,
    finished: &Finished,
) -> Result<(), Failure> {
    match finished {
        Finished::Finished { children, parent_to_wake, next_turn, said, .. } => {
            if let Some(from) = said {
                facts::turn_ended(publisher, record, *from);
            }
            outcome(publisher, record).await?;
            for woken in [parent_to_wake, next_turn].into_iter().flatten() {
                wake(publisher, woken).await?;
            }
            if *children { end_below(store, publisher, vec![record.id]).await } else { Ok(()) }
        }
        Finished::Ended(now) => follow_again(store, publisher, now).await,
        Finished::Lost | Finished::Busy | Finished::Missing => Ok(()),
    }
}

/// The same for a run that was found ended: whoever has ended it may have been cut off.
pub async fn follow_again(
    store: &Store,
    publisher: &Publisher,
    record: &RunRecord,
) -> Result<(), Failure> {
    outcome(publisher, record).await?;
    if let Some(parent) = record.parent {
        let (lane, traceparent) = (record.lane, record.traceparent.clone());
        wake(publisher, &Woken { run_id: parent.run_id, lane, traceparent }).await?;
    }
    if record.has_called { end_below(store, publisher, vec![record.id]).await } else { Ok(()) }
}

/// Ends a run that another one has called and wants no more, and every run below it.
pub async fn call_off(store: &Store, publisher: &Publisher, child: RunId) -> Result<(), Failure> {
    let end = match child.kind() {
        RunKind::Process => &CALLED_OFF,
        RunKind::Agent => &GIVEN_UP,
    };
    if end_one(store, publisher, child, end).await? {
        end_below(store, publisher, vec![child]).await?;
    }
    Ok(())
}

/// Wakes a run that has got an event.
pub async fn wake(publisher: &Publisher, woken: &Woken) -> Result<(), Failure> {
    let trace = woken.traceparent.as_deref();
    let advance = effects::advance(woken.run_id, "event", woken.lane, trace);
    let advance = advance.permanent("writing a wake-up")?;
    effects::publish(publisher, advance).await.transient("waking a run")
}

async fn outcome(publisher: &Publisher, record: &RunRecord) -> Result<(), Failure> {
    let outcome = effects::of_ended_run(record).permanent("writing the outcome message")?;
    let Some(outcome) = outcome else { return Ok(()) };
    effects::publish(publisher, outcome).await.transient("publishing the outcome")
}

/// Ends one called run; says whether it may have open children of its own.
async fn end_one(
    store: &Store,
    publisher: &Publisher,
    child: RunId,
    end: &End<'_>,
) -> Result<bool, Failure> {
    match store.end_run(child, end).await.transient("ending a called run")? {
        Finished::Finished { children, parent_to_wake, .. } => {
            if let Some(parent) = parent_to_wake {
                wake(publisher, &parent).await?;
            }
            Ok(children)
        }
        Finished::Ended(record) => Ok(record.has_called),
        Finished::Lost | Finished::Busy | Finished::Missing => Ok(false),
    }
}

/// Ends the open children of these runs and everything below, each by a script of its own.
async fn end_below(
    store: &Store,
    publisher: &Publisher,
    mut open: Vec<RunId>,
) -> Result<(), Failure> {
    let mut left = ENDED_AT_ONCE;
    while let Some(parent) = open.pop() {
        let children = store.open_children(parent, CHILDREN_AT_ONCE).await;
        let children = children.transient("listing the children of a run")?;
        if children.len() >= CHILDREN_AT_ONCE as usize {
            open.push(parent);
        }
        for child in children {
            if left == 0 {
                tracing::warn!(%parent, "more runs end with this one than at once; the rest follows");
                return Ok(());
            }
            left -= 1;
            if end_one(store, publisher, child.run_id, &CALLED_OFF).await? {
                open.push(child.run_id);
            }
        }
    }
    Ok(())
}
