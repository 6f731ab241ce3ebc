//! From documents to a bundle: the envelope of each document, one module for each kind, and what must hold between them.

mod agent;
mod policy;
mod process;
mod project;
mod reach;
mod sink;
mod tool;
mod workspace;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use runfleet_domain::Name;

use crate::agent::AgentDefinition;
use crate::bounds::DOCUMENTS_MAX;
use crate::bundle::Bundle;
use crate::load::{Source, ToolSource};
use crate::mistake::Collector;
use crate::node::{self, Node, Value};
use crate::reader::{At, Fields};
use crate::sink::ChatSink;
use crate::summary::ProcessCheck;
use crate::tool::{McpServer, ModelProvider, RecordSource, SkillDefinition, ToolDefinition};

const API_VERSION: &str = "runfleet/v1";

/// Kinds of documents.
#[derive(Clone, Copy)]
enum Kind {
    Workspace,
    Project,
    Process,
    Agent,
    Tool,
    Skill,
    McpServer,
    ModelProvider,
    RecordSource,
    ChatSink,
}

const KINDS: &[(&str, Kind)] = &[
    ("Workspace", Kind::Workspace),
    ("Project", Kind::Project),
    ("Process", Kind::Process),
    ("Agent", Kind::Agent),
    ("Tool", Kind::Tool),
    ("Skill", Kind::Skill),
    ("McpServer", Kind::McpServer),
    ("ModelProvider", Kind::ModelProvider),
    ("RecordSource", Kind::RecordSource),
    ("ChatSink", Kind::ChatSink),
];

/// Documents that were read so far.
#[derive(Default)]
struct Gathered {
    documents: usize,
    workspace: Option<workspace::Declared>,
    workspaces: usize,
    projects: BTreeMap<Name, Option<project::Declared>>,
    processes: BTreeMap<Name, Option<crate::bundle::BundleProcess>>,
    agents: BTreeMap<Name, Option<AgentDefinition>>,
    tools: BTreeMap<Name, Option<ToolDefinition>>,
    skills: BTreeMap<Name, Option<SkillDefinition>>,
    mcp_servers: BTreeMap<Name, Option<McpServer>>,
    providers: BTreeMap<Name, Option<ModelProvider>>,
    record_sources: BTreeMap<Name, Option<RecordSource>>,
    chat_sinks: BTreeMap<Name, Option<ChatSink>>,
    left_out: Collector,
}

/// Reads every document of every source. `None`, or anything that was collected, means that there is no bundle.
pub(crate) fn bundle(
    sources: &[Source],
    tools: &[ToolSource],
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
    for tool in tools {
        gathered.tool_file(tool);
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
        let kind = fields.required("kind").and_then(|at| at.word(KINDS));
        let name = name_of(&mut fields);
        let (Some(()), Some(kind)) = (version, kind) else { return };
        match kind {
            Kind::Workspace => self.workspace(name, fields),
            Kind::Project => declare(&mut self.projects, name, fields, "a project", project::read),
            Kind::Process => declare(&mut self.processes, name, fields, "a Process", |at| {
                process::read(at, source, check, collector)
            }),
            Kind::Agent => declare(&mut self.agents, name, fields, "an agent", agent::read),
            Kind::Tool => {
                declare(&mut self.tools, name, fields, "a tool", |at| tool::read(at, None));
            }
            Kind::Skill => declare(&mut self.skills, name, fields, "a skill", tool::skill),
            Kind::McpServer => {
                declare(&mut self.mcp_servers, name, fields, "an MCP server", reach::server);
            }
            Kind::ModelProvider => {
                declare(&mut self.providers, name, fields, "a provider", reach::provider);
            }
            Kind::RecordSource => {
                let what = "a source of records";
                declare(&mut self.record_sources, name, fields, what, reach::records);
            }
            Kind::ChatSink => {
                declare(&mut self.chat_sinks, name, fields, "a chat sink", sink::read);
            }
        }
    }

    /// Reads a file out of a `tools` directory. Its name is the name of the tool, whatever the document says. What is wrong
    /// with it leaves out this tool and no other.
    fn tool_file(&mut self, file: &ToolSource) {
        let problems = Collector::default();
        let read = read_tool(file, &problems);
        let wrong = problems.into_mistakes();
        let whole = wrong.list.is_empty();
        wrong.list.into_iter().for_each(|mistake| self.left_out.add(mistake));
        let Some((name, tool)) = read.filter(|_| whole) else { return };
        match self.tools.entry(name) {
            Entry::Vacant(free) => {
                free.insert(Some(tool));
            }
            Entry::Occupied(first) => {
                let problem = format!("is a second tool {}; the first one stays", first.key());
                self.left_out.file(&file.shown, problem);
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
            tools: whole(self.tools)?,
            skills: whole(self.skills)?,
            mcp_servers: whole(self.mcp_servers)?,
            providers: whole(self.providers)?,
            record_sources: whole(self.record_sources)?,
            chat_sinks: whole(self.chat_sinks)?,
            left_out: self.left_out.into_mistakes(),
            unapproved,
        })
    }
}

fn name_of<'r>(fields: &mut Fields<'r>) -> Option<(At<'r>, Name)> {
    let mut metadata = fields.required("metadata")?.fields()?;
    let at = metadata.required("name");
    metadata.finish();
    let at = at?;
    let name = at.parse()?;
    Some((at, name))
}

/// Reads a document of a kind and keeps it under its name, the first one if there are several.
fn declare<'r, T>(
    known: &mut BTreeMap<Name, Option<T>>,
    name: Option<(At<'r>, Name)>,
    mut fields: Fields<'r>,
    what: &str,
    read: impl FnOnce(At<'r>) -> Option<T>,
) {
    if let Some((at, _)) = name.as_ref().filter(|(_, name)| known.contains_key(name)) {
        at.mistake(format!("names {what} that another document declares as well"));
    }
    let document = fields.required("spec").and_then(read);
    fields.finish();
    if let Some((_, name)) = name {
        known.entry(name).or_insert(document);
    }
}

fn read_tool(file: &ToolSource, problems: &Collector) -> Option<(Name, ToolDefinition)> {
    let name = match file.name.parse::<Name>() {
        Ok(name) => Some(name),
        Err(error) => {
            problems.file(&file.shown, format!("gives a tool its name, which {error}"));
            None
        }
    };
    let text = match &file.text {
        Ok(text) => text,
        Err(problem) => {
            problems.file(&file.shown, problem);
            return None;
        }
    };
    let documents = match node::parse(text) {
        Ok(documents) => documents,
        Err((_, problem)) => {
            problems.file(&file.shown, format!("cannot be read as YAML or JSON: {problem}"));
            return None;
        }
    };
    let [document] = documents.as_slice() else {
        problems.file(&file.shown, "must hold one document");
        return None;
    };
    let mut fields = At::document(document, &file.shown, problems).fields()?;
    fields.required("apiVersion").and_then(|at| at.word(&[(API_VERSION, ())]));
    fields.required("kind").and_then(|at| at.word(&[("Tool", ())]));
    // Its name there does not count.
    let _ = fields.optional("metadata");
    let description = match &file.description {
        Some(Err(problem)) => {
            problems.file(&file.shown, format!("has a description.md that {problem}"));
            None
        }
        Some(Ok(text)) => Some(text.trim()).filter(|text| !text.is_empty()),
        None => None,
    };
    let tool = fields.required("spec").and_then(|at| tool::read(at, description));
    fields.finish();
    Some((name?, tool?))
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
