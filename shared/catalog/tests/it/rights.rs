//! What a run may still do by what is declared now.

use runfleet_catalog::{Acting, Snapshot, Withdrawn};
use runfleet_domain::Name;

use crate::bundle::{Files, document};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A workspace with one project, whose parts a test may replace.
struct Declared {
    people: &'static str,
    policy: &'static str,
    agent: &'static str,
}

const DECLARED: Declared = Declared {
    people: "[{id: ada}, {id: ben, mayStart: {processes: [], agents: []}}, {id: cid, aiSeat: false}, \
        {id: dan, active: false}]",
    policy: "{processes: {processes: {mode: ALL}, allowSystem: true}, \
        agents: {agents: {mode: ALL}, allowSystem: true}}",
    agent: "{model: m/1, tools: [decide, ask, search], mcpServers: [small]}",
};

impl Declared {
    fn snapshot(&self) -> Snapshot {
        let files = Files::new(&[
            ("p.bpmn", "normal:"),
            ("1.yaml", &document("Workspace", "demo", &format!("{{people: {}}}", self.people))),
            ("2.yaml", &document("Process", "count", "{file: p.bpmn}")),
            (
                "3.yaml",
                &document("Project", "shop", &format!("{{version: '1', policy: {}}}", self.policy)),
            ),
            ("4.yaml", &document("Agent", "coach", self.agent)),
            ("5.yaml", &document("Agent", "other", "{model: m/1}")),
            (
                "6.yaml",
                &document("Tool", "decide", "{description: D., processStart: {process: count}}"),
            ),
            ("7.yaml", &document("Tool", "ask", "{description: A., agent: other}")),
            (
                "8.yaml",
                &document("Tool", "search", "{description: S., mcp: {server: small, tool: find}}"),
            ),
            ("9.yaml", &document("McpServer", "small", "{stdio: {command: small}, only: [find]}")),
        ]);
        Snapshot::merge(None, files.load().unwrap()).unwrap().snapshot
    }

    fn calls(&self, user: Option<&str>, tool: &str) -> bool {
        let (project, user) = (name("shop"), user.map(name));
        let by = Acting { project: &project, user: user.as_ref() };
        self.snapshot().may_call(by, &name("coach"), tool)
    }
}

#[test]
fn a_tool_can_be_called_as_long_as_agent_policy_and_person_allow_it() {
    for tool in ["decide", "ask", "search", "small__find"] {
        assert!(DECLARED.calls(Some("ada"), tool), "{tool}");
        assert!(DECLARED.calls(None, tool), "{tool}");
        let agent = "{model: m/1}";
        assert!(!Declared { agent, ..DECLARED }.calls(Some("ada"), tool), "{tool} is not named");
    }
    for tool in ["nobody", "small__other", "none__find", "getSkill"] {
        assert!(!DECLARED.calls(Some("ada"), tool), "{tool}");
    }
    // The person's own rights, for what the tool starts.
    for user in ["ben", "dan"] {
        assert!(!DECLARED.calls(Some(user), "decide") && !DECLARED.calls(Some(user), "ask"));
        assert!(DECLARED.calls(Some(user), "search"));
    }
    assert!(DECLARED.calls(Some("cid"), "decide") && !DECLARED.calls(Some("cid"), "ask"));
    assert!(DECLARED.calls(Some("stranger"), "decide") && DECLARED.calls(Some("stranger"), "ask"));
    // The policy of the project.
    let policy = "{processes: {processes: {mode: ALL_EXCEPT, processInfoIds: [count]}}, \
        agents: {agents: {mode: ONLY, agentIds: [coach]}}}";
    let picky = Declared { policy, ..DECLARED };
    assert!(!picky.calls(Some("ada"), "decide") && !picky.calls(Some("ada"), "ask"));
    let people_only = Declared {
        policy: "{processes: {processes: {mode: ALL}}, agents: {agents: {mode: ALL}}}",
        ..DECLARED
    };
    assert!(people_only.calls(Some("ada"), "decide") && !people_only.calls(None, "decide"));
    assert!(people_only.calls(Some("ada"), "ask") && !people_only.calls(None, "ask"));
    let nothing = Declared { policy: "{}", ..DECLARED };
    assert!(!nothing.calls(None, "decide") && nothing.calls(None, "search"));
}

#[test]
fn a_run_may_go_on_until_its_agent_is_switched_off_or_its_person_may_not_use_it() {
    let may = |declared: &Declared, user: Option<&str>| {
        declared.snapshot().may_go_on(&name("coach"), user.map(name).as_ref())
    };
    for user in [None, Some("ada"), Some("cid"), Some("stranger")] {
        assert_eq!(may(&DECLARED, user), Ok(()), "{user:?}");
    }
    for user in ["ben", "dan"] {
        assert_eq!(may(&DECLARED, Some(user)), Err(Withdrawn::AccessDenied), "{user}");
    }
    let own = Declared { agent: "{model: m/1, users: [cid]}", ..DECLARED };
    assert_eq!(may(&own, Some("ada")), Err(Withdrawn::AccessDenied));
    assert_eq!((may(&own, Some("cid")), may(&own, None)), (Ok(()), Ok(())));
    let off = Declared { agent: "{model: m/1, state: inactive}", ..DECLARED };
    assert_eq!(may(&off, None), Err(Withdrawn::AgentInactive));
}
