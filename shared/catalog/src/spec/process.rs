//! `kind: Process`: the BPMN file and whether it can be started. The engine judges the file.

use std::path::Path;

use crate::bounds::DISPLAY_CHARS_MAX;
use crate::bundle::BundleProcess;
use crate::load::Source;
use crate::mistake::{Collector, Mistake};
use crate::model::ProcessState;
use crate::reader::At;
use crate::summary::{ProcessCheck, ProcessKind, ProcessSummary};

const STATES: &[(&str, ProcessState)] =
    &[("active", ProcessState::Active), ("inactive", ProcessState::Inactive)];

const KINDS: &[(&str, ProcessKind)] =
    &[("normal", ProcessKind::Normal), ("event", ProcessKind::Event), ("sub", ProcessKind::Sub)];

pub(super) fn read(
    spec: At<'_>,
    source: &Source,
    check: ProcessCheck<'_>,
    collector: &Collector,
) -> Option<BundleProcess> {
    let mut fields = spec.fields()?;
    let name = fields.or("name", None, |at| at.display(DISPLAY_CHARS_MAX).map(Some));
    let state = fields.or("state", ProcessState::Active, |at| at.word(STATES));
    let definition =
        fields.required("file").and_then(|at| definition(&at, source, check, collector));
    if let (Some(at), Some((_, summary))) = (fields.optional("kind"), &definition) {
        let kind = at.word(KINDS);
        if kind.is_some_and(|kind| kind != summary.kind) {
            at.mistake("differs from the kind that the BPMN document says");
        }
    }
    fields.finish();
    let (xml, summary) = definition?;
    Some(BundleProcess { name: name?, state: state?, xml, summary })
}

fn definition(
    at: &At<'_>,
    source: &Source,
    check: ProcessCheck<'_>,
    collector: &Collector,
) -> Option<(String, ProcessSummary)> {
    let relative = at.text()?;
    if relative.is_empty() || Path::new(relative).is_absolute() {
        at.mistake("must be a path relative to this file");
        return None;
    }
    let (file, read) = source.beside(relative);
    let xml = match read {
        Ok(xml) => xml,
        Err(problem) => {
            at.mistake(format!("names a file that {problem}"));
            return None;
        }
    };
    match check(&xml) {
        Ok(summary) => Some((xml, summary)),
        Err(problems) => {
            if problems.is_empty() {
                at.mistake("names a file that the engine refuses without a reason");
            }
            for found in problems {
                let path = found.element.unwrap_or_default();
                collector.add(Mistake {
                    file: file.clone(),
                    path,
                    line: found.line,
                    problem: found.problem,
                });
            }
            None
        }
    }
}
