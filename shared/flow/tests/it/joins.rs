//! Where paths meet: inclusive joins that know who can still come, parallel joins that count.

use runfleet_flow::{FailureCode, Status};
use serde_json::json;

use crate::play::{Dice, cut, play, play_with};

#[test]
fn a_join_waits_for_every_subset_of_branches_in_every_order() {
    let model = "input x
    A: user
    B: task b
    C: sub {
        U: user
        start -> U -> end
    }
    D: user | times 2
    E: user
    g: or
    j: or
    start -> g -> A if list contains(x, 1)
    g -> B if list contains(x, 2)
    g -> C if list contains(x, 3)
    g -> D if list contains(x, 4)
    g -> E if list contains(x, 5)
    A -> j -> Z -> end
    B -> j
    C -> j
    D -> j
    E -> Y -> j";
    for subset in 1_u32..32 {
        let numbers: Vec<u32> =
            (1..=5).filter(|number| subset & (1 << (number - 1)) != 0).collect();
        let mut run = play_with(model, json!({"x": numbers})).with(u64::from(subset), None);
        let mut open: Vec<&str> = numbers
            .iter()
            .flat_map(|number| {
                [&["A"][..], &["B"], &["U"], &["D", "D"], &["E"]][*number as usize - 1]
            })
            .copied()
            .collect();
        let mut dice = Dice(u64::from(subset));
        while !open.is_empty() {
            assert_eq!(run.left("Z"), 0, "it opens before {open:?}");
            run.done(open.swap_remove(dice.below(open.len())));
        }
        assert_eq!(run.left("Z"), 1, "{}", run.path());
        assert!(matches!(run.status, Status::Completed { .. }));
    }
}

#[test]
fn a_join_waits_for_whoever_is_upstream_in_any_way() {
    // A sub-process, a multi-instance, an event-based gateway, a boundary event, another join.
    for (branch, ways) in [
        ("B: sub {\n U: user\n start -> U -> end\n }\n g -> B -> j", &["U"][..]),
        ("B: user | times 2\n g -> B -> j", &["B", "B"]),
        ("B: user\n V: user\n k: or\n h: and\n g -> h -> B -> k -> j\n h -> V -> k", &["V", "B"]),
        ("B: user\n V: user\n k: and\n h: and\n g -> h -> B -> k -> j\n h -> V -> k", &["B", "V"]),
        ("B: user\n V: user\n g -> B -> V -> j", &["B", "V"]),
    ] {
        cut(|| {
            let mut run = play(&format!(
                "A: user\n g: and\n j: or\n start -> g -> A -> j -> Z -> end\n{branch}"
            ));
            run.done("A");
            for way in ways {
                assert_eq!(run.left("Z"), 0, "{branch}");
                run.done(way);
            }
            assert_eq!(run.left("Z"), 1, "{branch}");
            assert!(matches!(run.status, Status::Completed { .. }));
        });
    }
}

#[test]
fn a_join_waits_for_what_may_leave_by_a_boundary_event() {
    let model = "A: user
        B: user
        g: and
        j: or
        b: on B timer PT1M
        start -> g -> A -> j -> Z -> end
        g -> B -> end
        b -> j";
    cut(|| {
        let mut run = play(model);
        run.done("A");
        run.waits("A");
        run.pass(60);
        run.ends("A -B Z");
        let mut run = play(model);
        run.done("A");
        run.done("B");
        run.ends("A B Z");
    });
}

#[test]
fn a_join_opens_again_in_each_round_of_a_loop() {
    cut(|| {
        let mut run = play_with(
            "input n:number
            m: xor
            g: or
            j: or
            t: xor
            A: user
            Less: script n = n - 1
            start -> m -> g
            g -> A if modulo(n, 2) = 1
            g -> B if n > 0
            g -> C else
            A -> j
            B -> j
            C -> j
            j -> Less -> t
            t -> m if n > -1
            t -> end else",
            json!({"n": 3}),
        );
        run.waits("B");
        run.done("A");
        run.waits("B A Less B Less B");
        run.done("A");
        run.ends("B A Less B Less B A Less C Less");
    });
}

#[test]
fn two_that_come_along_one_flow_pass_a_join_one_after_the_other() {
    cut(|| {
        let mut run = play(
            "A: user\n B: user\n g: and\n j: or\n start -> g -> A -> j -> Z -> end\n g -> A\n g -> B -> j",
        );
        run.done("A");
        run.done("A");
        run.waits("A A");
        run.done("B");
        run.ends("A A B Z Z");
    });
}

#[test]
fn joins_one_after_the_other_open_in_their_order() {
    cut(|| {
        let mut run = play(
            "A: user
            B: user
            C: user
            g: and
            j: or
            k: or
            start -> g -> A -> j -> Y -> k -> Z -> end
            g -> B -> j
            g -> C -> k",
        );
        run.all_done(&["C", "B"]);
        run.waits("C B");
        run.done("A");
        run.ends("C B A Y Z");
    });
}

#[test]
fn inclusive_joins_that_wait_for_each_other_end_the_run_as_stuck() {
    // Each of them can be reached from the other along an empty flow only.
    let run = play(
        "g: and
        j: or
        k: or
        x: xor
        y: xor
        start -> g -> j -> x -> k if 1 = 1
        x -> end else
        g -> k -> y
        y -> j if 1 = 1
        y -> end else",
    );
    run.fails(FailureCode::Stuck, "j", None);
}

#[test]
fn a_join_in_a_sub_process_knows_only_its_own_paths() {
    cut(|| {
        let mut run = play(
            "S: sub | times 2 {
                A: user
                B: user
                g: or
                j: or
                start -> g -> A if 1 = 1
                A -> j
                g -> B if loopCounter = 2
                B -> j -> Z -> end
            }
            start -> S -> end",
        );
        run.done("A");
        run.waits("A Z S");
        run.done("A");
        run.waits("A Z S A");
        run.done("B");
        run.ends("A Z S A B Z S S");
    });
}

#[test]
fn flows_with_conditions_leave_an_activity_like_an_inclusive_gateway() {
    for (x, path) in [(1, "A B D"), (2, "A B C D"), (0, "A B D")] {
        let run = play_with(
            "input x:number\n start -> A -> B\n A -> C if x > 1\n B -> j\n C -> j\n j: or\n j -> D -> end",
            json!({"x": x}),
        );
        run.ends(path);
    }
    for (x, path) in [(1, "A B"), (2, "A C"), (0, "A D")] {
        let run = play_with(
            "input x:number\n start -> A -> B if x = 1\n A -> C if x = 2\n A -> D else\n B -> end\n C -> end\n D -> end",
            json!({"x": x}),
        );
        run.ends(path);
    }
    let run = play_with(
        "input x:number\n start -> A -> B if x = 1\n A -> C if x = 2\n B -> end\n C -> end",
        json!({"x": 3}),
    );
    run.fails(FailureCode::NoFlowTaken, "A", None);
}
