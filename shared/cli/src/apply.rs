//! `runfleet apply`: documents become the catalog of a workspace. Everything is validated before anything is stored.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use runfleet_broker::{Topology, TopologyAdmin};
use runfleet_catalog::{Bundle, Changes, Mistakes, ProcessProblem, ProcessSummary, Snapshot, load};
use runfleet_domain::Name;
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
                process: &new.process,
                version: new.version,
                xml: &new.xml,
            })
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
