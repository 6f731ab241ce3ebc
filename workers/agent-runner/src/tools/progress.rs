//! What tools of a project tell while they work: told to live readers and kept nowhere. The run knows nothing of it.
//!
//! Of whom a report is, is what the stored run says, never what the report says. Reports that are not believed, come too often or too
//! late, or that cannot be looked at right now, are dropped.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use runfleet_agent::{CallDoing, Doing};
use runfleet_broker::{HandlerResult, Verdict};
use runfleet_catalog::ToolKind;
use runfleet_contracts::facts::{FACT_TEXT_BYTES_MAX, Progress};
use runfleet_contracts::host::HostProgress;
use runfleet_contracts::{AgentTool, AskId};
use runfleet_domain::{Name, RunKind};
use runfleet_identity::AnswerKeys;
use runfleet_worker::facts;
use tokio::time::Instant;

use super::children::{call_of, turn_of};
use crate::calls::{Calls, Found, Live};

/// After how long one more report of a call is told.
const EVERY: Duration = Duration::from_millis(100);

/// Reports of a call that are told in a row.
const AT_ONCE: u32 = 32;

/// Calls whose reports are counted.
const COUNTED_MAX: usize = 4_096;

/// Takes a report of a host.
pub(crate) async fn hear(
    calls: &Calls,
    keys: Option<&AnswerKeys>,
    progress: HostProgress,
) -> HandlerResult {
    let ask = progress.request_id;
    if ask.run_id.kind() != RunKind::Agent {
        return Ok(Verdict::Drop("wrong_kind"));
    }
    if let Some(keys) = keys {
        let word = progress.answer_key.as_deref().unwrap_or_default();
        if !keys.knows(&ask.to_string(), word) {
            return Ok(Verdict::Drop("wrong_answer_key"));
        }
    }
    if !calls.reports.admits(ask, Instant::now()) {
        return Ok(Verdict::Drop("too_often"));
    }
    let call_id = call_of(ask.instance);
    let tool = AgentTool { run_id: ask.run_id, call_id, deadline: 0 };
    let Some(id) = tool.event_id() else { return Ok(Verdict::Drop("no_such_call")) };
    // A report that comes late is of no use to anybody.
    let Ok(Found::Live(live)) = calls.find(ask.run_id, &id).await else {
        return Ok(Verdict::Drop("not_at_work"));
    };
    let Some((name, project)) = at_work(&live, &tool.call_id) else {
        return Ok(Verdict::Drop("no_such_call"));
    };
    let named = (progress.workspace.as_ref(), progress.project.as_ref());
    if keys.is_none() && named != (Some(&live.record.workspace), Some(&project)) {
        return Ok(Verdict::Drop("answer_of_another_project"));
    }
    let turn = turn_of(&tool.call_id).unwrap_or_default();
    let mut text = progress.chunk;
    text.truncate(text.floor_char_boundary(FACT_TEXT_BYTES_MAX));
    let doing = Progress::Writing { call_id: tool.call_id, tool: name, seq: progress.seq, text };
    facts::progress(&calls.deps.publisher, &live.record, turn, doing);
    Ok(Verdict::Done)
}

/// The tool of a call that a project is at, and that project.
fn at_work(live: &Live, call_id: &str) -> Option<(String, Name)> {
    let Doing::Calling { calls } = live.state.view().doing else { return None };
    let call = calls.into_iter().find(|call| call.call_id == call_id)?;
    let tools = &live.definition.blueprint().tools;
    let (_, tool) = tools.iter().find(|(name, _)| name.as_str() == call.name)?;
    match &tool.kind {
        ToolKind::Project { project, .. } if call.doing == CallDoing::Out => {
            Some((call.name, project.clone()))
        }
        _ => None,
    }
}

/// How often reports of each call have come of late.
#[derive(Default)]
pub(crate) struct Reports {
    /// When the reports so far would have come, had they come one after the other in their time.
    due: Mutex<HashMap<AskId, Instant>>,
}

impl Reports {
    /// Counts a report; false when too many have come.
    fn admits(&self, ask: AskId, now: Instant) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.len() >= COUNTED_MAX {
            due.retain(|_, at| *at > now);
        }
        let known = due.get(&ask).copied();
        if known.is_none() && due.len() >= COUNTED_MAX {
            return false;
        }
        let at = known.map_or(now, |at| at.max(now));
        let admitted = at < now + EVERY * AT_ONCE;
        if admitted {
            due.insert(ask, at + EVERY);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(instance: u64) -> AskId {
        let run_id = "AG1501JDX3Z8GF0000000000000000".parse().unwrap();
        AskId { run_id, instance, attempt: 1 }
    }

    #[test]
    fn reports_of_a_call_are_told_in_a_row_and_then_in_their_time() {
        let (reports, now) = (Reports::default(), Instant::now());
        let told = |now| (0..100).filter(|_| reports.admits(ask(1), now)).count();
        assert_eq!(told(now), 32);
        assert!(reports.admits(ask(2), now), "another call has its own");
        assert_eq!(told(now + EVERY * 3), 3);
        assert_eq!(told(now + Duration::from_mins(1)), 32);
    }

    #[test]
    fn no_more_calls_are_counted_than_there_is_room_for_and_room_comes_back() {
        let (reports, now) = (Reports::default(), Instant::now());
        let max = u64::try_from(COUNTED_MAX).unwrap();
        assert!((0..max).all(|call| reports.admits(ask(call), now)));
        assert!(!reports.admits(ask(max), now) && reports.admits(ask(1), now));
        assert!(reports.admits(ask(max), now + EVERY * 3));
        assert_eq!(reports.due.lock().unwrap().len(), 1);
    }
}
