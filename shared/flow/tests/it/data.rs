//! Variables: what is local, what is merged where, what somebody may change from outside, and how large all of it may be.

use runfleet_flow::{Effect, Event, FailureCode, Status};
use serde_json::{Value, json};

use crate::play::{Play, cut, play, play_with};
use crate::support::map;

fn asked(run: &Play) -> Value {
    match run.effects.last() {
        Some(Effect::Ask(ask)) => json!(ask.variables),
        other => panic!("{other:?}"),
    }
}

#[test]
fn input_mappings_make_local_variables_that_see_the_ones_before_them() {
    cut(|| {
        let mut run = play_with(
            "input x\n output x y z\n A: task a | in x = x + 1 | in y = x * 10 | in z.deep.er = y | in z.other = 1\n start -> A -> end",
            json!({"x": 1}),
        );
        assert_eq!(asked(&run), json!({"x": 2, "y": 20, "z": {"deep": {"er": 20}, "other": 1}}));
        run.done("A");
        assert_eq!(run.output(), json!({"x": 1, "y": null, "z": null}));
    });
}

#[test]
fn a_nested_target_of_an_input_begins_with_nothing() {
    let run = play_with(
        "input order\n A: task a | in order.b = 2\n start -> A -> end",
        json!({"order": {"a": 1}}),
    );
    assert_eq!(asked(&run), json!({"order": {"b": 2}}));
}

#[test]
fn a_nested_target_of_an_output_changes_a_part_of_what_is_there() {
    for (before, after) in [
        (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"a": 1, "b": {"c": 9, "d": 3}})),
        (json!({"b": 5}), json!({"b": {"c": 9}})),
        (json!("text"), json!({"b": {"c": 9}})),
        (json!(null), json!({"b": {"c": 9}})),
    ] {
        cut(|| {
            let mut run = play_with(
                "input order\n output order\n A: user | out order.b.c = given\n start -> A -> end",
                json!({"order": before}),
            );
            run.done_with("A", json!({"given": 9}));
            assert_eq!(run.output(), json!({"order": after}));
        });
    }
}

#[test]
fn an_answer_is_merged_into_the_nearest_scope_that_has_the_variable() {
    cut(|| {
        let mut run = play_with(
            "input a b c
            output a b c seen
            S: sub | in a = 10 | in b = 20 | out seen = [a, b, c] {
                A: user | in a = 100
                start -> A -> end
            }
            start -> S -> end",
            json!({"a": 1, "b": 2, "c": 3}),
        );
        run.done_with("A", json!({"a": "A", "b": "B", "c": "C", "d": "D"}));
        assert_eq!(run.output(), json!({"a": 1, "b": 2, "c": "C", "seen": [10, "B", "C"]}));
        assert_eq!(run.value("d"), json!("D"));
    });
}

#[test]
fn scripts_in_a_sub_process_see_and_change_what_is_around_them() {
    cut(|| {
        let run = play_with(
            "input a b
            output a b c
            S: sub | in a = 10 {
                A: script a = a + 1
                B: script b = a + b
                C: script c = a
                start -> A -> B -> C -> end
            }
            start -> S -> end",
            json!({"a": 1, "b": 2}),
        );
        assert_eq!(run.output(), json!({"a": 1, "b": 13, "c": 11}));
    });
}

#[test]
fn without_output_mappings_all_of_an_answer_is_merged_and_with_them_nothing_else() {
    cut(|| {
        let mut run = play("output a b c\n A: user | out b = a\n start -> A -> end");
        run.done_with("A", json!({"a": 1, "c": 3}));
        assert_eq!(run.output(), json!({"a": null, "b": 1, "c": null}));
        let mut run = play("output a b c\n A: user\n start -> A -> end");
        run.done_with("A", json!({"a": 1, "c": 3}));
        assert_eq!(run.output(), json!({"a": 1, "b": null, "c": 3}));
    });
}

#[test]
fn a_message_is_merged_or_mapped() {
    for (parts, found) in
        [("", json!({"a": 1, "b": null})), (" | out b = a + 1", json!({"a": null, "b": 2}))]
    {
        for catch in ["C: catch msg paid", "C: receive paid"] {
            cut(|| {
                let mut run = play(&format!("output a b\n {catch}{parts}\n start -> C -> end"));
                run.message("paid", json!({"a": 1}));
                assert_eq!(run.output(), found, "{catch}{parts}");
            });
        }
    }
}

#[test]
fn what_no_expression_can_name_is_kept_all_the_same() {
    // Words with a meaning in expressions, and names of several words.
    let given = json!({"sum": 1, "item": 2, "date": "x", "first name": "Ann", "a-b": 3, "1st": 4});
    for catch in ["A: user", "A: receive go", "A: task a", "A: call other"] {
        cut(|| {
            let mut run = play(&format!("{catch}\n start -> A -> B -> end\n B: call other"));
            if catch.starts_with("A: receive") {
                run.message("go", given.clone());
            } else {
                run.done_with("A", given.clone());
            }
            run.waits("A");
            let Some(Effect::Call { input, .. }) = run.effects.last() else { panic!("no call") };
            assert_eq!(json!(input), given, "{catch}");
        });
    }
    // But not what would be another name when it is written.
    for name in ["", " a", &"n".repeat(65)] {
        let mut run = play("A: user\n start -> A -> end");
        run.done_with("A", json!({name: 1}));
        run.fails(FailureCode::ResultNotStorable, "A", None);
    }
}

#[test]
fn a_declared_type_is_kept_by_everybody_who_assigns() {
    for (model, result) in [
        ("A: user", json!({"n": "text"})),
        ("A: task a", json!({"n": "text"})),
        ("A: call other", json!({"n": "text"})),
        ("A: task a | result n", json!("text")),
        ("A: user | out n = given", json!({"given": "text"})),
    ] {
        cut(|| {
            let mut run = play(&format!("output n:number\n {model}\n start -> A -> end"));
            run.done_with("A", result.clone());
            run.fails(FailureCode::ResultTypeMismatch, "A", None);
        });
    }
}

#[test]
fn what_somebody_sets_is_all_taken_or_not_at_all() {
    cut(|| {
        let mut run = play_with(
            "input n:number
            output n:number m
            S: sub | in local = 1 {
                A: user
                start -> A -> B -> end
                B: script m = local
            }
            start -> S -> end",
            json!({"n": 1}),
        );
        let set = |scope, variables: Value| Event::Set { scope, variables: map(variables) };
        for wrong in [
            json!({"n": "text"}),
            json!({"m": 5, "n": true}),
            json!({"a b": 1}),
            json!({"sum": 1}),
            json!({"m": {" k": 1}}),
            json!({"m": "x".repeat(300_000)}),
        ] {
            run.ignores(set(None, wrong));
        }
        run.ignores(set(Some(99), json!({"m": 1})));
        run.tell(set(None, json!({"n": 2, "m": 5})));
        let scope = run.all("S")[0].0;
        run.tell(set(Some(scope), json!({"local": 7})));
        run.done("A");
        assert_eq!(run.output(), json!({"n": 2, "m": 7}));
    });
}

#[test]
fn variables_have_a_size_together() {
    cut(|| {
        let mut run = play("A: user\n B: user\n C: user\n start -> A -> B -> C -> end");
        run.done_with("A", json!({"a": "x".repeat(200_000)}));
        // Another value of the same size takes the place of the first.
        run.done_with("B", json!({"a": "y".repeat(200_000)}));
        run.done_with("C", json!({"b": "z".repeat(100_000)}));
        run.fails(FailureCode::VariablesTooLarge, "C", None);
    });
    let model = "S: sub | in copy = big {\n A: user\n start -> A -> end\n }\n";
    cut(|| {
        let mut run = play_with(
            &format!("input big\n{model} start -> S -> B -> end\n B: call other"),
            json!({"big": "x".repeat(100_000)}),
        );
        run.done("A");
        // What was local is gone and counts no more.
        run.done_with("B", json!({"more": "y".repeat(120_000)}));
        assert!(matches!(run.status, Status::Completed { .. }), "{:?}", run.status);
    });
}

#[test]
fn the_size_of_variables_is_the_same_however_a_run_is_cut() {
    // Items, results and copies come and go; the limit is met at the same place.
    let model = "input items text
        A: sub | each one in items | seq | collect results = made {
            M: script made = text + one
            start -> M -> end
        }
        start -> A -> end";
    let items: Vec<String> = (0..8).map(|item| format!("{item:04}")).collect();
    let ends = std::cell::RefCell::new(Vec::new());
    for size in [4_000, 20_000, 40_000] {
        cut(|| {
            let input = json!({"items": items, "text": "t".repeat(size)});
            let run = play_with(model, input);
            ends.borrow_mut().push((size, run.state.steps(), format!("{:?}", run.status)));
        });
    }
    let ends = ends.into_inner();
    for same in ends.chunks(6) {
        assert!(same.iter().all(|end| *end == same[0]), "{same:?}");
    }
    assert!(
        ends[0].2.starts_with("Completed") && ends[17].2.contains("VariablesTooLarge"),
        "{ends:?}"
    );
}
