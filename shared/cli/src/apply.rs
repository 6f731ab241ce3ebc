//! `runfleet apply`: documents become the catalog of a workspace. Everything is validated before anything is stored.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use runfleet_broker::{Topology, TopologyAdmin};
use runfleet_catalog::{Bundle, Changes, Mistakes, ProcessProblem, ProcessSummary, Snapshot, load};
use runfleet_domain::{Name, RunKind};
use runfleet_flow::Definition;
use runfleet_store::{CatalogPut, Store};

use crate::context::Context;

/// Somebody else may change the catalog meanwhile; so often it is merged anew before this is given up.
const TRIES: u32 = 5;

/// Arguments of `apply`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    files: crate::Files,
    /// Only validate; change nothing and connect to nothing.
    #[arg(long)]
    check: bool,
}

#[expect(clippy::print_stderr, reason = "the result for people")]
pub(crate) async fn run(args: Args) -> Result<ExitCode> {
    let bundle = match read(&args.files.files) {
        Ok(bundle) => bundle,
        Err(mistakes) => {
            eprintln!("{mistakes}");
            return Ok(ExitCode::FAILURE);
        }
    };
    if args.check {
        crate::out::line(format_args!(
            "valid: {} projects, {} processes",
            bundle.projects.len(),
            bundle.processes.len()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let mut context = Context::load()?;
    let store = context.store().await?;
    let changes = store_bundle(&store, &context.topology_admin()?, &bundle).await?;
    crate::out::line(changes);
    Ok(ExitCode::SUCCESS)
}

/// Reads and validates documents.
pub fn read(paths: &[PathBuf]) -> Result<Bundle, Mistakes> {
    load(paths, &check)
}

fn check(xml: &str) -> Result<ProcessSummary, Vec<ProcessProblem>> {
    let definition = Definition::parse(xml).map_err(|problems| {
        let problem = |p: runfleet_flow::Problem| ProcessProblem {
            element: p.element,
            line: None,
            problem: p.message,
        };
        problems.into_iter().map(problem).collect::<Vec<_>>()
    })?;
    serde_json::to_value(definition.summary()).and_then(serde_json::from_value).map_err(|error| {
        vec![ProcessProblem { element: None, line: None, problem: error.to_string() }]
    })
}

/// Makes a bundle the catalog: job queues first, so that no project is known before its queue is there, then everything else
/// in one step.
pub async fn store_bundle(
    store: &Store,
    admin: &TopologyAdmin,
    bundle: &Bundle,
) -> Result<Changes> {
    let workspace: &Name = &bundle.workspace.id;
    for project in bundle.projects.keys() {
        admin
            .apply_job_queue(workspace, project)
            .await
            .context("declaring the job queue of a project")?;
    }
    for _ in 0..TRIES {
        let stored = store.load_catalog(workspace).await.context("reading the catalog")?;
        let previous = stored
            .as_ref()
            .map(|stored| Snapshot::from_json(stored.json.as_bytes()))
            .transpose()?;
        let merged = Snapshot::merge(previous.as_ref(), bundle.clone())?;
        let json = merged.snapshot.to_json().context("writing the catalog")?;
        let definitions: Vec<_> = merged
            .definitions
            .iter()
            .map(|new| runfleet_store::Definition {
                kind: RunKind::Process,
                target: &new.process,
                version: new.version,
                text: &new.xml,
            })
            .chain(merged.agent_versions.iter().map(|new| runfleet_store::Definition {
                kind: RunKind::Agent,
                target: &new.agent,
                version: new.version,
                text: &new.json,
            }))
            .collect();
        let expected = Some(stored.map_or(0, |stored| stored.revision));
        // Also without a change: storing announces the catalog again, which heals an announcement that got lost.
        match store
            .put_catalog(workspace, expected, &json, &definitions)
            .await
            .context("storing the catalog")?
        {
            CatalogPut::Stored { .. } => return Ok(merged.changes),
            CatalogPut::Changed { .. } => {}
        }
    }
    bail!("the catalog of `{workspace}` is being changed by somebody else all the time; try again")
}

/// The topology that `apply` and `topology apply` declare.
pub(crate) fn topology() -> Topology {
    Topology::standard()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_problem_of_every_bpmn_file_is_told_with_file_element_and_reason() {
        let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/example"));
        let copy = std::env::temp_dir().join(format!("runfleet-apply-{}", std::process::id()));
        std::fs::create_dir_all(&copy).unwrap();
        for entry in std::fs::read_dir(examples).unwrap() {
            let from = entry.unwrap().path();
            // Folders hold tools of agents, which no Process needs.
            if from.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&from).unwrap();
            let text = text
                .replace(
                    "type=\"pack-order\" retries=\"3\"",
                    "type=\"pack-order\" retries=\"none\"",
                )
                .replace("correlationKey=\"=orderId\"", "correlationKey=\"=orderId +\"")
                .replace(">R3/P7D<", ">every week<");
            std::fs::write(copy.join(from.file_name().unwrap()), text).unwrap();
        }
        let mistakes = super::read(std::slice::from_ref(&copy)).unwrap_err().to_string();
        std::fs::remove_dir_all(&copy).unwrap();
        for expected in [
            "fulfil-order.bpmn: Pack: `retries` is 1 to 100",
            "fulfil-order.bpmn: Cancelled: `orderId +` is not a valid FEEL expression",
            "remind.bpmn: WeekPassed: the cycle cannot be read: a cycle is written like `R3/PT10S`, `R/PT1H` or \
             `R2/2027-01-01T00:00:00Z/P1D`",
        ] {
            assert!(
                mistakes.lines().any(|line| line.ends_with(expected)),
                "{expected} in\n{mistakes}"
            );
        }
        assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    }
}
