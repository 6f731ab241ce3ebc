//! Work for others: attempts, pauses, answers that come late or twice, incidents.

use runfleet_flow::{AwaitedView, Doing, Effect, Event, FailureCode, Status};
use serde_json::{Map, Value, json};

use crate::play::{Play, cut, play, play_with};
use crate::support::{map, parse, through};

/// What the engine asked for, as task and attempt.
fn asks(run: &Play) -> Vec<(u64, u32)> {
    let asks = run.effects.iter().filter_map(|effect| match effect {
        Effect::Ask(ask) => Some((ask.task, ask.attempt)),
        _ => None,
    });
    asks.collect()
}

fn done(task: u64, attempt: u32) -> Event {
    Event::TaskDone { task, attempt, answer: json!({"late": true}) }
}

fn failed(task: u64, attempt: u32) -> Event {
    Event::TaskFailed { task, attempt, code: "BUSY".to_owned(), retry: true, after_ms: None }
}

const THREE: &str = "A: task a | pauses 5 30 | retries 4\n start -> A -> end";

#[test]
fn attempts_come_after_their_pauses_and_then_there_is_an_incident() {
    cut(|| {
        let mut run = play(THREE);
        let task = run.one("A").0;
        for (attempt, pause) in [(1, 5), (2, 30), (3, 30)] {
            assert_eq!(run.one("A"), (task, attempt));
            run.failed("A", "BUSY", true, None);
            assert!(matches!(run.all("A")[0].1, Doing::Pausing { attempt: a, .. } if a == attempt));
            assert_eq!(run.due("A"), [pause]);
            run.pass(pause - 1);
            assert_eq!(asks(&run).len(), attempt as usize);
            run.pass(1);
        }
        run.failed("A", "BUSY", true, None);
        let Doing::Incident { code, attempt: 4, since, .. } = &run.all("A")[0].1 else {
            panic!("{:?}", run.all("A"));
        };
        assert_eq!((code.as_str(), *since), ("BUSY", run.now_ms));
        assert_eq!(run.status, Status::Waiting { wake_ms: None });
        assert_eq!(run.state.incidents(), 1);
        assert_eq!(asks(&run), [(task, 1), (task, 2), (task, 3), (task, 4)]);
    });
}

#[test]
fn a_retry_grants_all_attempts_again() {
    for one in [true, false] {
        cut(|| {
            let mut run = play("A: task a | pauses 5 30 | retries 2\n start -> A -> end");
            let task = run.one("A").0;
            run.ignores(Event::Retry { task: Some(task) });
            run.failed("A", "BUSY", true, None);
            run.ignores(Event::Retry { task: None });
            run.pass(5);
            run.failed("A", "BUSY", true, None);
            assert_eq!(run.state.incidents(), 1);
            run.ignores(Event::Retry { task: Some(task + 1) });
            run.tell(Event::Retry { task: one.then_some(task) });
            assert_eq!(run.state.incidents(), 0);
            assert_eq!(run.one("A"), (task, 3));
            run.failed("A", "BUSY", true, None);
            // The pauses begin anew.
            assert_eq!(run.due("A"), [5]);
            run.pass(5);
            run.done("A");
            run.ends("A");
        });
    }
}

#[test]
fn one_retry_reaches_one_incident_or_all() {
    cut(|| {
        let mut run = play("A: task a | times 3\n start -> A -> end");
        for n in (0..3).rev() {
            let (task, attempt) = run.nth("A", n);
            let code = "NO".to_owned();
            run.tell(Event::TaskFailed { task, attempt, code, retry: false, after_ms: None });
        }
        assert_eq!(run.state.incidents(), 3);
        run.tell(Event::Retry { task: Some(run.nth("A", 1).0) });
        assert_eq!(run.state.incidents(), 2);
        run.tell(Event::Retry { task: None });
        assert_eq!(run.state.incidents(), 0);
        run.all_done(&["A", "A", "A"]);
        run.ends("A A A A");
    });
}

#[test]
fn a_wish_to_wait_lengthens_the_pause_up_to_a_day() {
    for (wish_ms, pause) in [(1_000, 5), (90_000, 90), (u64::MAX, 86_400)] {
        cut(|| {
            let mut run = play(THREE);
            run.failed("A", "BUSY", true, Some(wish_ms));
            assert_eq!(run.due("A"), [pause]);
        });
    }
}

#[test]
fn an_attempt_that_is_not_answered_in_time_has_failed() {
    cut(|| {
        let mut run = play("A: task a | timeout 60 | pauses 1 | retries 2\n start -> A -> end");
        let task = run.one("A").0;
        run.pass(59);
        assert_eq!(asks(&run).len(), 1);
        run.pass(1);
        assert!(matches!(run.all("A")[0].1, Doing::Pausing { .. }));
        run.ignores(done(task, 1));
        run.pass(1);
        assert_eq!(asks(&run), [(task, 1), (task, 2)]);
        run.pass(60);
        let Doing::Incident { code, .. } = &run.all("A")[0].1 else { panic!("{:?}", run.all("A")) };
        assert_eq!(code, "TASK_TIMEOUT");
        run.ignores(done(task, 2));
    });
}

#[test]
fn what_comes_twice_or_late_or_for_another_attempt_changes_nothing() {
    cut(|| {
        let mut run = play("A: task a | pauses 1\n B: task b\n start -> A -> B -> end");
        let task = run.one("A").0;
        for event in [done(task, 2), done(task, 0), done(task + 9, 1), failed(task, 7)] {
            run.ignores(event);
        }
        run.tell(failed(task, 1));
        for event in [failed(task, 1), done(task, 1)] {
            run.ignores(event);
        }
        run.pass(1);
        run.ignores(done(task, 1));
        run.tell(done(task, 2));
        run.waits("A");
        let error =
            Event::TaskError { task, attempt: 2, code: "E".to_owned(), variables: Map::new() };
        let child = Event::ChildEnded { task, output: None, failed: None };
        let user = Event::UserDone { task, variables: Map::new() };
        for event in [done(task, 2), failed(task, 2), error, child, user] {
            run.ignores(event);
        }
        let second = run.one("B").0;
        for event in [
            Event::UserDone { task: second, variables: Map::new() },
            Event::UserAssigned { task: second, assignee: None },
            Event::ChildEnded { task: second, output: None, failed: Some("E".to_owned()) },
            Event::Message { subscription: second, variables: Map::new() },
            Event::Message { subscription: 99, variables: Map::new() },
        ] {
            run.ignores(event);
        }
        run.done("B");
        run.ends("A B");
    });
}

#[test]
fn two_answers_in_one_slice_are_one() {
    let mut run = play("A: task a\n start -> A -> B -> end");
    let (task, attempt) = run.one("A");
    run.rest(vec![done(task, attempt), done(task, attempt), failed(task, attempt)]);
    run.ends("A B");
    assert_eq!(run.ignored, 2);
}

#[test]
fn a_failure_without_hope_is_an_incident_at_once_or_ends_the_run() {
    cut(|| {
        let mut run = play(THREE);
        run.failed("A", "BAD_REQUEST", false, None);
        assert_eq!(run.state.incidents(), 1);
        let mut run = play(&format!("fail\n{THREE}"));
        run.failed("A", "BAD_REQUEST", false, None);
        run.fails(FailureCode::TaskFailed, "A", Some("BAD_REQUEST"));
    });
}

#[test]
fn the_word_for_a_failure_is_cut_to_what_a_word_is() {
    let mut run = play(THREE);
    run.failed("A", &format!("a secret: {}", "x".repeat(100)), false, None);
    let Doing::Incident { code, .. } = &run.all("A")[0].1 else { panic!("{:?}", run.all("A")) };
    assert_eq!(*code, format!("asecret{}", "x".repeat(57)));
}

#[test]
fn a_failure_for_good_can_be_an_error_of_the_drawing() {
    let model = "A: task a | retries 1 | header errorExpression = =if error.code = \"GONE\" then {errorType: \"bpmnError\", code: \"LOST\", variables: {why: error.code}} else null\n b: on A error LOST\n start -> A -> end\n b -> B -> end";
    cut(|| {
        let mut run = play(model);
        run.failed("A", "GONE", true, None);
        run.ends("-A B");
        assert_eq!(run.value("why"), json!("GONE"));
        let mut run = play(model);
        run.failed("A", "OTHER", true, None);
        assert_eq!(run.state.incidents(), 1);
    });
}

#[test]
fn a_task_with_an_incident_can_be_interrupted_like_any_other() {
    cut(|| {
        let mut run = play("A: task a\n b: on A signal stop\n start -> A -> end\n b -> B -> end");
        run.failed("A", "NO", false, None);
        run.signal("stop");
        run.ends("-A B");
        assert_eq!(run.state.incidents(), 0);
    });
}

#[test]
fn the_number_of_attempts_can_be_computed() {
    for (tries, attempts) in [(json!(2), 2), (json!("3"), 3), (json!(0), 1)] {
        let mut run = play_with(
            "input tries\n A: task a | pauses 1 | retries =tries\n start -> A -> end",
            json!({"tries": tries}),
        );
        while run.state.incidents() == 0 {
            run.failed("A", "NO", true, None);
            run.pass(1);
        }
        assert_eq!(asks(&run).len(), attempts, "{tries}");
    }
    for tries in [json!(-1), json!(1.5), json!("many"), json!(null), json!([])] {
        let run = play_with(
            "input tries\n A: task a | retries =tries\n start -> A -> end",
            json!({"tries": tries}),
        );
        run.fails(FailureCode::NumberExpected, "A", None);
    }
}

#[test]
fn an_answer_goes_where_the_task_says() {
    for (parts, answer, found) in [
        ("", json!({"a": 1, "b": {"c": 2}}), json!({"a": 1, "b": {"c": 2}, "r": null})),
        (" | result r", json!({"a": 1}), json!({"a": null, "b": null, "r": {"a": 1}})),
        (" | result r", json!("text"), json!({"a": null, "b": null, "r": "text"})),
        ("", json!("text"), json!({"a": null, "b": null, "r": null})),
        (" | header resultVariable = r", json!([1]), json!({"a": null, "b": null, "r": [1]})),
        (
            " | header resultExpression = ={b: response.a + 1}",
            json!({"a": 1}),
            json!({"a": null, "b": 2, "r": null}),
        ),
        (
            " | result r | header resultExpression = =if response.a > 1 then {b: 2} else null",
            json!({"a": 1}),
            json!({"a": null, "b": null, "r": {"a": 1}}),
        ),
        (" | out b = a + 1", json!({"a": 1}), json!({"a": null, "b": 2, "r": null})),
    ] {
        cut(|| {
            let mut run = play(&format!("output a b r\n A: task t{parts}\n start -> A -> end"));
            run.done_with("A", answer.clone());
            assert_eq!(run.output(), found, "{parts}");
        });
    }
    // What an HTTP server says is taken only where somebody names it.
    for (parts, found) in [
        ("", json!({"body": null, "r": null})),
        (" | out r = body", json!({"body": null, "r": "b"})),
    ] {
        let mut run = play(&format!("output body r\n A: task http{parts}\n start -> A -> end"));
        run.done_with("A", json!({"status": 200, "headers": {}, "body": "b"}));
        assert_eq!(run.output(), found);
    }
}

#[test]
fn a_task_for_a_person_says_who_may_do_it_and_follows_who_has_it() {
    cut(|| {
        let mut run = play_with(
            "input who\n output ok\n A: user | assignee who\n start -> A -> end",
            json!({"who": "ann"}),
        );
        let assignee = |run: &Play| match &run.all("A")[0].1 {
            Doing::Person { assignee, .. } => assignee.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(assignee(&run).as_deref(), Some("ann"));
        let task = run.one("A").0;
        run.tell(Event::UserAssigned { task, assignee: Some("bob".to_owned()) });
        assert_eq!(assignee(&run).as_deref(), Some("bob"));
        run.tell(Event::UserAssigned { task, assignee: None });
        assert_eq!(assignee(&run), None);
        run.done_with("A", json!({"ok": true}));
        assert_eq!(run.output(), json!({"ok": true}));
    });
}

#[test]
fn a_task_beside_another_path_is_asked_once() {
    cut(|| {
        let mut run = play("g: and\n A: task a\n start -> g -> A -> end\n g -> B -> end");
        assert_eq!(asks(&run).len(), 1);
        run.done("A");
        run.ends("B A");
    });
}

#[test]
fn a_message_or_signal_that_is_sent_carries_what_its_mappings_say_and_is_told_until_the_next_slice()
{
    cut(|| {
        let mut run = play_with(
            "input x\n M: throw msg paid x | in sum2 = x + 1\n S: throw signal gone\n U: user\n start -> M -> S -> U -> end",
            json!({"x": 5}),
        );
        let sent: Vec<Value> = run
            .effects
            .iter()
            .map(|effect| match effect {
                Effect::Message { name, key, variables, .. } => json!([name, key, variables]),
                Effect::Signal { name, variables, .. } => json!([name, variables]),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sent, [json!(["paid", "5", {"sum2": 6}]), json!(["gone", {}])]);
        run.done("U");
        assert_eq!(run.state.sent(), []);
    });
}

#[test]
fn a_correlation_key_is_a_text_or_a_number_and_the_same_on_both_sides() {
    for (x, key) in [
        (json!("k"), "k"),
        (json!(7), "7"),
        (json!(-3), "-3"),
        (json!(1.5), "1.5"),
        (json!(7.0), "7"),
        (json!(""), ""),
    ] {
        let run = play_with(
            "input x\n g: and\n M: throw msg paid x\n C: catch msg paid x\n start -> g -> M -> end\n g -> C -> end",
            json!({"x": x}),
        );
        let awaited = run.state.view(None).awaited;
        let [AwaitedView::Message { key: Some(awaited), .. }] = &awaited[..] else {
            panic!("{awaited:?}");
        };
        assert_eq!(awaited, key);
        assert!(
            matches!(&run.effects[0], Effect::Message { key: Some(sent), .. } if sent == key),
            "{:?}",
            run.effects
        );
    }
    for x in [json!(null), json!(true), json!([1]), json!("x".repeat(257))] {
        let run = play_with("input x\n C: catch msg paid x\n start -> C -> end", json!({"x": x}));
        run.fails(FailureCode::TextExpected, "C", None);
    }
}

#[test]
fn a_called_process_gets_what_the_drawing_says_and_its_output_comes_back() {
    for (parts, exact, input) in [
        ("", false, json!({"x": 1, "y": 2})),
        (" | in y = 3", false, json!({"x": 1, "y": 3})),
        (" | exact | in a = x + y", true, json!({"a": 3})),
        (" | exact", true, json!({})),
    ] {
        cut(|| {
            let run = play_with(
                &format!("input x y\n A: call other{parts}\n start -> A -> end"),
                json!({"x": 1, "y": 2}),
            );
            let Effect::Call { process, input: given, exact: how, .. } = &run.effects[0] else {
                panic!("{:?}", run.effects);
            };
            assert_eq!((process.as_str(), json!(given), *how), ("other", input.clone(), exact));
        });
    }
    for (parts, found) in [
        ("", json!({"a": 1, "b": null})),
        (" | quiet", json!({"a": null, "b": null})),
        (" | out b = a", json!({"a": null, "b": 1})),
        (" | quiet | out b = a", json!({"a": null, "b": 1})),
    ] {
        let mut run = play(&format!("output a b\n A: call other{parts}\n start -> A -> end"));
        run.done_with("A", json!({"a": 1}));
        assert_eq!(run.output(), found, "{parts}");
    }
    let mut run = play("A: call other\n start -> A -> end");
    let task = run.one("A").0;
    run.tell(Event::ChildEnded { task, output: None, failed: None });
    run.ends("A");
    assert_eq!(map(json!({})), Map::new());
}

/// A message that a throw event, and then an end event, has somebody else send.
fn thrown_by_others() -> String {
    let sends = |work: &str| {
        format!(
            r#"<extensionElements><zeebe:taskDefinition type="{work}" retries="2"/><zeebe:ioMapping>
            <zeebe:input source="=x" target="to"/></zeebe:ioMapping></extensionElements>
            <messageEventDefinition messageRef="Nameless"/>"#
        )
    };
    let events = format!(
        r#"<intermediateThrowEvent id="Tell">{}</intermediateThrowEvent><endEvent id="Last">{}</endEvent>"#,
        sends("tell"),
        sends("tell-last"),
    );
    let document = through(&events, "").replace(r#"<endEvent id="e"/>"#, "");
    document.replace(r#"Ref="t""#, r#"Ref="Tell""#).replace(r#"Ref="e""#, r#"Ref="Last""#)
}

#[test]
fn an_event_whose_message_somebody_else_sends_is_asked_for_tried_again_and_then_left() {
    let definition = std::sync::Arc::new(parse(&thrown_by_others()));
    cut(|| {
        let mut run = Play::new(&definition, json!({"x": "ada"}));
        run.rest(Vec::new());
        let Some(Effect::Ask(ask)) = run.effects.last() else { panic!("{:?}", run.effects) };
        assert_eq!((ask.work.as_str(), ask.variables.get("to")), ("tell", Some(&json!("ada"))));
        run.failed("Tell", "BUSY", true, None);
        run.pass(5);
        let (task, attempt) = run.one("Tell");
        assert_eq!(attempt, 2, "the next attempt of the same event");
        run.done("Tell");
        run.ignores(done(task, attempt));
        let Some(Effect::Ask(ask)) = run.effects.last() else { panic!("{:?}", run.effects) };
        assert_eq!(ask.work, "tell-last");
        assert!(matches!(run.status, Status::Waiting { .. }), "the end waits for its message");
        run.failed("Last", "BUSY", true, None);
        run.pass(5);
        run.failed("Last", "BUSY", true, None);
        assert_eq!(run.state.incidents(), 1, "an end event has an incident like a task");
        run.tell(Event::Retry { task: None });
        run.done("Last");
        run.ends("Tell Last");
    });
}

const AGENT: &str = "A: task runfleet:agent | header agentId = coach | header instruction = Look.";

#[test]
fn an_agent_is_asked_once_and_its_answer_is_taken_where_somebody_names_it() {
    for (parts, found) in [
        ("", json!({"text": null, "r": null})),
        (" | out r = text", json!({"text": null, "r": "Hello."})),
        (" | result r", json!({"text": null, "r": {"text": "Hello.", "result": null}})),
    ] {
        cut(|| {
            let mut run = play(&format!("output text r\n {AGENT}{parts}\n start -> A -> end"));
            run.done_with("A", json!({"text": "Hello.", "result": null}));
            assert_eq!(run.output(), found, "{parts}");
        });
    }
    cut(|| {
        let mut run = play(&format!("{AGENT}\n start -> A -> end"));
        run.failed("A", "LLM_NETWORK", true, None);
        assert_eq!((run.state.incidents(), asks(&run).len()), (1, 1));
    });
    let mut run = play(&format!("{AGENT} | retries 2 | pauses 0\n start -> A -> end"));
    run.failed("A", "LLM_NETWORK", true, None);
    run.pass(1);
    assert_eq!(asks(&run).len(), 2);
}

#[test]
fn a_failed_agent_is_caught_by_its_code_and_one_that_is_left_is_called_off() {
    let model = format!(
        "{AGENT}\n x: on A error MAX_TURNS\n t: on A timer PT1M\n start -> A -> end\n x -> X -> end\n t -> T -> end"
    );
    cut(|| {
        let mut run = play(&model);
        run.failed("A", "MAX_TURNS", false, None);
        run.ends("-A X");
        assert!(!run.effects.iter().any(|effect| matches!(effect, Effect::CancelCall { .. })));
    });
    cut(|| {
        let mut run = play(&model);
        let task = run.one("A").0;
        run.failed("A", "TIMEOUT", false, None);
        assert_eq!(run.state.incidents(), 1, "nobody catches this one");
        assert!(run.state.wants_child_of(task) && !run.state.calls());
    });
    cut(|| {
        let mut run = play(&model);
        let task = run.one("A").0;
        assert!(run.state.calls());
        run.pass(60);
        run.ends("-A T");
        assert!(run.effects.contains(&Effect::CancelCall { task }));
    });
}

#[test]
fn an_agent_has_a_while_to_tell_its_own_end_before_it_is_given_up() {
    let mut run = play(&format!("{AGENT} | timeout 60\n start -> A -> end"));
    run.pass(69);
    assert_eq!(run.state.incidents(), 0);
    run.pass(1);
    assert_eq!(run.state.incidents(), 1);
}
