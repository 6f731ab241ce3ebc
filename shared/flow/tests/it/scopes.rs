//! Event sub-processes, ends of scopes, and event-based gateways.

use runfleet_flow::{Event, FailureCode, Status, Subscription, What};
use serde_json::{Map, json};

use crate::play::{cut, play, play_with};

/// A scope with two active elements and an event sub-process, as the process itself and as a sub-process of it.
fn around(event: &str) -> [String; 2] {
    let inner =
        format!("A: user\n B: task b\n g: and\n start -> g -> A -> end\n g -> B -> end\n{event}");
    [inner.clone(), format!("S: sub {{\n{inner}\n }}\n start -> S -> Z -> end")]
}

/// The path with what follows when the scope is a sub-process.
fn path(nested: usize, path: &str) -> String {
    if nested == 1 { format!("{path} S Z") } else { path.to_owned() }
}

#[test]
fn an_interrupting_event_sub_process_ends_everything_else_in_its_scope() {
    for (trigger, happen) in [
        ("msg stop", 0),
        ("signal stop", 1),
        ("timer PT5S", 2),
        ("cycle R5/PT5S", 2),
        ("date 2027-01-15T08:00:05Z", 2),
        ("error", 3),
        ("error NO", 3),
    ] {
        let event = format!("E: eventsub {trigger} {{\n U: user\n start -> U -> end\n }}");
        for (nested, model) in around(&event).into_iter().enumerate() {
            cut(|| {
                let mut run = play(&model);
                match happen {
                    0 => run.message("stop", json!({})),
                    1 => run.signal("stop"),
                    2 => run.pass(5),
                    _ => run.error("B", "NO"),
                }
                run.waits("-A -B");
                // It interrupts once.
                assert_eq!(run.state.subscriptions(), []);
                assert_eq!(run.status, Status::Waiting { wake_ms: None });
                run.done("U");
                run.ends(&path(nested, "-A -B U E"));
            });
        }
    }
}

#[test]
fn an_event_sub_process_that_does_not_interrupt_begins_each_time() {
    for (trigger, happen) in [("msg more", 0), ("signal more", 1), ("cycle R2/PT5S", 2)] {
        let event = format!("E: eventsub beside {trigger} {{\n U: user\n start -> U -> end\n }}");
        for (nested, model) in around(&event).into_iter().enumerate() {
            cut(|| {
                let mut run = play(&model);
                for _ in 0..2 {
                    match happen {
                        0 => run.message("more", json!({})),
                        1 => run.signal("more"),
                        _ => run.pass(5),
                    }
                }
                assert_eq!(run.all("U").len(), 2);
                run.all_done(&["A", "U", "B"]);
                run.waits("A U E B");
                run.done("U");
                run.ends(&path(nested, "A U E B U E"));
            });
        }
    }
}

#[test]
fn the_events_of_a_scope_are_over_with_it() {
    cut(|| {
        let mut run = play(
            "S: sub {
                A: user
                start -> A -> end
                E: eventsub beside msg more {
                    start -> B -> end
                }
            }
            L: user
            start -> S -> L -> end",
        );
        let subscription = run.subscription("more", None);
        run.done("A");
        assert_eq!(run.state.subscriptions(), []);
        run.ignores(Event::Message { subscription, variables: Map::new() });
        run.done("L");
        run.ends("A S L");
    });
}

#[test]
fn an_error_in_an_event_sub_process_is_not_caught_beside_it() {
    let model = "S: sub {
            A: user
            start -> A -> end
            E: eventsub beside msg more {
                T: task t
                start -> T -> end
            }
            F: eventsub error {
                start -> C -> end
            }
        }
        b: on S error
        start -> S -> end
        b -> D -> end";
    cut(|| {
        let mut run = play(model);
        run.message("more", json!({}));
        run.error("T", "NO");
        run.ends("-T -E -A -S D");
    });
    let inside = model.replace("T: task t", "T: task t\n i: on T error\n i -> I -> end");
    cut(|| {
        let mut run = play(&inside);
        run.message("more", json!({}));
        run.error("T", "NO");
        run.waits("-T I E");
        run.done("A");
        run.ends("-T I E A S");
    });
}

#[test]
fn an_event_sub_process_has_event_sub_processes_of_its_own() {
    cut(|| {
        let mut run = play(
            "A: user
            start -> A -> end
            E: eventsub beside msg more {
                B: user
                start -> B -> end
                F: eventsub signal stop {
                    C: user
                    start -> C -> end
                }
            }",
        );
        run.message("more", json!({}));
        run.signal("stop");
        run.waits("-B");
        run.all_done(&["C", "A"]);
        run.ends("-B C F E A");
    });
}

#[test]
fn an_interrupting_event_sub_process_also_ends_the_ones_beside_it() {
    cut(|| {
        let mut run = play(
            "A: user
            start -> A -> end
            E: eventsub beside msg more {
                B: call other
                start -> B -> end
            }
            F: eventsub signal stop {
                C: user
                start -> C -> end
            }",
        );
        run.message("more", json!({}));
        run.message("more", json!({}));
        run.signal("stop");
        run.waits("-A -B -E -B -E");
        run.done("C");
        run.ends("-A -B -E -B -E C F");
    });
}

#[test]
fn an_escalation_begins_an_event_sub_process_of_its_scope() {
    for (beside, path) in [("beside ", "T E U S"), ("", "T E S")] {
        cut(|| {
            let mut run = play(
                &format!(
                    "S: sub {{
                    T: throw escalation LATE
                    U: user
                    start -> T -> U -> end
                    E: eventsub {beside}escalation LATE {{
                        V: pass
                        start -> end
                    }}
                }}
                start -> S -> end"
                )
                .replace("V: pass\n", ""),
            );
            if !beside.is_empty() {
                run.done("U");
            }
            run.ends(path);
        });
    }
}

#[test]
fn what_comes_with_an_event_belongs_to_the_event_sub_process() {
    cut(|| {
        let mut run = play_with(
            "input x
            output x y seen
            A: user | out seen = 1
            start -> A -> end
            E: eventsub beside msg more {
                B: script y = x
                start -> B -> end
            }",
            json!({"x": 1}),
        );
        run.message("more", json!({"x": 2}));
        run.done("A");
        assert_eq!(run.output(), json!({"x": 1, "y": 2, "seen": 1}));
    });
}

#[test]
fn a_terminating_end_ends_its_own_scope_only() {
    cut(|| {
        let mut run = play(
            "S: sub {
                g: and
                A: user
                B: user
                stop: end terminate
                start -> g -> A -> stop
                g -> B -> end
            }
            Z: user
            split: and
            start -> split -> S -> C -> end
            split -> Z -> end",
        );
        run.done("A");
        run.waits("A -B S C");
        run.done("Z");
        run.ends("A -B S C Z");
    });
    // One item of several.
    cut(|| {
        let mut run = play(
            "S: sub | times 2 {
                g: and
                A: user
                B: user
                stop: end terminate
                start -> g -> A -> stop
                g -> B -> end
            }
            start -> S -> end",
        );
        run.done("A");
        run.waits("A -B S");
        run.done("A");
        run.ends("A -B S A -B S S");
    });
    // An event sub-process is a scope too.
    cut(|| {
        let mut run = play(
            "A: user
            start -> A -> end
            E: eventsub beside msg more {
                g: and
                B: user
                stop: end terminate
                start -> g -> B -> end
                g -> stop
            }",
        );
        run.message("more", json!({}));
        run.waits("-B E");
        run.done("A");
        run.ends("-B E A");
    });
}

#[test]
fn the_first_event_after_a_gateway_wins_and_the_others_are_forgotten() {
    let model = "input x
        g: events
        M: catch msg paid x
        R: receive refused
        S: catch signal stop
        T: catch timer PT1M
        m: xor
        L: user
        start -> g -> M -> m
        g -> R -> m
        g -> S -> m
        g -> T -> m -> L -> end";
    for (happen, path) in [(0, "M"), (1, "R"), (2, "S"), (3, "T")] {
        cut(|| {
            let mut run = play_with(model, json!({"x": 5}));
            assert_eq!(run.state.subscriptions().len(), 3);
            let other = run.subscription(
                if happen == 1 { "paid" } else { "refused" },
                if happen == 1 { Some("5") } else { None },
            );
            match happen {
                0 => {
                    let subscription = run.subscription("paid", Some("5"));
                    run.tell(Event::Message { subscription, variables: Map::new() });
                }
                1 => run.message("refused", json!({})),
                2 => run.signal("stop"),
                _ => run.pass(60),
            }
            run.waits(path);
            assert_eq!(run.state.subscriptions(), []);
            assert_eq!(run.status, Status::Waiting { wake_ms: None });
            run.ignores(Event::Message { subscription: other, variables: Map::new() });
            run.done("L");
            run.ends(&format!("{path} L"));
        });
    }
}

#[test]
fn two_events_that_come_at_once_make_one_winner() {
    let mut run = play(
        "g: events\n A: catch msg a\n B: catch msg b\n start -> g -> A -> end\n g -> B -> end",
    );
    let [a, b] = ["a", "b"].map(|name| run.subscription(name, None));
    let message = |subscription| Event::Message { subscription, variables: Map::new() };
    run.rest(vec![message(b), message(a)]);
    run.ends("B");
    assert_eq!(run.ignored, 1);
}

#[test]
fn a_signal_comes_to_everything_that_waits_for_it() {
    cut(|| {
        let mut run = play_with(
            "input name
            g: and
            A: catch signal go
            B: user
            C: catch signal =name
            D: catch signal other
            b: on B signal go
            start -> g -> A -> end
            g -> B -> end
            g -> C -> end
            g -> D -> end
            b -> E -> end
            F: eventsub beside signal go {
                start -> H -> end
            }",
            json!({"name": "go"}),
        );
        let signals = run.state.subscriptions();
        assert_eq!(signals.len(), 2, "one subscription for each name: {signals:?}");
        assert!(signals.contains(&Subscription::Signal { name: "go".to_owned() }));
        run.signal("go");
        for element in ["A", "C", "E", "F"] {
            assert_eq!(run.left(element), 1, "{element} in {}", run.path());
        }
        run.signal("go");
        assert_eq!(run.left("F"), 2);
        run.signal("other");
        assert!(matches!(run.status, Status::Completed { .. }));
    });
}

#[test]
fn paths_that_wait_for_each_other_end_the_run_as_stuck() {
    cut(|| {
        let run = play_with(
            "input x\n g: xor\n j: and\n start -> g -> A if x\n g -> B else\n A -> j -> end\n B -> j",
            json!({"x": true}),
        );
        run.fails(FailureCode::Stuck, "j", None);
    });
    // As long as something can come, it is not stuck.
    cut(|| {
        let mut run = play_with(
            "input x\n g: xor\n j: and\n start -> g -> A if x\n g -> B else\n A -> j -> end\n B -> j\n E: eventsub signal stop {\n start -> end\n }",
            json!({"x": true}),
        );
        run.waits("A");
        run.signal("stop");
        run.ends("A E");
    });
}

#[test]
fn an_error_that_nobody_catches_is_told_of_the_end_that_threw_it() {
    cut(|| {
        let run = play("S: sub {\n X: end error NO\n start -> X\n }\n start -> S -> end");
        run.fails(FailureCode::UncaughtError, "X", Some("NO"));
        let last = run.history.last().expect("a history");
        assert_eq!((last.0.as_str(), last.2), ("X", What::Failed));
        assert_eq!(run.left("X"), 0);
    });
}

#[test]
fn each_item_of_a_repeated_sub_process_has_event_sub_processes_of_its_own() {
    cut(|| {
        let mut run = play(
            "S: sub | times 2 {
                A: user
                start -> A -> end
                E: eventsub msg stop loopCounter {
                    start -> B -> end
                }
            }
            start -> S -> end",
        );
        let subscription = run.subscription("stop", Some("2"));
        run.tell(Event::Message { subscription, variables: Map::new() });
        run.waits("-A B E S");
        run.subscription("stop", Some("1"));
        run.done("A");
        run.ends("-A B E S A S S");
    });
}
