//! `kind: Agent`: what it is for, its model, and what it may use up.

use crate::bounds::{CREDITS, DESCRIPTION_CHARS_MAX, DISPLAY_CHARS_MAX, MODEL_CHARS_MAX};
use crate::model::{AgentDefinition, ProcessState};
use crate::reader::At;

const STATES: &[(&str, ProcessState)] =
    &[("active", ProcessState::Active), ("inactive", ProcessState::Inactive)];

pub(super) fn read(spec: At<'_>) -> Option<AgentDefinition> {
    let mut fields = spec.fields()?;
    let display_name = fields.or("displayName", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let description =
        fields.or("description", None, |at| at.display(DESCRIPTION_CHARS_MAX).map(Some));
    let state = fields.or("state", ProcessState::Active, |at| at.word(STATES));
    let model = fields.required("model").and_then(|at| model(&at));
    let credit_limit = fields.or("creditLimit", None, |at| at.integer(CREDITS).map(Some));
    let runs_as = fields.or("runsAs", None, |at| at.parse().map(Some));
    fields.finish();
    Some(AgentDefinition {
        display_name: display_name?,
        description: description?,
        state: state?,
        version: 0,
        model: model?,
        credit_limit: credit_limit?,
        runs_as: runs_as?,
    })
}

/// The name of a model.
pub(super) fn model(at: &At<'_>) -> Option<String> {
    let text = at.text()?;
    if (1..=MODEL_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Some(text.to_owned());
    }
    at.mistake(format!("must be 1 to {MODEL_CHARS_MAX} printable ASCII characters without spaces"));
    None
}
