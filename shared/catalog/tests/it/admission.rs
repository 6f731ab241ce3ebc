//! What a snapshot tells admission.

use runfleet_catalog::Snapshot;
use runfleet_domain::Name;
use runfleet_domain::admission::{AgentWish, CreditsUsed, Facts, Wish};
use runfleet_domain::limits::StartLimits;
use serde_json::json;

use crate::bundle::{Files, document};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn snapshot(workspace: &str) -> Snapshot {
    let files = Files::new(&[
        ("p.bpmn", "normal: amount:number!"),
        ("sub.bpmn", "sub:"),
        ("1.yaml", &document("Workspace", "demo", workspace)),
        ("2.yaml", &document("Process", "count", "{file: p.bpmn}")),
        ("3.yaml", &document("Process", "part", "{file: sub.bpmn}")),
        ("4.yaml", &document("Process", "old", "{file: p.bpmn, state: inactive}")),
        ("5.yaml", &document("Agent", "coach", "{model: m/1, creditLimit: 5}")),
        ("6.yaml", &document("Agent", "free", "{model: m/2, creditLimit: 0}")),
        ("7.yaml", &document("Agent", "gone", "{model: m/1, state: inactive}")),
        (
            "8.yaml",
            &document(
                "Project",
                "shop",
                "{version: '1', jobs: [{key: done}], limits: {hops: 4, capabilityCalls: {job: 7}},
                  policy: {processes: {processes: {mode: ALL}}}}",
            ),
        ),
    ]);
    Snapshot::merge(None, files.load().unwrap()).unwrap().snapshot
}

const PEOPLE: &str = "people: [
    {id: ada},
    {id: ben, aiSeat: false, mayStart: {agents: []}},
    {id: cid, account: false, active: false, mayStart: {processes: [part], agents: [coach]}}]";

/// CG-020, CG-021, CG-022, CG-026, CG-060
#[test]
fn only_what_is_declared_and_active_is_a_target() {
    let snapshot = snapshot("{}");
    let target = |id: &str, agent: bool| {
        let id = name(id);
        let agent = agent.then(AgentWish::default);
        let wish = Wish { target: &id, job: None, agent };
        let input = json!({"amount": 1});
        snapshot.rules(&name("shop"), None, &wish, input.as_object(), true).target
    };
    let count = target("count", false).unwrap();
    assert_eq!((count.version, count.startable, count.deadline_seconds), (1, true, Some(60)));
    assert!(!target("part", false).unwrap().startable);
    assert_eq!(target("old", false), None);
    assert_eq!(target("coach", false), None, "an agent is no Process");
    assert_eq!(target("coach", true).unwrap().version, 1);
    assert_eq!(target("gone", true), None);
    assert_eq!(target("count", true), None);
}

/// CG-027
#[test]
fn inputs_are_the_variables_that_the_process_marks_as_input() {
    let snapshot = snapshot("{}");
    let bad = |input: Option<serde_json::Value>| {
        let count = name("count");
        let wish = Wish { target: &count, job: None, agent: None };
        let input = input.as_ref().and_then(|input| input.as_object());
        let rules = snapshot.rules(&name("shop"), None, &wish, input, true);
        rules.target.unwrap().bad_input.map(|bad| bad.field)
    };
    assert_eq!(bad(Some(json!({"amount": 1}))), None);
    assert_eq!(bad(Some(json!({"amount": "1"}))).as_deref(), Some("input.amount"));
    assert_eq!(bad(Some(json!({"amount": 1, "more": 1}))).as_deref(), Some("input.more"));
    assert_eq!(bad(None).as_deref(), Some("input.amount"));
}

/// CG-116
#[test]
fn a_job_must_be_declared_by_the_project_and_limits_are_its_own() {
    let snapshot = snapshot("{}");
    let count = name("count");
    for (project, job, declared) in
        [("shop", "done", true), ("shop", "Done", false), ("no", "done", false)]
    {
        let job = job.parse().unwrap();
        let wish = Wish { target: &count, job: Some(&job), agent: None };
        let rules = snapshot.rules(&name(project), None, &wish, None, true);
        assert_eq!(rules.job_declared, declared);
        assert_eq!(rules.policy.is_some(), project == "shop");
    }
    let wish = Wish { target: &count, job: None, agent: None };
    let limits = snapshot.rules(&name("shop"), None, &wish, None, true).limits;
    assert_eq!(
        (limits.hops, limits.capability_calls.job, limits.capability_calls.route),
        (4, 7, 100)
    );
    assert_eq!(snapshot.rules(&name("no"), None, &wish, None, true).limits, StartLimits::DEFAULT);
}

/// CG-013, CG-014, CG-074
#[test]
fn rights_and_seats_are_those_of_each_person() {
    let snapshot = snapshot(&format!("{{{PEOPLE}}}"));
    let facts = |user: &str, target: &str, agent: bool, recipient: &str| {
        let (user, target, recipient) = (name(user), name(target), name(recipient));
        let agent =
            agent.then(|| AgentWish { recipient: Some(&recipient), ..AgentWish::default() });
        let wish = Wish { target: &target, job: None, agent };
        snapshot.facts(Some(&user), &wish, CreditsUsed::default())
    };
    assert_eq!(facts("ada", "coach", true, "ada"), Facts::GOOD);
    let ben = facts("ben", "coach", true, "ben");
    assert!(ben.person.account && !ben.person.may_start && !ben.person.ai_seat);
    assert!(ben.recipient.exists && !ben.recipient.may_use && !ben.recipient.ai_seat);
    let cid = facts("cid", "part", false, "ada").person;
    assert!(cid.may_start && !cid.active && !cid.account);
    assert!(!facts("ada", "coach", true, "cid").recipient.exists);
    assert!(!facts("ada", "coach", true, "nobody").recipient.exists);
    assert!(!facts("nobody", "coach", true, "ada").person.active);
}

/// CG-160
#[test]
fn billing_says_what_a_workspace_has_paid_for_and_no_billing_limits_nothing() {
    let billing = |workspace: &str, agent: &str| {
        snapshot(workspace).billing_facts(&name(agent), CreditsUsed::default())
    };
    assert_eq!(billing("{}", "free"), Facts::GOOD.billing);
    let paid =
        "{billing: {credits: 9, prices: [{model: m/1, inputPerMillion: 1, outputPerMillion: 2}]}}";
    assert_eq!(billing(paid, "coach"), Facts::GOOD.billing);
    let free = billing(paid, "free");
    assert!(!free.agent_credits && !free.model_priced && free.credits && free.subscription);
    let empty = billing("{billing: {subscription: false, credits: 0}}", "coach");
    assert!(!empty.subscription && !empty.credits && !empty.model_priced);
    assert!(billing("{billing: {credits: unlimited}}", "coach").credits);
}

/// CG-160, CG-161
#[test]
fn credits_are_left_until_as_many_were_charged_as_were_given() {
    let paid = "{billing: {credits: 9, prices: [{model: m/1, inputPerMillion: 1, \
        outputPerMillion: 2, cachedPerMillion: 0}]}}";
    let snapshot_of = snapshot(paid);
    let left = |workspace: u64, agent: u64| {
        let facts = snapshot_of.billing_facts(&name("coach"), CreditsUsed { workspace, agent });
        (facts.credits, facts.agent_credits)
    };
    assert_eq!(left(8_999_999, 4_999_999), (true, true));
    assert_eq!(left(9_000_000, 4_999_999), (false, true));
    assert_eq!(left(8_999_999, 5_000_000), (true, false));
    assert!(snapshot_of.limits_credits(&name("coach")));
    // Without billing an agent's own limit has no meaning, and nobody need be asked.
    assert!(!snapshot("{}").limits_credits(&name("coach")));
    assert!(!snapshot("{billing: {credits: unlimited}}").limits_credits(&name("nobody")));
}

/// CG-074
#[test]
fn a_workspace_without_delivery_delivers_nothing() {
    let snapshot = snapshot(&format!("{{delivery: false, {PEOPLE}}}"));
    assert!(!snapshot.recipient_facts(&name("ada"), &name("coach")).delivery);
}
