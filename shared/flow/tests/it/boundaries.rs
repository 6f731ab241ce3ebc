//! Boundary events, on every kind of activity.

use runfleet_flow::{Event, FailureCode, Status};
use serde_json::{Map, json};

use crate::play::{Play, cut, play, play_with};

/// Makes something happen to a run.
type Happen = fn(&mut Play);

/// Every kind of activity that waits, with the name of what is inside it, if something is, and its end.
const HOSTS: [(&str, &str, &str); 9] = [
    ("A: task a", "", "A"),
    ("A: user", "", "A"),
    ("A: call other", "", "A"),
    ("A: receive answer", "", "A"),
    ("A: sub {\n B: task b\n start -> B -> end\n }", "B", "B A"),
    (
        "A: sub {\n B: sub {\n C: user\n start -> C -> end\n }\n start -> B -> end\n }",
        "C B",
        "C B A",
    ),
    ("A: task a | times 2 | seq", "A", "A A A"),
    ("A: sub | times 2 | seq {\n B: user\n start -> B -> end\n }", "B A", "B A B A A"),
    ("A: call other | times 2", "A A", "A A A"),
];

/// What makes boundary events happen, and how.
const TRIGGERS: [(&str, Happen); 5] = [
    ("timer PT30M", |play| play.pass(1_800)),
    ("date 2027-01-15T08:30:00Z", |play| play.pass(1_800)),
    ("cycle R3/PT30M", |play| play.pass(1_800)),
    ("msg stop", |play| play.message("stop", json!({}))),
    ("signal stop", |play| play.signal("stop")),
];

/// Lets the host end by itself.
fn finish(play: &mut Play) {
    while matches!(play.status, Status::Waiting { .. }) {
        let active = play.state.view(None).active;
        let open = ["C", "B", "A"].into_iter().find(|element| {
            use runfleet_flow::Doing::{Asked, Called, Person, Waiting};
            active.iter().any(|active| {
                active.element == *element
                    && matches!(
                        active.doing,
                        Asked { .. } | Called { .. } | Person { .. } | Waiting
                    )
            })
        });
        match open {
            Some("A")
                if play
                    .state
                    .subscriptions()
                    .iter()
                    .any(|s| format!("{s:?}").contains("answer")) =>
            {
                play.message("answer", json!({}));
            }
            Some(open) => play.done(open),
            None => return,
        }
    }
}

#[test]
fn an_interrupting_event_ends_any_activity_with_everything_in_it() {
    for (host, inside, _) in HOSTS {
        for (trigger, happen) in TRIGGERS {
            cut(|| {
                let model =
                    format!("{host}\n b: on A {trigger}\n start -> A -> D -> end\n b -> E -> end");
                let mut run = play(&model);
                run.waits("");
                happen(&mut run);
                let ended = inside.split(' ').filter(|id| !id.is_empty());
                let ended = ended.fold(String::new(), |text, id| text + "-" + id + " ");
                run.ends(&format!("{ended}-A E"));
            });
        }
    }
}

#[test]
fn an_activity_that_ends_by_itself_forgets_its_boundary_events() {
    for (host, _, path) in HOSTS {
        for (trigger, _) in TRIGGERS {
            cut(|| {
                let mut run = play(&format!(
                    "{host}\n b: on A {trigger}\n c: beside A signal other\n L: user\n start -> A -> L -> end\n b -> E -> end\n c -> E"
                ));
                finish_until_last(&mut run);
                assert_eq!(run.state.subscriptions(), []);
                assert_eq!(run.status, Status::Waiting { wake_ms: None });
                run.ignores(Event::Signal { name: "stop".to_owned(), variables: Map::new() });
                run.done("L");
                run.ends(&format!("{path} L"));
            });
        }
    }
}

fn finish_until_last(play: &mut Play) {
    while play.all("L").is_empty() {
        let before = play.slices;
        let open = ["C", "B", "A"].into_iter().find(|element| !play.all(element).is_empty());
        match open {
            Some("A")
                if play
                    .state
                    .subscriptions()
                    .iter()
                    .any(|s| format!("{s:?}").contains("answer")) =>
            {
                play.message("answer", json!({}));
            }
            Some(open) => play.done(open),
            None => {}
        }
        assert!(play.slices > before, "the host does not end: {:?}", play.state.view(None));
    }
}

#[test]
fn an_event_that_does_not_interrupt_happens_beside_any_activity() {
    for (host, _, path) in HOSTS {
        for (trigger, happen) in TRIGGERS {
            cut(|| {
                let model = format!(
                    "{host}\n b: beside A {trigger}\n start -> A -> D -> end\n b -> E -> end"
                );
                let mut run = play(&model);
                happen(&mut run);
                run.waits("E");
                finish(&mut run);
                run.ends(&format!("E {path} D"));
            });
        }
    }
}

#[test]
fn a_message_signal_or_cycle_happens_as_often_as_it_comes() {
    cut(|| {
        let mut run = play(
            "A: user
            m: beside A msg more
            s: beside A signal more
            c: beside A cycle R3/PT10S
            t: beside A timer PT25S
            start -> A -> end
            m -> M -> end
            s -> S -> end
            c -> C -> end
            t -> T -> end",
        );
        run.message("more", json!({}));
        run.signal("more");
        run.message("more", json!({}));
        run.signal("more");
        run.waits("M S M S");
        run.pass(20);
        run.waits("M S M S C C");
        run.pass(10);
        run.waits("M S M S C C T C");
        run.pass(3_600);
        run.waits("M S M S C C T C");
        run.done("A");
        run.ends("M S M S C C T C A");
    });
}

#[test]
fn a_cycle_that_was_missed_rings_once_and_keeps_its_beat() {
    let mut run = play("A: user\n c: beside A cycle R/PT10S\n start -> A -> end\n c -> C -> end");
    run.now_ms += 47_000;
    run.rest(Vec::new());
    run.waits("C");
    assert_eq!(run.due("c"), [3]);
    run.pass(13);
    run.waits("C C C");
}

#[test]
fn a_subscription_that_has_been_used_is_over() {
    let mut run = play("A: user\n m: beside A msg more\n start -> A -> end\n m -> M -> end");
    let subscription = run.subscription("more", None);
    run.message("more", json!({}));
    run.ignores(Event::Message { subscription, variables: Map::new() });
    assert_ne!(run.subscription("more", None), subscription);
}

/// What throws an error inside or at `A`.
const THROWERS: [(&str, Happen); 8] = [
    ("A: task a", |play| play.error("A", "NO_STOCK")),
    ("A: call other", |play| play.child_failed("A", "NO_STOCK")),
    ("A: call other | times 3", |play| play.child_failed("A", "NO_STOCK")),
    ("A: sub {\n x: end error NO_STOCK\n B: user\n start -> B -> x\n }", |play| play.done("B")),
    (
        "A: sub {\n g: and\n V: task v\n B: sub {\n C: sub {\n U: user\n x: end error NO_STOCK\n start -> U -> x\n }\n start -> C -> end\n }\n start -> g -> B -> end\n g -> V -> end\n }",
        |play| play.done("U"),
    ),
    ("A: sub | times 3 {\n B: user\n x: end error NO_STOCK\n start -> B -> x\n }", |play| {
        play.done("B");
    }),
    (
        "A: sub {\n B: user\n start -> B -> end\n X: eventsub msg wrong {\n x: end error NO_STOCK\n start -> x\n }\n }",
        |play| play.message("wrong", json!({})),
    ),
    (
        "A: task a | header errorExpression = =if response.no = true then {code: \"NO_STOCK\"} else null",
        |play| play.done_with("A", json!({"no": true})),
    ),
];

#[test]
fn an_error_is_caught_by_its_code_before_it_is_caught_as_any() {
    for (host, throw) in THROWERS {
        for (catchers, path) in [
            ("n: on A error NO_STOCK\n o: on A error OTHER\n a: on A error", "N"),
            ("a: on A error\n n: on A error NO_STOCK\n o: on A error OTHER", "N"),
            ("a: on A error\n o: on A error OTHER\n n: on A signal unused", "Z"),
        ] {
            cut(|| {
                let mut run = play(&format!(
                    "{host}\n{catchers}\n start -> A -> end\n n -> N -> end\n o -> O -> end\n a -> Z -> end"
                ));
                throw(&mut run);
                let shown = run.path();
                assert!(matches!(run.status, Status::Completed { .. }), "{:?} {shown}", run.status);
                assert!(shown.ends_with(&format!("-A {path}")), "{shown} in {host}");
            });
        }
    }
}

#[test]
fn an_error_that_nobody_catches_ends_the_run_with_its_code() {
    for (host, throw) in THROWERS {
        cut(|| {
            let mut run =
                play(&format!("{host}\n o: on A error OTHER\n start -> A -> end\n o -> O -> end"));
            throw(&mut run);
            let Status::Failed { code, error, .. } = &run.status else {
                panic!("{:?}", run.status)
            };
            assert_eq!(error.as_deref(), Some("NO_STOCK"));
            let called = host.starts_with("A: call");
            let expected =
                if called { FailureCode::CalledProcessFailed } else { FailureCode::UncaughtError };
            assert_eq!(*code, expected);
        });
    }
}

#[test]
fn an_error_goes_up_to_the_nearest_that_catches_it() {
    let model = "A: sub {
            B: sub {
                T: task t
                start -> T -> end
            }
            inner: on B error ONE
            start -> B -> end
            inner -> I -> end
        }
        outer: on A error
        start -> A -> end
        outer -> O -> end";
    cut(|| {
        let mut run = play(model);
        run.error("T", "ONE");
        run.ends("-T -B I A");
        let mut run = play(model);
        run.error("T", "TWO");
        run.ends("-T -B -A O");
        assert_eq!(run.value("why"), json!("TWO"));
    });
}

/// What throws an escalation inside `A` and goes on to `U` unless it is interrupted.
const ESCALATION: &str = "A: sub {
        T: throw escalation LATE
        U: user
        start -> T -> U -> end
    }";

#[test]
fn an_escalation_interrupts_or_does_not() {
    for (how, path, ends) in [("on", "T -A E", true), ("beside", "T E", false)] {
        for code in [" LATE", ""] {
            cut(|| {
                let mut run = play(&format!(
                    "{ESCALATION}\n b: {how} A escalation{code}\n start -> A -> D -> end\n b -> E -> end"
                ));
                if !ends {
                    run.waits(path);
                    run.done("U");
                }
                run.ends(if ends { path } else { "T E U A D" });
            });
        }
    }
}

#[test]
fn an_escalation_that_nobody_catches_changes_nothing() {
    for more in ["", "\n b: on A escalation OTHER\n b -> E -> end"] {
        cut(|| {
            let mut run = play(&format!("{ESCALATION}{more}\n start -> A -> end"));
            run.done("U");
            run.ends("T U A");
        });
    }
}

#[test]
fn an_end_that_escalates_ends_only_its_path() {
    cut(|| {
        let mut run = play(
            "A: sub | times 2 {
                g: and
                x: end escalation LATE
                U: user
                start -> g -> x
                g -> U -> end
            }
            b: beside A escalation LATE
            start -> A -> end
            b -> E -> end",
        );
        run.waits("E E");
        run.all_done(&["U", "U"]);
        run.ends("E E U A U A A");
    });
}

#[test]
fn a_boundary_event_takes_what_comes_with_it() {
    cut(|| {
        let mut run = play_with(
            "input x\n output order y\n A: user\n b: on A msg stop x | out order.why = reason\n start -> A -> end\n b -> S -> end\n S: script y = order",
            json!({"x": "k-1"}),
        );
        let subscription = run.subscription("stop", Some("k-1"));
        let variables = json!({"reason": "late"}).as_object().cloned().expect("an object");
        run.tell(Event::Message { subscription, variables });
        assert_eq!(run.output(), json!({"order": {"why": "late"}, "y": {"why": "late"}}));
        assert_eq!(run.value("reason"), json!(null), "what no mapping names is gone");
    });
}

#[test]
fn a_called_run_is_given_up_when_its_caller_is_interrupted() {
    cut(|| {
        let mut run = play(
            "A: call other | times 2\n L: user\n b: on A signal stop\n start -> A -> end\n b -> L -> end",
        );
        run.slice(vec![Event::Signal { name: "stop".to_owned(), variables: Map::new() }]);
        // Whoever finds the state before it was done finds that it is to be done.
        let given_up = run.state.outstanding(&run.definition);
        assert_eq!(given_up.len(), 2);
        for effect in &given_up {
            assert!(matches!(effect, runfleet_flow::Effect::CancelCall { .. }), "{effect:?}");
            assert!(run.effects.contains(effect));
        }
        run.rest(Vec::new());
        run.waits("-A -A -A");
        run.done("L");
        run.ends("-A -A -A L");
    });
}
