//! Agents and what they use: documents, tool directories, versions.

use runfleet_catalog::{
    AgentBlueprint, Builtin, Changed, Permission, Scope, Secretly, Snapshot, ToolKind,
};

use crate::bundle::{Files, WORKSPACE, document};

const TOOL: &str = "apiVersion: runfleet/v1\nkind: Tool\nmetadata: {name: other}\nspec: ";

fn tool_file(files: &Files, path: &str, text: &str) {
    let full = files.path().join("tools").join(path);
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    std::fs::write(full, text).unwrap();
}

fn with(documents: &[(&str, &str, &str)]) -> Files {
    let files = Files::new(&[WORKSPACE]);
    for (position, (kind, name, spec)) in documents.iter().enumerate() {
        files.write(&format!("d{position}.yaml"), document(kind, name, spec));
    }
    files
}

fn merged(previous: Option<&Snapshot>, files: &Files) -> runfleet_catalog::Merged {
    Snapshot::merge(previous, files.load().unwrap()).unwrap()
}

/// NB-01, NB-02, NB-03, NB-04
#[test]
fn a_tool_file_gives_its_name_and_a_broken_one_stops_no_other() {
    let files = with(&[("Tool", "plain", "{builtin: currentTime, permission: ALLOW}")]);
    tool_file(&files, "foo.yaml", &format!("{TOOL}{{builtin: calculate}}"));
    tool_file(&files, "bar/tool.yaml", &format!("{TOOL}{{agent: coach, description: short}}"));
    tool_file(&files, "bar/description.md", "From the file.\n\nIn full.\n");
    tool_file(&files, "broken.yaml", &format!("{TOOL}{{builtin: nothing}}"));
    tool_file(&files, "empty/description.md", "Nobody does the work.");
    tool_file(&files, "not yaml.yaml", ": :");
    tool_file(&files, "foo/tool.yml", &format!("{TOOL}{{builtin: webSearch}}"));
    tool_file(&files, "plain.json", &format!("{TOOL}{{builtin: webSearch}}"));
    tool_file(&files, "notes.txt", "no tool");
    let bundle = files.load().unwrap();
    let names: Vec<&str> = bundle.tools.keys().map(runfleet_domain::Name::as_str).collect();
    assert_eq!(names, ["bar", "foo", "plain"]);
    let tool = |name: &str| &bundle.tools[&name.parse().unwrap()];
    assert_eq!(tool("bar").description, "From the file.\n\nIn full.");
    // Of two, the first by its path stays; a document comes before all files.
    assert_eq!(tool("foo").kind, ToolKind::Builtin(Builtin::WebSearch));
    assert_eq!(tool("plain").kind, ToolKind::Builtin(Builtin::CurrentTime));
    let left_out = bundle.left_out.to_string().replace(&format!("{}/", files.path().display()), "");
    for expected in [
        "tools/broken.yaml:4: spec.builtin: must be one of",
        "tools/empty: holds no tool.yaml",
        "tools/not yaml.yaml: gives a tool its name, which must be",
        "tools/foo.yaml: is a second tool foo; the first one stays",
        "tools/plain.json: is a second tool plain; the first one stays",
    ] {
        assert!(left_out.contains(expected), "{expected}\n{left_out}");
    }
    let warnings = Snapshot::merge(None, bundle).unwrap().changes.warnings;
    assert!(warnings.iter().any(|warning| warning.starts_with("a tool is left out: ")));
}

/// NB-05
#[test]
fn a_tool_asks_and_is_specified_unless_it_says_otherwise() {
    let files = with(&[("Tool", "t", "{description: x, project: {project: p, function: f}}")]);
    let tool = &files.load().unwrap().tools[&"t".parse().unwrap()];
    assert_eq!((tool.permission, tool.scope), (Permission::Ask, Scope::Specified));
    assert!(!tool.idempotent && tool.timeout_seconds == 60 && tool.title.is_none());
}

/// NB-06
#[test]
fn an_agent_says_everything_and_its_blueprint_is_read_back() {
    let files = with(&[
        (
            "Agent",
            "coach",
            "{model: m/1, provider: own, parameters: {temperature: 0.25, topP: 1, maxTokens: 9}, \
             systemPrompt: 'Hello {{name}}. {{records}}', tools: [named, {name: own, permission: ALLOW}], skills: [deals], \
             mcpServers: [files], recordSource: crm, maxTurns: 3, tokenBudget: 1000, toolCalls: 5, toolBytes: 4096, parallel: 2, \
             timeoutSeconds: 60, modelTimeoutSeconds: 30, users: [ada], \
             guardrails: {input: {blockedPatterns: ['(?i)secret'], maxChars: 10}, output: {blockedTopics: [weapons]}}}",
        ),
        ("Tool", "everybody", "{builtin: currentTime, scope: GENERAL}"),
        (
            "Tool",
            "named",
            "{description: x, http: {url: 'https://example.com/{{id}}', headers: {x-key: {env: KEY}, accept: a/b}}}",
        ),
        ("Tool", "own", "{builtin: calculate, scope: CUSTOM}"),
        ("Tool", "hidden", "{builtin: webSearch}"),
        ("Tool", "custom", "{builtin: webSearch, scope: CUSTOM}"),
        (
            "Skill",
            "deals",
            "{description: About deals., instructions: 'Do\n\nthis.', tools: [hidden, custom]}",
        ),
        ("Skill", "other", "{description: x, instructions: y}"),
        ("McpServer", "files", "{stdio: {command: files}, toolPermissions: {read: ALLOW}}"),
        (
            "ModelProvider",
            "own",
            "{kind: openai, baseUrl: 'http://127.0.0.1:1/v1', keyFile: /run/key, models: {m/1: gpt}}",
        ),
        ("ModelProvider", "aaa", "{kind: anthropic, models: [m/1]}"),
        (
            "RecordSource",
            "crm",
            "{documents: [{objectSlug: deal, recordId: '7', fields: {amount: 1.5}}]}",
        ),
    ]);
    let merged = merged(None, &files);
    let blueprint = AgentBlueprint::from_json(&merged.agent_versions[0].json).unwrap();
    assert_eq!(Some(&blueprint), merged.snapshot.blueprint(&"coach".parse().unwrap()).as_ref());
    let names: Vec<&str> = blueprint.tools.keys().map(runfleet_domain::Name::as_str).collect();
    // NB-06: a CUSTOM tool comes from the agent alone.
    assert_eq!(names, ["everybody", "hidden", "named", "own"]);
    assert_eq!(blueprint.skills.len(), 1);
    assert_eq!(blueprint.provider.as_ref().unwrap().0.as_str(), "own");
    assert_eq!(blueprint.spec.parameters.temperature_thousandths, Some(250));
    assert!(blueprint.mcp_servers.contains_key(&"files".parse().unwrap()));
    assert!(blueprint.record_source.is_some());
    let key = blueprint.provider.unwrap().1.key;
    assert_eq!(key, Some(Secretly::File("/run/key".to_owned())));
    let stored = merged.snapshot.to_json().unwrap();
    assert_eq!(Snapshot::from_json(stored.as_bytes()).unwrap(), merged.snapshot);
    let warning = "agent coach names the person ada, which is not declared";
    assert_eq!(merged.changes.warnings, [warning]);
}

#[test]
fn an_agent_has_a_new_version_when_something_that_it_names_has_changed() {
    let agent = ("Agent", "coach", "{model: m/1, tools: [t]}");
    let before = merged(None, &with(&[agent, ("Agent", "other", "{model: m/1}")]));
    assert_eq!(before.agent_versions.len(), 2);
    let same = merged(Some(&before.snapshot), &with(&[agent]));
    assert!(same.agent_versions.is_empty() && same.changes.is_empty());
    let tool = with(&[("Tool", "t", "{builtin: calculate}")]);
    let after = merged(Some(&before.snapshot), &tool);
    let coach = after.snapshot.agent(&"coach".parse().unwrap()).unwrap();
    assert_eq!(coach.version, 2);
    assert_eq!(after.agent_versions.len(), 1);
    assert_eq!(after.agent_versions[0].sha256, coach.sha256);
    let told = after.changes.list.iter().find(|change| change.kind == "agent").unwrap();
    assert_eq!((told.changed, told.version), (Changed::Changed, Some(2)));
}
