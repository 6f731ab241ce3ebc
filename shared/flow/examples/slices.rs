//! How long slices and stored states take, without Redis and RabbitMQ: `cargo run --release -p runfleet-flow --example slices`.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use runfleet_flow::{Definition, Slice, State, Status, advance};
use serde_json::{Map, Value, json};

const ROUNDS: u32 = 7;
const TIMES: u32 = 2_000;
const NOW_MS: u64 = 1_800_000_000_000;
const SLICE: Slice = Slice { max_steps: 1_000 };

type Fault = Box<dyn std::error::Error>;

/// Microseconds of one call, the best of several rounds: other programs can only make it slower.
fn micros(mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let began = Instant::now();
        for _ in 0..TIMES {
            work();
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn definition(file: &str) -> Result<Definition, Fault> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    Definition::parse(&std::fs::read_to_string(path)?)
        .map_err(|problems| format!("{problems:?}").into())
}

fn begin(definition: &Definition, input: &Value) -> Result<State, Fault> {
    let input: Map<String, Value> = input.as_object().cloned().unwrap_or_default();
    definition.start(input).map_err(|_| "the input does not fit".into())
}

fn main() -> Result<(), Fault> {
    for (name, file, input) in [
        ("approve-discount", "deploy/example/approve-discount.bpmn", json!({"amount": 120})),
        ("bench-scripts", "tests/src/bench/models/bench-scripts.bpmn", json!({"amount": 120})),
        ("bench-parallel", "tests/src/bench/models/bench-parallel.bpmn", json!({"amount": 120})),
        (
            "bench-timer",
            "tests/src/bench/models/bench-timer.bpmn",
            json!({"at": "2030-01-01T00:00:00Z", "order": 7}),
        ),
    ] {
        let definition = definition(file)?;
        let first = begin(&definition, &input)?;
        let go =
            |state: &State, now_ms| advance(&definition, state.clone(), Vec::new(), now_ms, SLICE);
        println!("{name}: first slice {:.1} µs", micros(|| drop(black_box(go(&first, NOW_MS)))));
        let after = go(&first, NOW_MS);
        if let Status::Waiting { wake_ms: Some(wake_ms) } = after.status {
            let stored = serde_json::to_string(&after.state)?;
            let write = micros(|| drop(black_box(serde_json::to_string(&after.state))));
            let read = micros(|| drop(black_box(State::from_json(&stored))));
            let rest = micros(|| drop(black_box(go(&after.state, wake_ms))));
            println!(
                "{name}: {} bytes stored, written in {write:.1} µs, read in {read:.1} µs",
                stored.len()
            );
            println!("{name}: slice after the wait {rest:.1} µs");
        }
    }
    let definition = definition("tests/src/bench/models/bench-parallel.bpmn")?;
    let some = advance(
        &definition,
        begin(&definition, &json!({"amount": 120}))?,
        Vec::new(),
        NOW_MS,
        Slice { max_steps: 8 },
    );
    let stored = serde_json::to_string(&some.state)?;
    let read = micros(|| drop(black_box(State::from_json(&stored))));
    println!("ten open branches: {} bytes stored, read in {read:.1} µs", stored.len());
    Ok(())
}
