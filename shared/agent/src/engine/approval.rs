//! Calls that a person decides about.

use serde_json::{Map, Value};

use super::Run;
use super::calls::problem;
use crate::event::Decision;
use crate::limits::REASON_BYTES_MAX;
use crate::offer;
use crate::state::{Open, Stage, Step};
use crate::text::clean;

impl Run<'_> {
    /// A person has decided. Only once, and only about a call that is held.
    pub(super) fn decided(&mut self, call_id: &str, decision: Decision) -> bool {
        let Some(index) = self.find(call_id) else { return false };
        let Step::Calling { open, .. } = &self.state.step else { return false };
        let (place, stage) = (open[index].place, open[index].stage);
        if !matches!(stage, Stage::Held { .. }) {
            return false;
        }
        let arguments = match decision {
            Decision::Approve => open[index].arguments.clone(),
            Decision::Reject { reason } => {
                let reason = reason.as_deref().map(|reason| clean(reason, REASON_BYTES_MAX));
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                let reason = reason.unwrap_or_else(|| "was rejected by a person".to_owned());
                self.close(index, problem("", &reason));
                return true;
            }
            Decision::Edit { arguments } => {
                let written = Value::Object(arguments).to_string();
                let Some(checked) = self.edited(place, &written) else { return false };
                if let Some(call) =
                    self.state.exchanges.last_mut().and_then(|last| last.calls.get_mut(place))
                {
                    call.arguments = written;
                }
                checked
            }
        };
        if let Step::Calling { open, .. } = &mut self.state.step {
            open[index] = Open { place, arguments, stage: Stage::Waiting };
        }
        true
    }

    /// The person who was to decide has written something else: nothing that was held is carried out.
    pub(super) fn passed_over(&mut self) -> bool {
        let mut any = false;
        while let Step::Calling { open, .. } = &self.state.step
            && let Some(index) =
                open.iter().position(|open| matches!(open.stage, Stage::Held { .. }))
        {
            self.close(index, problem("", "was cancelled: the person wrote on without deciding"));
            any = true;
        }
        any
    }

    /// Arguments that a person wrote, if they fit.
    fn edited(&self, place: usize, written: &str) -> Option<Map<String, Value>> {
        let call = self.state.exchanges.last()?.calls.get(place)?;
        let tool = offer::tool(self.definition, &self.state, &call.name)?;
        let fits = written.len() <= self.state.room() / 8;
        self.check(&call.name, &tool, written).ok().filter(|_| fits)
    }
}
