//! The 43 control-flow patterns of workflows, one test each; `PATTERNS.md` says which of them hold.

use runfleet_flow::{Definition, Effect, Event, FailureCode};
use serde_json::{Map, json};

use crate::play::{cut, play, play_with};
use crate::support::refused;

#[test]
fn p01_one_task_follows_another() {
    cut(|| {
        let mut run = play("A: task a\n B: task b\n start -> A -> B -> end");
        run.waits("");
        run.done("A");
        run.waits("A");
        run.done("B");
        run.ends("A B");
    });
}

#[test]
fn p02_one_path_becomes_several() {
    cut(|| {
        let run = play(
            "A: user\n B: user\n g: and\n start -> g -> A -> end\n g -> B -> end2\n end2: end",
        );
        run.waits("");
        assert_eq!((run.all("A").len(), run.all("B").len()), (1, 1));
    });
}

#[test]
fn p03_a_join_waits_for_every_path() {
    for order in [["A", "B"], ["B", "A"]] {
        cut(|| {
            let mut run = play(
                "A: user\n B: user\n g: and\n j: and\n start -> g -> A -> j -> C -> end\n g -> B -> j",
            );
            run.done(order[0]);
            run.waits(order[0]);
            run.done(order[1]);
            run.ends(&format!("{} {} C", order[0], order[1]));
        });
    }
}

#[test]
fn p04_one_of_several_paths_is_taken() {
    for (x, path) in [(1, "A"), (2, "B"), (3, "C")] {
        cut(|| {
            let run = play_with(
                "input x\n g: xor\n start -> g -> A if x = 1\n g -> B if x <= 2\n g -> C else\n A -> end\n B -> end\n C -> end",
                json!({"x": x}),
            );
            run.ends(path);
        });
    }
}

#[test]
fn p05_paths_meet_without_waiting() {
    for (x, path) in [(1, "A C"), (2, "B C")] {
        cut(|| {
            let run = play_with(
                "input x\n g: xor\n m: xor\n start -> g -> A if x = 1\n g -> B else\n A -> m -> C -> end\n B -> m",
                json!({"x": x}),
            );
            run.ends(path);
        });
    }
}

/// Three branches that are taken when `x` has their number.
const CHOICE: &str = "input x
    A: user
    B: user
    C: user
    g: or
    start -> g -> A if list contains(x, 1)
    g -> B if list contains(x, 2)
    g -> C if list contains(x, 3)";

#[test]
fn p06_any_number_of_paths_is_taken() {
    for x in [vec![1], vec![2, 3], vec![1, 2, 3]] {
        cut(|| {
            let model = format!("{CHOICE}\n A -> end\n B -> end\n C -> end");
            let run = play_with(&model, json!({"x": x}));
            for (element, number) in [("A", 1), ("B", 2), ("C", 3)] {
                assert_eq!(run.all(element).len(), usize::from(x.contains(&number)));
            }
        });
    }
    let none = play_with(&format!("{CHOICE}\n A -> end\n B -> end\n C -> end"), json!({"x": []}));
    none.fails(FailureCode::NoFlowTaken, "g", None);
}

#[test]
fn p07_a_join_waits_for_the_paths_that_were_taken() {
    for x in [vec!["A"], vec!["B", "C"], vec!["C", "A", "B"]] {
        cut(|| {
            let model = format!("{CHOICE}\n j: or\n A -> j -> D -> end\n B -> j\n C -> j");
            let numbers: Vec<u32> = x.iter().map(|x| u32::from(x.as_bytes()[0] - 64)).collect();
            let mut run = play_with(&model, json!({"x": numbers}));
            for (position, element) in x.iter().enumerate() {
                run.waits(&x[..position].join(" "));
                run.done(element);
            }
            run.ends(&format!("{} D", x.join(" ")));
        });
    }
}

#[test]
fn p08_every_path_that_comes_goes_on_by_itself() {
    cut(|| {
        let mut run =
            play("A: user\n B: user\n g: and\n start -> g -> A -> C -> end\n g -> B -> C");
        run.done("B");
        run.done("A");
        run.ends("B C A C");
    });
}

/// Three branches of which the `n`-th goes on and the others end, each time in a round.
fn counted(n: u32) -> String {
    format!(
        "        Reset: script done = 0
        start -> Reset -> Block -> end
        Block: sub {{
            A: user
            B: user
            C: user
            D: user
            g: and
            Count: script done = done + 1
            first: xor
            start -> g -> A -> Count -> first
            g -> B -> Count
            g -> C -> Count
            first -> D if done = {n}
            first -> end else
            D -> end
        }}"
    )
}

#[test]
fn p09_the_first_path_goes_on_and_the_others_end() {
    cut(|| {
        let mut run = play(&counted(1));
        run.done("B");
        run.waits("Reset B Count");
        run.all_done(&["C", "D", "A"]);
        run.ends("Reset B Count C Count D A Count Block");
    });
}

#[test]
fn p10_a_cycle_may_have_several_ways_in_and_out() {
    for (route, path) in
        [("ab", "A B"), ("abab", "A B A B"), ("aba", "A B A C"), ("b", "B"), ("bac", "B A C")]
    {
        cut(|| {
            let first = &route[..1];
            let mut run = play_with(
                "input first:string
                A: user
                B: user
                in: xor
                a: xor
                b: xor
                start -> in -> A if first = \"a\"
                in -> B else
                A -> a -> B if go = \"b\"
                a -> C else
                B -> b -> A if go = \"a\"
                b -> end else
                C -> end",
                json!({"first": first}),
            );
            let steps: Vec<&str> = route.split("").filter(|step| !step.is_empty()).collect();
            for (position, step) in steps.iter().enumerate() {
                let next = steps.get(position + 1).copied().unwrap_or("c");
                if *step != "c" {
                    run.done_with(&step.to_uppercase(), json!({"go": next}));
                }
            }
            run.ends(path);
        });
    }
}

#[test]
fn p11_a_run_ends_when_nothing_is_left_to_do() {
    cut(|| {
        let mut run = play(
            "A: user\n B: user\n g: and\n start -> g -> A -> end\n g -> B -> other\n other: end",
        );
        run.done("A");
        run.waits("A");
        run.done("B");
        run.ends("A B");
    });
}

#[test]
fn p12_a_loop_begins_instances_that_nobody_waits_for() {
    cut(|| {
        let mut run = play_with(
            "input n:number
            g: xor
            split: and
            A: user
            Less: script n = n - 1
            start -> g -> split if n > 0
            split -> A -> end
            split -> Less -> g
            g -> B else
            B -> end2
            end2: end",
            json!({"n": 3}),
        );
        run.waits("Less Less Less B");
        assert_eq!(run.all("A").len(), 3);
        run.all_done(&["A", "A", "A"]);
        run.ends("Less Less Less B A A A");
    });
}

#[test]
fn p13_the_drawing_says_how_many_instances_there_are() {
    for kind in ["", " | seq"] {
        cut(|| {
            let mut run = play(&format!("A: user | times 3{kind}\n start -> A -> B -> end"));
            assert_eq!(run.all("A").len(), if kind.is_empty() { 4 } else { 2 });
            run.all_done(&["A", "A"]);
            run.waits("A A");
            run.done("A");
            run.ends("A A A A B");
        });
    }
}

#[test]
fn p14_data_say_how_many_instances_there_are() {
    for items in [vec![], vec![7], vec![7, 8, 9]] {
        cut(|| {
            let mut run = play_with(
                "input items\n output results\n A: task a | each one in items | in it = one | collect results = one * 2\n start -> A -> B -> end",
                json!({"items": items}),
            );
            for _ in &items {
                run.done("A");
            }
            assert_eq!(run.left("A"), items.len() + 1);
            let doubled: Vec<u32> = items.iter().map(|item| item * 2).collect();
            assert_eq!(run.output(), json!({"results": doubled}));
        });
    }
}

#[test]
fn p15_instances_are_added_while_others_are_at_work() {
    cut(|| {
        let mut run = play(
            "Hall: sub {
                A: user
                start -> A -> end
                More: eventsub beside msg more {
                    B: user
                    start -> B -> end
                }
            }
            start -> Hall -> C -> end",
        );
        run.message("more", json!({}));
        run.message("more", json!({}));
        run.all_done(&["A", "B"]);
        run.message("more", json!({}));
        run.done("B");
        run.waits("A B More B More");
        run.done("B");
        run.ends("A B More B More B More Hall C");
    });
}

#[test]
fn p16_what_happens_first_decides() {
    let model = "g: events
        c: catch msg paid
        T: catch timer PT1H
        start -> g -> c -> A -> end
        g -> T -> B -> end";
    cut(|| {
        let mut run = play(model);
        run.message("paid", json!({"amount": 3}));
        run.ends("A");
        assert_eq!(run.value("amount"), json!(3));
        let mut run = play(model);
        run.pass(3_599);
        run.waits("");
        run.pass(1);
        run.ends("T B");
    });
}

/// Patterns whose elements are refused by name: nothing is drawn and then run otherwise.
#[test]
fn what_would_draw_the_patterns_that_do_not_hold_is_refused() {
    let through = |tag: &str, attributes: &str| {
        crate::support::through(&format!("<{tag} id=\"t\"{attributes}/>"), "")
    };
    for (tag, attributes, problem) in [
        ("adHocSubProcess", "", "t: `adHocSubProcess` is not supported"),
        ("complexGateway", "", "t: `complexGateway` is not supported"),
        ("transaction", "", "t: `transaction` is not supported"),
        ("task", " startQuantity=\"2\"", "t: `startQuantity` other than 1 is not supported"),
        (
            "task",
            " completionQuantity=\"2\"",
            "t: `completionQuantity` other than 1 is not supported",
        ),
    ] {
        refused(&through(tag, attributes), problem);
    }
    assert!(Definition::parse(&through("task", "")).is_ok());
}

#[test]
fn p18_something_can_be_done_while_a_state_lasts() {
    cut(|| {
        let mut run = play(
            "Open: sub {
                A: user
                start -> A -> end
                Extra: eventsub beside msg order {
                    start -> B -> end
                }
            }
            start -> Open -> C -> end",
        );
        run.message("order", json!({}));
        let late = run.subscription("order", None);
        run.done("A");
        run.ends("B Extra A Open C");
        run.ignores(Event::Message { subscription: late, variables: Map::new() });
    });
}

#[test]
fn p19_one_activity_is_ended_early() {
    cut(|| {
        let mut run = play(
            "g: and\n A: user\n B: user\n stop: on A msg stop\n start -> g -> A -> end\n g -> B -> end\n stop -> C -> end",
        );
        run.message("stop", json!({}));
        run.waits("-A C");
        run.done("B");
        run.ends("-A C B");
    });
}

#[test]
fn p20_a_run_is_ended_early() {
    cut(|| {
        let mut run = play(
            "g: and\n A: task a\n B: call other\n S: sub {\n U: user\n start -> U -> end\n }\n start -> g -> A -> stop\n g -> B -> end\n g -> S -> end\n stop: end terminate",
        );
        run.done("A");
        run.ends("A -B -U -S");
        assert!(matches!(run.effects.last(), Some(Effect::CancelCall { .. })));
    });
}

#[test]
fn p21_a_loop_is_drawn_with_gateways() {
    for (model, path) in [
        // First the condition, then the body.
        ("start -> m -> t -> A if n < 2\n A -> m\n t -> end else", "A A"),
        // First the body, then the condition.
        ("start -> m -> A -> t -> m if n < 2\n t -> end else", "A A"),
    ] {
        cut(|| {
            let run = play_with(
                &format!("input n:number\n m: xor\n t: xor\n A: script n = n + 1\n{model}"),
                json!({"n": 0}),
            );
            run.ends(path);
        });
    }
}

#[test]
fn p22_a_process_calls_itself() {
    cut(|| {
        let mut run = play_with(
            "input n:number\n output total\n g: xor\n A: call p | exact | in n = n - 1 | out total = total + n\n Z: script total = n\n start -> g -> A if n > 0\n g -> Z else\n A -> end\n Z -> end",
            json!({"n": 2}),
        );
        let Some(Effect::Call { process, input, exact: true, .. }) = run.effects.last() else {
            panic!("{:?}", run.effects);
        };
        assert_eq!((process.as_str(), json!(input)), ("p", json!({"n": 1})));
        run.done_with("A", json!({"total": 1}));
        run.ends("A");
    });
}

#[test]
fn p23_a_signal_that_nobody_waits_for_is_lost() {
    cut(|| {
        let mut run = play("A: user\n C: catch signal go\n start -> A -> C -> end");
        run.ignores(Event::Signal { name: "go".to_owned(), variables: Map::new() });
        run.done("A");
        run.waits("A");
        run.signal("go");
        run.ends("A C");
    });
}

#[test]
fn p24_a_message_is_awaited_under_its_name_and_key_for_as_long_as_it_takes() {
    cut(|| {
        let mut run =
            play_with("input x\n C: catch msg paid x\n start -> C -> end", json!({"x": 7}));
        run.pass(300 * 24 * 3_600);
        let subscription = run.subscription("paid", Some("7"));
        run.tell(Event::Message { subscription, variables: Map::new() });
        run.ends("C");
    });
}

#[test]
fn p25_everything_in_a_region_is_ended_early() {
    cut(|| {
        let mut run = play(
            "Region: sub {
                g: and
                A: user
                B: task b
                start -> g -> A -> end
                g -> B -> end
            }
            Z: user
            split: and
            stop: on Region signal stop
            start -> split -> Region -> end
            split -> Z -> end
            stop -> C -> end",
        );
        run.signal("stop");
        run.waits("-B -A -Region C");
        run.done("Z");
        run.ends("-B -A -Region C Z");
    });
}

#[test]
fn p26_a_multi_instance_activity_is_ended_early() {
    cut(|| {
        let mut run = play(
            "A: user | times 3\n late: on A timer PT1M\n start -> A -> B -> end\n late -> C -> end",
        );
        run.done("A");
        run.pass(60);
        run.ends("A -A -A -A C");
    });
}

#[test]
fn p27_a_multi_instance_activity_is_declared_done() {
    cut(|| {
        let mut run = play("A: user | times 3 | until enough = true\n start -> A -> B -> end");
        run.done_with("A", json!({"enough": false}));
        run.waits("A");
        run.done_with("A", json!({"enough": true}));
        run.ends("A A -A A B");
    });
}

#[test]
fn p29_the_first_path_goes_on_and_ends_the_others_early() {
    cut(|| {
        let mut run = play(
            "Race: sub {
                g: and
                A: user
                B: user
                C: user
                won: end terminate
                start -> g -> A -> won
                g -> B -> won
                g -> C -> won
            }
            start -> Race -> D -> end",
        );
        run.done("B");
        run.ends("B -A -C Race D");
    });
}

#[test]
fn p30_the_second_of_three_paths_goes_on() {
    cut(|| {
        let mut run = play(&counted(2));
        run.done("C");
        run.waits("Reset C Count");
        run.all_done(&["A", "D", "B"]);
        run.ends("Reset C Count A Count D B Count Block");
    });
}

#[test]
fn p32_the_second_of_three_paths_ends_the_third_early() {
    cut(|| {
        let mut run = play(
            "            Reset: script done = 0
            start -> Reset -> Race -> D -> end
            Race: sub {
                g: and
                A: user
                B: user
                C: user
                Count: script done = done + 1
                second: xor
                won: end terminate
                start -> g -> A -> Count -> second
                g -> B -> Count
                g -> C -> Count
                second -> won if done = 2
                second -> end else
            }",
        );
        run.all_done(&["C", "A"]);
        run.ends("Reset C Count A Count -B Race D");
    });
}

#[test]
fn p33_a_path_that_comes_twice_waits_for_the_next_round_of_the_join() {
    let model = "g: and
        A: user
        B: user
        j: and
        start -> g -> A -> j -> C -> end
        g -> A
        g -> B -> j
        g -> B";
    cut(|| {
        let mut run = play(model);
        run.all_done(&["A", "A"]);
        run.waits("A A");
        run.done("B");
        run.waits("A A B C");
        run.done("B");
        run.ends("A A B C B C");
    });
}

#[test]
fn p34_some_of_the_instances_let_the_run_go_on_while_the_rest_goes_on_too() {
    cut(|| {
        let mut run = play(
            "            Reset: script done = 0
            start -> Reset -> All -> end
            All: sub | times 3 {
                A: user
                Count: script done = done + 1
                second: xor
                Enough: throw escalation ENOUGH
                start -> A -> Count -> second
                second -> Enough if done = 2
                second -> end else
                Enough -> end
            }
            go: beside All escalation ENOUGH
            go -> B -> end",
        );
        run.all_done(&["A", "A"]);
        run.waits("Reset A Count All A Count Enough All B");
        run.done("A");
        run.ends("Reset A Count All A Count Enough All B A Count All All");
    });
}

#[test]
fn p35_some_of_the_instances_end_the_rest_early() {
    cut(|| {
        let mut run = play(
            "output results\n A: user | times 4 | until numberOfCompletedInstances = 2 | collect results = answer\n start -> A -> B -> end",
        );
        let event = run.ending("A", 2, json!({"answer": "c"}));
        run.tell(event);
        run.waits("A");
        let event = run.ending("A", 0, json!({"answer": "a"}));
        run.tell(event);
        run.ends("A A -A -A A B");
        assert_eq!(run.output(), json!({"results": ["a", null, "c", null]}));
    });
}

#[test]
fn p37_a_join_waits_for_what_can_still_come_and_for_nothing_else() {
    let model = "input x
        A: user
        B: user
        C: user
        D: user
        g: and
        b: xor
        j: or
        start -> g -> A -> j -> E -> end
        g -> B -> b -> C if x
        b -> D else
        C -> j
        D -> end";
    cut(|| {
        let mut run = play_with(model, json!({"x": true}));
        run.all_done(&["A", "B"]);
        run.waits("A B");
        run.done("C");
        run.ends("A B C E");
        let mut run = play_with(model, json!({"x": false}));
        run.done("A");
        run.waits("A");
        run.done("B");
        // What has gone another way does not hold the join up.
        run.waits("A B E");
        run.done("D");
        run.ends("A B E D");
    });
}

#[test]
fn p38_a_join_in_a_cycle_waits_for_what_can_still_come() {
    let model = "g: and
        A: user
        B: user
        j: or
        again: xor
        start -> g -> A -> j -> C -> again -> D else
        g -> B -> j
        again -> A if more = true
        D -> end
        C: user";
    cut(|| {
        let mut run = play(model);
        run.done("A");
        run.waits("A");
        run.done("B");
        run.waits("A B");
        run.done_with("C", json!({"more": true}));
        run.done("A");
        // Nobody else is under way, so it opens for one.
        run.waits("A B C A");
        run.done_with("C", json!({"more": false}));
        run.ends("A B C A C D");
    });
}

#[test]
fn p42_one_path_becomes_two_on_the_same_way() {
    cut(|| {
        let mut run = play("A: user\n start -> A -> B -> end\n A -> B");
        run.done("A");
        run.ends("A B B");
    });
}

#[test]
fn p43_an_end_ends_everything_around_it() {
    cut(|| {
        let mut run = play(
            "A: user\n B: user\n g: and\n stop: end terminate\n start -> g -> A -> stop\n g -> B -> end",
        );
        run.done("A");
        run.ends("A -B");
    });
}
