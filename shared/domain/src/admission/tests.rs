//! The whole table of admission, without any I/O.

use super::*;
use crate::policy::{AgentPolicy, ProcessPolicy, Selector, SelectorMode};

/// Everything that a decision is made of, changed by one defect at a time.
#[expect(clippy::struct_excessive_bools, reason = "one field for each thing that can be wrong")]
struct Case {
    source: Source,
    read_only: bool,
    expired: bool,
    user: Option<Name>,
    hops: u32,
    depth: u32,
    agent: bool,
    run_as: Option<RunAs>,
    auto_approve: bool,
    job: Option<JobKey>,
    enabled: bool,
    policy: Option<Policy>,
    job_declared: bool,
    target: Option<Target>,
    facts: Facts,
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn all() -> Selector {
    Selector { mode: SelectorMode::All, ids: std::collections::BTreeSet::new() }
}

fn good(agent: bool) -> Case {
    Case {
        source: Source::Job,
        read_only: false,
        expired: false,
        user: Some(name("ada")),
        hops: 10,
        depth: 0,
        agent,
        run_as: None,
        auto_approve: agent,
        job: Some("done".parse().unwrap()),
        enabled: true,
        policy: Some(Policy {
            processes: Some(ProcessPolicy { processes: all(), allow_system: true }),
            agents: Some(AgentPolicy {
                agents: all(),
                allow_system: true,
                max_runs_per_day: 200,
                allow_auto_approve: true,
            }),
        }),
        job_declared: true,
        target: Some(Target {
            version: 3,
            startable: true,
            deadline_seconds: Some(60),
            bad_input: None,
        }),
        facts: Facts::GOOD,
    }
}

impl Case {
    fn processes(&mut self) -> &mut Option<ProcessPolicy> {
        &mut self.policy.as_mut().unwrap().processes
    }

    fn agents(&mut self) -> &mut Option<AgentPolicy> {
        &mut self.policy.as_mut().unwrap().agents
    }

    fn select_nothing(&mut self) {
        let nothing = Selector { mode: SelectorMode::Only, ids: [name("other")].into() };
        if let Some(section) = self.processes() {
            section.processes = nothing.clone();
        }
        if let Some(section) = self.agents() {
            section.agents = nothing;
        }
    }

    fn allow_no_system(&mut self) {
        if let Some(section) = self.processes() {
            section.allow_system = false;
        }
        if let Some(section) = self.agents() {
            section.allow_system = false;
        }
    }

    fn decide<T>(&self, rule: impl FnOnce(&Caller<'_>, &Wish<'_>, &Rules<'_>, &Facts) -> T) -> T {
        let (target, recipient) = (name("target"), name("ben"));
        let caller = Caller {
            source: self.source,
            read_only: self.read_only,
            expired: self.expired,
            user: self.user.as_ref(),
            hops: self.hops,
            depth: self.depth,
        };
        let agent = self.agent.then_some(AgentWish {
            run_as: self.run_as,
            auto_approve: self.auto_approve,
            recipient: Some(&recipient),
        });
        let wish = Wish { target: &target, job: self.job.as_ref(), agent };
        let rules = Rules {
            enabled: self.enabled,
            policy: self.policy.as_ref(),
            limits: StartLimits::DEFAULT,
            job_declared: self.job_declared,
            target: self.target.clone(),
        };
        rule(&caller, &wish, &rules, &self.facts)
    }

    fn start(&self) -> Result<Plan, Refusal> {
        self.decide(start)
    }

    fn get(&self) -> Result<Option<u32>, Refusal> {
        self.decide(|caller, wish, rules, _| get(caller, wish.kind(), rules))
    }

    fn operate(&self) -> Result<Option<u32>, Refusal> {
        self.decide(|caller, wish, rules, _| operate(caller, wish.kind(), rules))
    }
}

type Defect = fn(&mut Case);

/// NB-22
#[test]
fn conversations_are_the_persons_whatever_the_policy_says_and_readers_change_nothing() {
    let reads =
        |case: &Case| case.decide(|caller, wish, rules, _| chat(caller, wish.kind(), rules));
    let changes =
        |case: &Case| case.decide(|caller, wish, rules, _| change_chat(caller, wish.kind(), rules));
    let plain = Case { policy: None, ..good(true) };
    assert_eq!((reads(&plain), changes(&plain)), (Ok(Some(1_000)), Ok(Some(1_000))));
    let reader = Case { read_only: true, ..good(true) };
    assert_eq!((reads(&reader), changes(&reader)), (Ok(Some(1_000)), Err(Refusal::ReadOnly)));
    let before = Case { source: Source::TriggerBefore, ..good(true) };
    assert_eq!(reads(&before), Err(Refusal::TriggerReadOnly));
    let late = Case { expired: true, ..good(true) };
    assert_eq!(
        (reads(&late), changes(&late)),
        (Err(Refusal::TokenExpired), Err(Refusal::TokenExpired))
    );
    let off = Case { enabled: false, ..good(true) };
    assert_eq!(reads(&off), Err(Refusal::Disabled(RunKind::Agent)));
}

/// CG-077
#[test]
fn a_turn_needs_the_rights_and_the_seat_of_its_person_and_a_step() {
    let admitted = |case: &Case| case.decide(|caller, _, rules, facts| turn(caller, rules, facts));
    let plain = Case { policy: None, ..good(true) };
    assert_eq!(admitted(&plain), Ok(Turn { version: 3, hops: 9 }));
    let defects: [(Refusal, Defect); 9] = [
        (Refusal::NoHopsLeft, |case| case.hops = 0),
        (Refusal::TargetNotFound(RunKind::Agent), |case| case.target = None),
        (Refusal::PersonMayNot(RunKind::Agent), |case| case.facts.person.active = false),
        (Refusal::PersonMayNot(RunKind::Agent), |case| case.facts.person.may_start = false),
        (Refusal::SubscriptionRequired, |case| case.facts.billing.subscription = false),
        (Refusal::SeatRequired, |case| case.facts.person.ai_seat = false),
        (Refusal::InsufficientCredits, |case| case.facts.billing.credits = false),
        (Refusal::AgentCreditLimit, |case| case.facts.billing.agent_credits = false),
        (Refusal::ModelNotPriced, |case| case.facts.billing.model_priced = false),
    ];
    for (refusal, defect) in defects {
        let mut case = good(true);
        defect(&mut case);
        assert_eq!(admitted(&case), Err(refusal));
    }
}

/// The calls that an execution may make, none for any number, or why it may not call.
type Calls = Result<Option<u32>, Refusal>;

/// Every way in which the start of a Process can be refused, in the order of the checks.
fn defects_of_processes() -> Vec<(Refusal, Defect)> {
    const KIND: RunKind = RunKind::Process;
    let bad = BadInput { field: "input.n".to_owned(), problem: "must be a number" };
    vec![
        (Refusal::TriggerReadOnly, |case| case.source = Source::TriggerBefore),
        (Refusal::ReadOnly, |case| {
            case.source = Source::Action;
            case.read_only = true;
        }),
        (Refusal::TokenExpired, |case| case.expired = true),
        (Refusal::Disabled(KIND), |case| case.enabled = false),
        (Refusal::OutcomeInDevelopment(KIND), |case| case.source = Source::Development),
        (Refusal::SectionMissing(KIND), |case| *case.processes() = None),
        (Refusal::NotSelected(KIND), Case::select_nothing),
        (Refusal::SystemNotAllowed(KIND), |case| {
            case.user = None;
            case.allow_no_system();
        }),
        (Refusal::NoHopsLeft, |case| case.hops = 0),
        (Refusal::JobNotDeclared(KIND), |case| case.job_declared = false),
        (Refusal::TargetNotFound(KIND), |case| case.target = None),
        (Refusal::NotStartable, |case| {
            case.target.iter_mut().for_each(|target| target.startable = false);
        }),
        (Refusal::PersonMayNot(KIND), |case| case.facts.person.may_start = false),
        (Refusal::BadInput(bad), |case| {
            let bad = BadInput { field: "input.n".to_owned(), problem: "must be a number" };
            case.target.iter_mut().for_each(|target| target.bad_input = Some(bad.clone()));
        }),
    ]
}

/// The same for agents.
fn defects_of_agents() -> Vec<(Refusal, Defect)> {
    const KIND: RunKind = RunKind::Agent;
    vec![
        (Refusal::TriggerReadOnly, |case| case.source = Source::TriggerBefore),
        (Refusal::ReadOnly, |case| {
            case.source = Source::Action;
            case.read_only = true;
        }),
        (Refusal::TokenExpired, |case| case.expired = true),
        (Refusal::Disabled(KIND), |case| case.enabled = false),
        (Refusal::OutcomeInDevelopment(KIND), |case| case.source = Source::Development),
        (Refusal::NoCallerToRunAs, |case| {
            case.user = None;
            case.run_as = Some(RunAs::Caller);
        }),
        (Refusal::SectionMissing(KIND), |case| *case.agents() = None),
        (Refusal::NotSelected(KIND), Case::select_nothing),
        (Refusal::SystemNotAllowed(KIND), |case| {
            case.user = None;
            case.allow_no_system();
        }),
        (Refusal::AutoApproveNotAllowed, |case| {
            case.agents().iter_mut().for_each(|section| section.allow_auto_approve = false);
        }),
        (Refusal::NoHopsLeft, |case| case.hops = 0),
        (Refusal::TooDeep { limit: 3 }, |case| case.depth = 3),
        (Refusal::JobNotDeclared(KIND), |case| case.job_declared = false),
        (Refusal::TargetNotFound(KIND), |case| case.target = None),
        (Refusal::PersonMayNot(KIND), |case| case.facts.person.active = false),
        (Refusal::DeliveryUnavailable, |case| case.facts.recipient.delivery = false),
        (Refusal::RecipientNotFound, |case| case.facts.recipient.exists = false),
        (Refusal::RecipientAccessDenied, |case| case.facts.recipient.may_use = false),
        (Refusal::RecipientSeatRequired, |case| case.facts.recipient.ai_seat = false),
        (Refusal::SubscriptionRequired, |case| case.facts.billing.subscription = false),
        (Refusal::SeatRequired, |case| case.facts.person.ai_seat = false),
        (Refusal::InsufficientCredits, |case| case.facts.billing.credits = false),
        (Refusal::AgentCreditLimit, |case| case.facts.billing.agent_credits = false),
        (Refusal::ModelNotPriced, |case| case.facts.billing.model_priced = false),
    ]
}

fn check_each_alone_and_in_order(agent: bool, defects: &[(Refusal, Defect)]) {
    for (place, (expected, defect)) in defects.iter().enumerate() {
        let mut case = good(agent);
        defect(&mut case);
        assert_eq!(case.start().as_ref(), Err(expected), "alone");
        for (later, second) in &defects[place + 1..] {
            let mut case = good(agent);
            second(&mut case);
            defect(&mut case);
            assert_eq!(case.start().as_ref(), Err(expected), "{expected:?} comes before {later:?}");
        }
    }
}

/// CG-002, CG-003, CG-011, CG-013, CG-015, CG-026, CG-116, CG-145, CG-172
#[test]
fn each_refusal_of_a_process_has_its_place_in_the_order() {
    check_each_alone_and_in_order(false, &defects_of_processes());
}

/// CG-012, CG-019, CG-059, CG-060, CG-074, CG-146, CG-160, CG-162, CG-163
#[test]
fn each_refusal_of_an_agent_has_its_place_in_the_order() {
    check_each_alone_and_in_order(true, &defects_of_agents());
}

#[test]
fn every_refusal_is_in_a_table() {
    let listed: Vec<Refusal> = defects_of_processes()
        .into_iter()
        .chain(defects_of_agents())
        .map(|(refusal, _)| refusal)
        .chain([Refusal::DevelopmentReadOnly, Refusal::ProjectKey])
        .collect();
    let names: std::collections::BTreeSet<String> = listed
        .iter()
        .map(|refusal| format!("{refusal:?}").split(['(', ' ']).next().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 28, "a new refusal needs a line in a table: {names:?}");
}

/// CG-003, CG-170
#[test]
fn a_read_only_development_session_may_look_and_not_start() {
    let case = Case { source: Source::Development, read_only: true, job: None, ..good(false) };
    assert_eq!(case.start(), Err(Refusal::DevelopmentReadOnly));
    assert_eq!(case.get(), Ok(Some(100)));
}

/// CG-170
#[test]
fn a_development_session_starts_real_runs_when_it_may_write() {
    for agent in [false, true] {
        let case = Case { source: Source::Development, job: None, ..good(agent) };
        assert!(case.start().is_ok());
    }
}

/// CG-001
#[test]
fn every_kind_of_execution_but_a_trigger_before_a_change_may_start() {
    for agent in [false, true] {
        for source in Source::ALL {
            let case = Case { source, job: None, ..good(agent) };
            if source == Source::Host {
                // A project key is no execution.
                assert_eq!(case.start(), Err(Refusal::ProjectKey));
                continue;
            }
            let refused = case.start() == Err(Refusal::TriggerReadOnly);
            assert_eq!(refused, source == Source::TriggerBefore, "{source:?}");
            assert!(refused || case.start().is_ok(), "{source:?}");
        }
    }
}

/// CG-013
#[test]
fn a_person_must_be_active_with_an_account_and_the_right_of_their_own() {
    type Change = fn(&mut PersonFacts);
    let changes: [Change; 3] =
        [|who| who.active = false, |who| who.account = false, |who| who.may_start = false];
    for (agent, kind) in [(false, RunKind::Process), (true, RunKind::Agent)] {
        for change in changes {
            let mut case = good(agent);
            change(&mut case.facts.person);
            assert_eq!(case.start(), Err(Refusal::PersonMayNot(kind)));
        }
    }
}

/// CG-014
#[test]
fn a_person_without_an_account_cannot_start_a_process() {
    let mut case = good(false);
    case.facts.person.account = false;
    assert_eq!(case.start(), Err(Refusal::PersonMayNot(RunKind::Process)));
}

/// CG-015, CG-016, CG-018
#[test]
fn without_a_user_an_agent_acts_as_itself_and_nobody_is_asked_about_a_person() {
    for agent in [false, true] {
        let mut case = Case { user: None, auto_approve: false, ..good(agent) };
        case.facts.person =
            PersonFacts { active: false, account: false, may_start: false, ai_seat: false };
        assert_eq!(case.start().unwrap().run_as, RunAs::Agent);
    }
}

/// CG-059
#[test]
fn with_a_user_an_agent_acts_as_the_caller_unless_it_is_told_otherwise() {
    assert_eq!(good(true).start().unwrap().run_as, RunAs::Caller);
    let case = Case { run_as: Some(RunAs::Agent), ..good(true) };
    assert_eq!(case.start().unwrap().run_as, RunAs::Agent);
}

/// CG-019
#[test]
fn an_execution_without_a_user_never_approves_automatically() {
    let case = Case { user: None, ..good(true) };
    assert_eq!(case.start(), Err(Refusal::AutoApproveNotAllowed));
}

/// CG-075
#[test]
fn an_execution_without_a_user_may_name_a_recipient() {
    let case = Case { user: None, auto_approve: false, ..good(true) };
    assert!(case.start().is_ok());
}

/// CG-017
#[test]
fn asking_needs_the_section_and_no_selection_and_no_right() {
    for (agent, kind) in [(false, RunKind::Process), (true, RunKind::Agent)] {
        let mut case = Case { user: None, target: None, read_only: true, ..good(agent) };
        case.select_nothing();
        case.allow_no_system();
        assert_eq!(case.get(), Ok(Some(1_000)));
        if agent {
            *case.agents() = None;
        } else {
            *case.processes() = None;
        }
        assert_eq!(case.get(), Err(Refusal::SectionMissing(kind)));
        case.policy = None;
        assert_eq!(case.get(), Err(Refusal::SectionMissing(kind)));
    }
}

/// CG-002
#[test]
fn a_trigger_before_a_change_may_not_even_ask() {
    for agent in [false, true] {
        let case = Case { source: Source::TriggerBefore, ..good(agent) };
        assert_eq!(case.get(), Err(Refusal::TriggerReadOnly));
    }
}

/// CG-200
#[test]
fn operating_needs_what_asking_needs_and_the_right_to_write() {
    const KIND: RunKind = RunKind::Process;
    let case = |change: Defect| {
        let mut case = good(false);
        change(&mut case);
        case.operate()
    };
    let table: [(&str, Defect, Calls); 13] = [
        ("a job of a person", |_| {}, Ok(Some(1_000))),
        ("a job without a user", |case| case.user = None, Ok(Some(1_000))),
        ("a script", |case| case.source = Source::Script, Ok(Some(100))),
        ("a backfill", |case| case.source = Source::Batch, Ok(None)),
        ("without a selected Process", Case::select_nothing, Ok(Some(1_000))),
        ("without a step left", |case| case.hops = 0, Ok(Some(1_000))),
        (
            "a trigger before a change",
            |case| case.source = Source::TriggerBefore,
            Err(Refusal::TriggerReadOnly),
        ),
        ("an action that only reads", |case| case.read_only = true, Err(Refusal::ReadOnly)),
        (
            "a session that only reads",
            |case| (case.source, case.read_only) = (Source::Development, true),
            Err(Refusal::DevelopmentReadOnly),
        ),
        ("a development session", |case| case.source = Source::Development, Ok(Some(100))),
        ("an expired token", |case| case.expired = true, Err(Refusal::TokenExpired)),
        ("where it is switched off", |case| case.enabled = false, Err(Refusal::Disabled(KIND))),
        (
            "a project without the section",
            |case| *case.processes() = None,
            Err(Refusal::SectionMissing(KIND)),
        ),
    ];
    for (who, change, expected) in table {
        assert_eq!(case(change), expected, "{who}");
    }
}

/// CG-200
#[test]
fn whoever_may_operate_may_ask_and_whoever_only_reads_may_only_ask() {
    for source in Source::ALL {
        for read_only in [false, true] {
            let case = Case { source, read_only, ..good(false) };
            assert_eq!(case.operate().is_ok(), case.get().is_ok() && !read_only, "{source:?}");
        }
    }
}

/// CG-230
#[test]
fn a_project_key_starts_asks_and_calls_nothing() {
    for agent in [false, true] {
        let case = Case { source: Source::Host, job: None, ..good(agent) };
        assert_eq!(case.start(), Err(Refusal::ProjectKey));
        assert_eq!(case.get(), Err(Refusal::ProjectKey));
        assert_eq!(case.operate(), Err(Refusal::ProjectKey));
    }
    let caller = Caller {
        source: Source::Host,
        read_only: false,
        expired: false,
        user: None,
        hops: 10,
        depth: 0,
    };
    for writes in [false, true] {
        assert_eq!(call(&caller, writes, &StartLimits::DEFAULT), Err(Refusal::ProjectKey));
    }
}

/// CG-237
#[test]
fn code_of_a_project_calls_within_its_budget_and_reads_when_it_may_not_write() {
    let of = |source, read_only, expired| Caller {
        source,
        read_only,
        expired,
        user: None,
        hops: 10,
        depth: 0,
    };
    let calls = |caller: Caller<'_>, writes| call(&caller, writes, &StartLimits::DEFAULT);
    assert_eq!(calls(of(Source::Job, false, false), true), Ok(Some(1_000)));
    assert_eq!(calls(of(Source::Action, true, false), false), Ok(Some(100)));
    assert_eq!(calls(of(Source::Action, true, false), true), Err(Refusal::ReadOnly));
    assert_eq!(
        calls(of(Source::TriggerBefore, false, false), false),
        Err(Refusal::TriggerReadOnly)
    );
    assert_eq!(calls(of(Source::Script, false, true), false), Err(Refusal::TokenExpired));
}

/// CG-145
#[test]
fn a_start_uses_one_step_and_no_token_has_more_than_the_project_allows() {
    for (hops, carried) in [(10, 9), (1, 0), (1_000, 9)] {
        assert_eq!(Case { hops, ..good(false) }.start().unwrap().hops, carried);
    }
}

/// CG-146
#[test]
fn agents_nest_three_levels_and_processes_keep_the_depth() {
    for (depth, expected) in [(0, Ok(1)), (2, Ok(3)), (3, Err(Refusal::TooDeep { limit: 3 }))] {
        assert_eq!(Case { depth, ..good(true) }.start().map(|plan| plan.depth), expected);
    }
    assert_eq!(Case { depth: 3, ..good(false) }.start().unwrap().depth, 3);
}

/// CG-140, CG-141
#[test]
fn each_kind_of_execution_has_its_budgets_and_a_backfill_has_none() {
    const LIMITS: StartLimits = StartLimits::DEFAULT;
    assert_eq!(starts_limit(Source::Job, RunKind::Process, &LIMITS), Some(20));
    assert_eq!(starts_limit(Source::Job, RunKind::Agent, &LIMITS), Some(5));
    assert_eq!(starts_limit(Source::Batch, RunKind::Agent, &LIMITS), None);
    for (source, budget) in [
        (Source::Job, Some(1_000)),
        (Source::Schedule, Some(1_000)),
        (Source::Route, Some(100)),
        (Source::Script, Some(100)),
        (Source::Action, Some(100)),
        (Source::Webhook, Some(100)),
        (Source::Development, Some(100)),
        (Source::TriggerBefore, Some(20)),
        (Source::TriggerAfter, Some(100)),
        (Source::Batch, None),
    ] {
        assert_eq!(calls_budget(source, &LIMITS), budget, "{source:?}");
    }
}

/// CG-142, CG-143
#[test]
fn a_day_is_limited_by_the_project_for_processes_and_by_the_policy_for_agents() {
    assert_eq!(good(false).start().unwrap().day_limit, 1_000);
    assert_eq!(good(true).start().unwrap().day_limit, 200);
}

/// CG-021
#[test]
fn the_plan_names_the_active_version() {
    let plan = good(false).start().unwrap();
    assert_eq!((plan.version, plan.deadline_seconds), (3, Some(60)));
}
