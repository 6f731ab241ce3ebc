//! Multi-instance: how many, in which order, what is collected, what ends them early.

use runfleet_flow::{Doing, Effect, FailureCode, Status};
use serde_json::{Value, json};

use crate::play::{Dice, Play, cut, play, play_with};

/// Activities that are done at once, or by one answer each.
const KINDS: [&str; 3] = ["task t | in it = one", "user", "call other | exact | in it = one"];

#[test]
fn any_number_of_items_gives_as_many_results_in_their_order() {
    for kind in KINDS {
        for how in ["", " | seq"] {
            for count in [0_u32, 1, 2, 7] {
                cut(|| {
                    let items: Vec<u32> = (0..count).collect();
                    let mut run = play_with(
                        &format!(
                            "input items\n output results\n A: {kind}{how} | each one in items | collect results = result\n start -> A -> end"
                        ),
                        json!({"items": items}),
                    );
                    let mut dice = Dice(u64::from(count));
                    for left in (1..=count as usize).rev() {
                        let open = if how.is_empty() { left } else { 1 };
                        let active = run.all("A").len();
                        assert_eq!(active, open + 1);
                        let nth = dice.below(open);
                        let place = item(&run, nth);
                        let event = run.ending("A", nth, json!({"result": place * 10}));
                        run.tell(event);
                    }
                    let expected: Vec<u64> =
                        items.iter().map(|item| u64::from(*item) * 10).collect();
                    assert_eq!(run.output(), json!({"results": expected}), "{kind}{how}");
                    assert_eq!(run.left("A"), count as usize + 1);
                });
            }
        }
    }
}

/// Which item the n-th open instance of `A` is.
fn item(run: &Play, n: usize) -> u64 {
    let active = run.state.view(None).active.into_iter();
    let items: Vec<u32> = active.filter_map(|active| active.item).collect();
    u64::from(items[n] - 1)
}

#[test]
fn ten_thousand_items_are_done_and_one_more_is_refused() {
    for how in ["", " | seq"] {
        let model = |count: u32| format!("A: pass | times {count}{how}\n start -> A -> end");
        let run = play_quickly(&model(10_000));
        assert!(matches!(run.status, Status::Completed { .. }), "{:?}", run.status);
        assert_eq!(run.history.len(), 2 * (10_000 + 3));
        play(&model(10_001)).fails(FailureCode::TooManyItems, "A", None);
    }
}

/// Plays with long slices.
fn play_quickly(model: &str) -> Play {
    let definition = std::sync::Arc::new(crate::support::parse(&crate::model::document(model)));
    let mut run = Play::new(&definition, json!({})).with(0, Some(5_000));
    run.rest(Vec::new());
    run
}

#[test]
fn no_more_than_some_of_many_items_are_active_at_a_time() {
    let mut run = play("A: user | times 220\n start -> A -> end").with(1, Some(1_000));
    for _ in 0..10 {
        assert_eq!(run.all("A").len(), 201);
        run.done("A");
    }
    let [(_, Doing::Repeating { total: 220, ended: 10 })] = run.all("A")[..1] else {
        panic!("{:?}", run.all("A")[0]);
    };
    let open = |run: &Play| (0..200).map(|n| run.ending("A", n, json!({}))).collect::<Vec<_>>();
    run.rest(open(&run));
    assert_eq!(run.all("A").len(), 11);
    run.all_done(&["A"; 10]);
    assert!(matches!(run.status, Status::Completed { .. }));
}

#[test]
fn what_is_no_list_and_no_whole_number_is_refused() {
    for items in [json!(null), json!("abc"), json!(-1), json!(1.5), json!({"a": 1}), json!(true)] {
        let run = play_with(
            "input items\n A: pass | times items\n start -> A -> end",
            json!({"items": items}),
        );
        run.fails(FailureCode::CollectionInvalid, "A", None);
    }
}

#[test]
fn an_item_sees_itself_and_its_number_and_leaves_nothing_behind() {
    cut(|| {
        let mut run = play_with(
            "input items one\n output one loopCounter results\n A: task t | each one in items | in it = one | in n = loopCounter | collect results = it\n start -> A -> end",
            json!({"items": ["a", "b"], "one": "around"}),
        );
        let asked: Vec<Value> = run
            .effects
            .iter()
            .map(|effect| match effect {
                Effect::Ask(ask) => json!([ask.variables["it"], ask.variables["n"]]),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(asked, [json!(["a", 1]), json!(["b", 2])]);
        run.all_done(&["A", "A"]);
        assert_eq!(
            run.output(),
            json!({"one": "around", "loopCounter": null, "results": ["a", "b"]})
        );
    });
}

#[test]
fn the_number_and_the_item_can_be_the_result() {
    for (result, results) in [("loopCounter", json!([1, 2])), ("one", json!(["a", "b"]))] {
        let run = play_with(
            &format!(
                "input items\n output results\n A: pass | each one in items | collect results = {result}\n start -> A -> end"
            ),
            json!({"items": ["a", "b"]}),
        );
        assert_eq!(run.output(), json!({"results": results}));
    }
}

#[test]
fn the_condition_that_ends_the_rest_sees_the_numbers_and_the_item_that_has_ended() {
    for (until, rounds) in [
        ("numberOfCompletedInstances = 2", 2),
        ("numberOfCompletedInstances / numberOfInstances >= 0.75", 3),
        ("numberOfActiveInstances = 1", 3),
        ("loopCounter = 2", 2),
        ("answer = \"enough\"", 3),
        ("one = 30", 3),
    ] {
        cut(|| {
            let mut run = play_with(
                &format!(
                    "input items\n output results\n A: user | each one in items | collect results = answer | until {until}\n start -> A -> end"
                ),
                json!({"items": [10, 20, 30, 40]}),
            );
            for round in 1..=rounds {
                assert!(matches!(run.status, Status::Waiting { .. }), "{until} ends in {round}");
                run.done_with("A", json!({"answer": if round == 3 { "enough" } else { "more" }}));
            }
            assert!(matches!(run.status, Status::Completed { .. }), "{until}: {:?}", run.status);
            assert_eq!(run.output()["results"][3], json!(null));
        });
    }
    cut(|| {
        let mut run = play(
            "A: user | times 3 | seq | until numberOfActiveInstances = 0 and numberOfCompletedInstances = 2\n start -> A -> end",
        );
        run.all_done(&["A", "A"]);
        run.ends("A A A");
    });
}

#[test]
fn repeated_sub_processes_lie_in_each_other() {
    cut(|| {
        let mut run = play_with(
            "input rows
            output table
            Row: sub | each row in rows | collect table = cells {
                Cell: sub | each cell in row | seq | collect cells = double {
                    D: script double = cell * 2
                    U: user
                    start -> D -> U -> end
                }
                start -> Cell -> end
            }
            start -> Row -> end",
            json!({"rows": [[1, 2], [], [3]]}),
        );
        assert_eq!(run.all("U").len(), 2);
        run.all_done(&["U", "U", "U"]);
        assert_eq!(run.output(), json!({"table": [[2, 4], [], [6]]}));
    });
}

#[test]
fn a_boundary_event_belongs_to_the_whole_and_not_to_an_item() {
    cut(|| {
        let mut run = play(
            "A: task a | times 3 | seq\n b: beside A timer PT10S\n c: on A error\n start -> A -> end\n b -> B -> end\n c -> C -> end",
        );
        run.done("A");
        assert_eq!(run.due("b"), [10]);
        run.pass(10);
        run.done("A");
        run.pass(100);
        run.waits("A B A");
        run.error("A", "NO");
        run.ends("A B A -A -A C");
    });
}

#[test]
fn items_retry_their_tasks_each_for_itself() {
    cut(|| {
        let mut run = play("A: task a | times 2 | pauses 7\n start -> A -> end");
        let (first, second) = (run.nth("A", 0), run.nth("A", 1));
        run.failed("A", "BUSY", true, None);
        run.pass(7);
        assert_eq!(run.nth("A", 0), (first.0, 2));
        assert_eq!(run.nth("A", 1), second);
        run.all_done(&["A", "A"]);
        run.ends("A A A");
    });
}

#[test]
fn items_map_their_results_into_the_variables_around() {
    cut(|| {
        let mut run = play_with(
            "input total:number\n output total:number\n A: user | times 3 | seq | out total = total + given\n start -> A -> end",
            json!({"total": 1}),
        );
        for given in [10, 20, 30] {
            run.done_with("A", json!({"given": given}));
        }
        assert_eq!(run.output(), json!({"total": 61}));
    });
}
