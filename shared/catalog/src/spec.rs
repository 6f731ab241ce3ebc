//! From documents to a bundle: the envelope of each document, one module for each kind, and what must hold between them.

mod agent;
mod policy;
mod process;
mod project;
mod workspace;

use std::collections::BTreeMap;

use runfleet_domain::Name;

use crate::bounds::DOCUMENTS_MAX;
use crate::bundle::Bundle;
use crate::load::Source;
use crate::mistake::Collector;
use crate::model::AgentDefinition;
use crate::node::{self, Node, Value};
use crate::reader::{At, Fields};
use crate::summary::ProcessCheck;

const API_VERSION: &str = "runfleet/v1";

/// Kinds of documents.
#[derive(Clone, Copy)]
enum Kind {
    Workspace,
    Project,
    Process,
    Agent,
}

const KINDS: &[(&str, Kind)] = &[
    ("Workspace", Kind::Workspace),
    ("Project", Kind::Project),
    ("Process", Kind::Process),
    ("Agent", Kind::Agent),
];

/// Kinds that are planned. Naming them tells their author that the spelling is right.
const KINDS_NOT_YET: &[&str] =
    &["Tool", "Skill", "McpServer", "ChatSink", "RecordSource", "ModelProvider"];

/// Documents that were read so far.
#[derive(Default)]
struct Gathered {
    documents: usize,
    workspace: Option<workspace::Declared>,
    workspaces: usize,
    projects: BTreeMap<Name, Option<project::Declared>>,
    processes: BTreeMap<Name, Option<crate::bundle::BundleProcess>>,
    agents: BTreeMap<Name, Option<AgentDefinition>>,
}

/// Reads every document of every source. `None`, or anything that was collected, means that there is no bundle.
pub(crate) fn bundle(
    sources: &[Source],
    check: ProcessCheck<'_>,
    collector: &Collector,
) -> Option<Bundle> {
    let mut gathered = Gathered::default();
    for source in sources {
        match node::parse(&source.text) {
            Ok(documents) => {
                for document in documents.iter().filter(|node| !matches!(node.value, Value::Null)) {
                    gathered.documents += 1;
                    if gathered.documents > DOCUMENTS_MAX {
                        collector.file(
                            &source.shown,
                            format!("holds document number {}, one too many", DOCUMENTS_MAX + 1),
                        );
                        return None;
                    }
                    gathered.read(document, source, check, collector);
                }
            }
            Err((line, problem)) => collector.add(crate::mistake::Mistake {
                file: source.shown.clone(),
                path: String::new(),
                line,
                problem: format!("cannot be read as YAML or JSON: {problem}"),
            }),
        }
    }
    // With other mistakes it may only be unreadable.
    if gathered.workspaces == 0 && collector.is_empty() {
        let place = sources.first().map_or("bundle", |source| source.shown.as_str());
        collector.file(place, "no document of kind Workspace was given; a bundle has exactly one");
    }
    gathered.into_bundle()
}

impl Gathered {
    fn read(
        &mut self,
        document: &Node,
        source: &Source,
        check: ProcessCheck<'_>,
        collector: &Collector,
    ) {
        let at = At::document(document, &source.shown, collector);
        let Some(mut fields) = at.fields() else { return };
        let version = fields.required("apiVersion").and_then(|at| at.word(&[(API_VERSION, ())]));
        let kind = fields.required("kind").and_then(|at| kind(&at));
        let name = name_of(&mut fields);
        let (Some(()), Some(kind)) = (version, kind) else { return };
        match kind {
            Kind::Workspace => self.workspace(name, fields),
            Kind::Project => {
                if let Some(at) = taken(name.as_ref(), &self.projects) {
                    at.mistake("names a project that another document declares as well");
                }
                let project = fields.required("spec").and_then(project::read);
                fields.finish();
                if let Some((_, name)) = name {
                    self.projects.entry(name).or_insert(project);
                }
            }
            Kind::Process => {
                if let Some(at) = taken(name.as_ref(), &self.processes) {
                    at.mistake("names a Process that another document declares as well");
                }
                let process = fields
                    .required("spec")
                    .and_then(|at| process::read(at, source, check, collector));
                fields.finish();
                if let Some((_, name)) = name {
                    self.processes.entry(name).or_insert(process);
                }
            }
            Kind::Agent => {
                if let Some(at) = taken(name.as_ref(), &self.agents) {
                    at.mistake("names an agent that another document declares as well");
                }
                let agent = fields.required("spec").and_then(agent::read);
                fields.finish();
                if let Some((_, name)) = name {
                    self.agents.entry(name).or_insert(agent);
                }
            }
        }
    }

    fn workspace(&mut self, name: Option<(At<'_>, Name)>, mut fields: Fields<'_>) {
        self.workspaces += 1;
        if self.workspaces > 1 {
            fields.mistake("is a second Workspace; a bundle has exactly one");
        }
        // A workspace may consist of its name alone.
        let spec = fields.optional("spec");
        fields.finish();
        let declared = workspace::read(name.map(|(_, name)| name), spec);
        self.workspace = self.workspace.take().or(declared);
    }

    fn into_bundle(self) -> Option<Bundle> {
        let (workspace, people) = self.workspace?;
        let declared = whole(self.projects)?;
        let unapproved = declared
            .iter()
            .filter(|(_, declared)| !declared.policy_approved)
            .map(|(name, _)| name.clone())
            .collect();
        let projects =
            declared.into_iter().map(|(name, declared)| (name, declared.project)).collect();
        Some(Bundle {
            workspace,
            people,
            projects,
            processes: whole(self.processes)?,
            agents: whole(self.agents)?,
            unapproved,
        })
    }
}

fn kind(at: &At<'_>) -> Option<Kind> {
    let not_yet = KINDS_NOT_YET
        .iter()
        .find(|kind| matches!(&at.node.value, Value::Text(text) if text == *kind));
    if let Some(kind) = not_yet {
        at.mistake(format!("{kind} is not supported yet"));
        return None;
    }
    at.word(KINDS)
}

fn name_of<'r>(fields: &mut Fields<'r>) -> Option<(At<'r>, Name)> {
    let mut metadata = fields.required("metadata")?.fields()?;
    let at = metadata.required("name");
    metadata.finish();
    let at = at?;
    let name = at.parse()?;
    Some((at, name))
}

fn taken<'n, 'r, T>(
    name: Option<&'n (At<'r>, Name)>,
    known: &BTreeMap<Name, T>,
) -> Option<&'n At<'r>> {
    name.filter(|(_, name)| known.contains_key(name)).map(|(at, _)| at)
}

fn whole<T>(map: BTreeMap<Name, Option<T>>) -> Option<BTreeMap<Name, T>> {
    map.into_iter().map(|(name, value)| Some((name, value?))).collect()
}

/// A list of ids; duplicates are one.
fn ids(at: &At<'_>) -> Option<std::collections::BTreeSet<Name>> {
    let items = at.items(crate::bounds::SELECTOR_IDS_MAX)?;
    let ids: Vec<Option<Name>> = items.iter().map(At::parse).collect();
    ids.into_iter().collect()
}
