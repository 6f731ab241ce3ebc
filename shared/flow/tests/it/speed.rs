//! How long a run takes. Not a check: a loaded machine would fail it.

use std::time::Instant;

use runfleet_flow::{Definition, Event, Slice, Status, advance};
use serde_json::json;

use crate::support::{map, parse};

const RUNS: u32 = 20_000;

#[test]
#[ignore = "measures; run it alone, with --release and --nocapture"]
fn the_time_of_a_run_is_printed() {
    let approve = parse(include_str!("../../../../deploy/example/approve-discount.bpmn"));
    let count = parse(include_str!("../../../../deploy/example/count-to-limit.bpmn"));
    let began = Instant::now();
    for _ in 0..200 {
        let text = include_str!("../../../../deploy/example/approve-discount.bpmn");
        assert!(Definition::parse(text).is_ok());
    }
    println!("reading approve-discount: {:?}", began.elapsed() / 200);
    let mut best = None;
    for _ in 0..5 {
        let began = Instant::now();
        for amount in 0..RUNS {
            let state = approve.start(map(json!({"amount": amount}))).expect("fits");
            let slice = Slice { max_steps: 1000 };
            let end = advance(&approve, state, Event::Continue, slice);
            assert!(matches!(end.status, Status::Completed { .. }));
        }
        let each = began.elapsed() / RUNS;
        best = Some(best.map_or(each, |best: std::time::Duration| best.min(each)));
    }
    println!("a run of approve-discount: {:?}", best.expect("measured"));
    let began = Instant::now();
    let state = count.start(map(json!({"limit": 9000}))).expect("fits");
    let end = advance(&count, state, Event::Continue, Slice { max_steps: 1_000_000 });
    assert!(matches!(end.status, Status::Completed { .. }));
    let steps = u32::try_from(end.state.steps()).expect("few");
    println!("a step of count-to-limit: {:?}", began.elapsed() / steps);
}
