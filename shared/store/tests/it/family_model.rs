//! Random sequences of calls, ends, pauses and checkpoints in families of runs, against a simple model of who hears of whom.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runfleet_domain::{RunId, RunState};
use runfleet_store::{
    AlarmSet, Checkpoint, ChildStarted, Claim, Claimed, End, Finished, Saved, StartChild, Wake,
};

use crate::children::call;
use crate::world::{Request, World, name};

const RUNS_MAX: usize = 12;

/// One step. Runs are named by their place in the order in which they were made; the first two have no parent.
#[derive(Debug, Clone)]
enum Step {
    Call {
        parent: usize,
        instance: u64,
        attempt: u32,
    },
    End(usize),
    /// Claims the run and deals with all that waits for it.
    Work(usize),
    Pause(usize),
    Resume(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = 0..RUNS_MAX;
    let step = prop_oneof![
        5 => (0..RUNS_MAX / 2, 0..3_u64, 1..3_u32)
            .prop_map(|(parent, instance, attempt)| Step::Call { parent, instance, attempt }),
        4 => run.clone().prop_map(Step::End),
        3 => run.clone().prop_map(Step::Work),
        1 => run.clone().prop_map(Step::Pause),
        1 => run.prop_map(Step::Resume),
    ];
    prop::collection::vec(step, 1..50)
}

struct Run {
    id: RunId,
    parent: Option<usize>,
    instance: u64,
    state: RunState,
    open: Vec<usize>,
    /// Ended children that it has not heard of.
    inbox: Vec<usize>,
    calls: BTreeMap<(u64, u32), RunId>,
}

struct Model<'a> {
    world: &'a World,
    runs: Vec<Run>,
}

impl Model<'_> {
    fn add(&mut self, id: RunId, parent: Option<usize>, instance: u64) {
        let (state, calls) = (RunState::Queued, BTreeMap::new());
        self.runs.push(Run {
            id,
            parent,
            instance,
            state,
            open: Vec::new(),
            inbox: Vec::new(),
            calls,
        });
    }

    async fn step(&mut self, step: &Step) {
        let (Step::Call { parent: run, .. }
        | Step::End(run)
        | Step::Work(run)
        | Step::Pause(run)
        | Step::Resume(run)) = *step;
        let Some(id) = self.runs.get(run).map(|run| run.id) else { return };
        match *step {
            Step::Call { instance, attempt, .. } => self.call(run, instance, attempt).await,
            Step::End(_) => self.end(run).await,
            Step::Work(_) => self.work(run).await,
            Step::Pause(_) => {
                self.world.store.pause_run(id).await.unwrap();
                let run = &mut self.runs[run];
                if !run.state.is_final() {
                    run.state = RunState::Paused;
                }
            }
            Step::Resume(_) => {
                self.world.store.resume_run(id).await.unwrap();
                let run = &mut self.runs[run];
                if run.state == RunState::Paused {
                    run.state = RunState::Running;
                }
            }
        }
    }

    async fn call(&mut self, parent: usize, instance: u64, attempt: u32) {
        let target = name("sub");
        let caller = &self.runs[parent];
        let start = StartChild { attempt, ..call(self.world, caller.id, &target, instance) };
        let made = caller.calls.get(&(instance, attempt)).copied();
        if made.is_none() && self.runs.len() == RUNS_MAX {
            return;
        }
        let answer = self.world.store.start_child(&start).await.unwrap();
        if caller.state.is_final() {
            assert_eq!(answer, ChildStarted::ParentEnded);
            return;
        }
        let ChildStarted::Started { run, duplicate } = answer else { panic!("{answer:?}") };
        assert_eq!((duplicate, run), (made.is_some(), made.unwrap_or(run)));
        if made.is_none() {
            let child = self.runs.len();
            self.add(run, Some(parent), instance);
            self.runs[parent].open.push(child);
            self.runs[parent].calls.insert((instance, attempt), run);
        }
    }

    async fn end(&mut self, run: usize) {
        let id = self.runs[run].id;
        let answer = self.world.store.end_run(id, &End::plain(RunState::Canceled)).await.unwrap();
        if self.runs[run].state.is_final() {
            let Finished::Ended(record) = answer else { panic!("{answer:?}") };
            let parent = self.runs[run].parent.map(|parent| self.runs[parent].id);
            assert_eq!(record.parent.map(|parent| parent.run_id), parent);
            return;
        }
        let parent = self.runs[run].parent;
        let live = parent.filter(|parent| !self.runs[*parent].state.is_final());
        let Finished::Finished { children, parent_to_wake, .. } = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(children, !self.runs[run].open.is_empty());
        let wakes = live.map(|parent| self.runs[parent].id);
        assert_eq!(parent_to_wake.map(|woken| woken.run_id), wakes);
        self.runs[run].state = RunState::Canceled;
        self.runs[run].inbox.clear();
        if let Some(parent) = parent {
            self.runs[parent].open.retain(|child| *child != run);
        }
        if let Some(parent) = live {
            self.runs[parent].inbox.push(run);
        }
    }

    async fn work(&mut self, run: usize) {
        let id = self.runs[run].id;
        match self.world.store.claim_run(id, Claim::default()).await.unwrap() {
            Claimed::Ended(record) => {
                assert!(self.runs[run].state.is_final());
                assert_eq!(record.has_called, !self.runs[run].calls.is_empty());
            }
            Claimed::Paused(_) => assert_eq!(self.runs[run].state, RunState::Paused),
            Claimed::Claimed { fence, inbox, .. } => {
                let heard: Vec<_> = inbox.iter().map(|event| event.id.to_string()).collect();
                let ended = self.runs[run].inbox.iter();
                let ended: Vec<_> = ended.map(|child| self.runs[*child].id).collect();
                let expected: Vec<_> = ended.iter().map(|child| format!("child:{child}")).collect();
                assert_eq!(heard, expected);
                let consumed: Vec<_> = inbox.into_iter().map(|event| event.id).collect();
                let checkpoint = Checkpoint {
                    release: true,
                    wake: Wake::Never,
                    consumed: &consumed,
                    ..Checkpoint::new("p")
                };
                let saved = self.world.store.checkpoint_run(id, fence, &checkpoint).await.unwrap();
                assert_eq!(saved, Saved::Saved { released: true, inbox: Vec::new() });
                let run = &mut self.runs[run];
                (run.state, run.inbox) = (RunState::Running, Vec::new());
            }
            other => panic!("{other:?}"),
        }
    }

    async fn check(&self) {
        let store = &self.world.store;
        for run in &self.runs {
            let open = store.open_children(run.id, 1_000).await.unwrap();
            let mut open: Vec<_> =
                open.into_iter().map(|child| (child.run_id, child.instance)).collect();
            let children = run.open.iter().map(|child| &self.runs[*child]);
            let mut expected: Vec<_> = children.map(|child| (child.id, child.instance)).collect();
            open.sort();
            expected.sort();
            assert_eq!(open, expected);
            let explained = store.explain_run(run.id).await.unwrap().unwrap();
            assert_eq!(explained.record.state, run.state);
            assert_eq!(explained.children, run.open.len() as u64);
            assert_eq!(explained.inbox_events, run.inbox.len() as u64);
            if run.state.is_final() {
                assert_eq!(explained.alarm_at_ms.is_some(), !run.open.is_empty());
            } else if run.state != RunState::Paused && !run.inbox.is_empty() {
                assert!(explained.alarm_at_ms.is_some());
            }
        }
        let over = |run: &&Run| run.state.is_final() && !run.open.is_empty();
        let at_least = self.runs.iter().filter(over).count() as u64;
        assert!(self.world.alarms(AlarmSet::Process).await >= at_least);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn families_of_runs_hear_of_each_other_as_the_model_says_after_any_sequence_of_operations(
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let mut model = Model { world: &world, runs: Vec::new() };
            for _ in 0..2 {
                let request = Request { outcome: false, ..Request::process() };
                model.add(world.run(&request).await, None, 0);
            }
            for step in &steps {
                model.step(step).await;
                model.check().await;
            }
            world.end().await;
        });
    }
}
