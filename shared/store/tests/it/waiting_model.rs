//! Random sequences of subscriptions, messages, signals, ends and pauses against a simple model of who gets what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use runfleet_domain::{MessageId, RunId, RunState};
use runfleet_store::{
    BroadcastSignal, Checkpoint, Claim, Claimed, End, Published, Saved, Wait, Waits, Wake,
};

use crate::messages::{body, paid};
use crate::world::{Request, World, message};

const RUNS: usize = 3;
const KEYS: [&str; 2] = ["a", "b"];
const HALF_HOUR_MS: i64 = 1_800_000;

#[derive(Debug, Clone)]
enum Step {
    /// A checkpoint: which of its waits a run keeps, and how many it adds for each key.
    Subscribe {
        run: usize,
        kept: u8,
        added: [u8; 2],
        signal: bool,
        consume: bool,
        release: bool,
    },
    Publish {
        key: usize,
        id: u8,
        kept: bool,
    },
    Signal(u8),
    End(usize),
    Pause(usize),
    Resume(usize),
    HalfHour,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (run, flag) = (0..RUNS, any::<bool>());
    let subscribe = (run.clone(), any::<u8>(), [0..3_u8, 0..3_u8], flag, flag, flag).prop_map(
        |(run, kept, added, signal, consume, release)| Step::Subscribe {
            run,
            kept,
            added,
            signal,
            consume,
            release,
        },
    );
    let step = prop_oneof![
        6 => subscribe,
        6 => (0..2_usize, 0..12_u8, flag).prop_map(|(key, id, kept)| Step::Publish { key, id, kept }),
        2 => (0..4_u8).prop_map(Step::Signal),
        1 => run.clone().prop_map(Step::End),
        1 => run.clone().prop_map(Step::Pause),
        1 => run.prop_map(Step::Resume),
        1 => Just(Step::HalfHour),
    ];
    prop::collection::vec(step, 1..50)
}

struct Run {
    id: RunId,
    state: RunState,
    fence: Option<u64>,
    /// What its last checkpoint has said: key and subscription.
    waits: Vec<(usize, u64)>,
    signal: bool,
    numbers: u64,
    inbox: Vec<String>,
    signals: BTreeSet<u8>,
}

struct Model<'a> {
    world: &'a World,
    now: i64,
    runs: Vec<Run>,
    /// For each key, who waits and has got nothing, in order.
    index: [Vec<(usize, u64)>; 2],
    /// For each key, what is kept and until when.
    kept: [Vec<(u8, i64)>; 2],
    /// What became of a message: the run, or none when it was kept.
    sent: BTreeMap<u8, Option<usize>>,
}

impl Model<'_> {
    async fn step(&mut self, step: &Step) {
        let store = &self.world.store;
        match *step {
            Step::Subscribe { run, kept, added, signal, consume, release } => {
                if self.hold(run).await {
                    let list = self.wanted(run, kept, added);
                    self.subscribe(run, list, signal, (consume, release)).await;
                }
            }
            Step::Publish { key, id, kept } => self.publish(key, id, kept).await,
            Step::Signal(id) => self.signal(id).await,
            Step::End(run) => {
                store.end_run(self.runs[run].id, &End::plain(RunState::Canceled)).await.unwrap();
                for index in &mut self.index {
                    index.retain(|(waiting, _)| *waiting != run);
                }
                let run = &mut self.runs[run];
                (run.state, run.fence, run.signal) = (RunState::Canceled, None, false);
                run.inbox.clear();
            }
            Step::Pause(run) => {
                store.pause_run(self.runs[run].id).await.unwrap();
                let run = &mut self.runs[run];
                if !run.state.is_final() {
                    (run.state, run.fence) = (RunState::Paused, None);
                }
            }
            Step::Resume(run) => {
                store.resume_run(self.runs[run].id).await.unwrap();
                let run = &mut self.runs[run];
                if run.state == RunState::Paused {
                    run.state = RunState::Running;
                }
            }
            Step::HalfHour => {
                self.now += HALF_HOUR_MS;
                self.world.move_clock(self.now).await;
            }
        }
    }

    /// Whether the run is held now.
    async fn hold(&mut self, run: usize) -> bool {
        let run = &mut self.runs[run];
        if run.fence.is_some() {
            return true;
        }
        match self.world.store.claim_run(run.id, Claim::default()).await.unwrap() {
            Claimed::Claimed { fence, inbox, .. } => {
                let bodies: Vec<_> = inbox.into_iter().map(|event| event.body).collect();
                assert_eq!(bodies, run.inbox);
                (run.fence, run.state) = (Some(fence), RunState::Running);
                true
            }
            Claimed::Ended(_) => {
                assert!(run.state.is_final());
                false
            }
            Claimed::Paused(_) => {
                assert_eq!(run.state, RunState::Paused);
                false
            }
            other => panic!("{other:?}"),
        }
    }

    fn wanted(&mut self, run: usize, kept: u8, added: [u8; 2]) -> Vec<(usize, u64)> {
        let run = &mut self.runs[run];
        let old = run.waits.iter().enumerate();
        let mut list: Vec<_> =
            old.filter(|(place, _)| kept >> (place % 8) & 1 == 1).map(|(_, wait)| *wait).collect();
        for (key, added) in added.into_iter().enumerate() {
            for _ in 0..added {
                run.numbers += 1;
                list.push((key, run.numbers));
            }
        }
        list
    }

    async fn subscribe(
        &mut self,
        run: usize,
        list: Vec<(usize, u64)>,
        signal: bool,
        (consume, release): (bool, bool),
    ) {
        let mut waits: Vec<_> =
            list.iter().map(|(key, number)| paid(KEYS[*key], *number)).collect();
        if signal {
            waits.push(Wait::Signal { name: "stop" });
        }
        let consumed = if consume { self.event_ids(run).await } else { Vec::new() };
        let (workspace, project) = (&self.world.workspace, &self.world.project);
        let waits = Waits { workspace, project, list: &waits };
        let checkpoint = Checkpoint {
            release,
            wake: Wake::Never,
            waits: Some(&waits),
            consumed: &consumed,
            ..Checkpoint::new("p")
        };
        let fence = self.runs[run].fence.unwrap();
        let answer =
            self.world.store.checkpoint_run(self.runs[run].id, fence, &checkpoint).await.unwrap();
        let Saved::Saved { released, inbox } = answer else { panic!("{answer:?}") };
        if consume {
            self.runs[run].inbox.clear();
        }
        self.change_waits(run, list);
        let run = &mut self.runs[run];
        run.signal = signal;
        let bodies: Vec<_> = inbox.into_iter().map(|event| event.body).collect();
        assert_eq!(bodies, run.inbox);
        assert_eq!(released, release && run.inbox.is_empty());
        if released {
            run.fence = None;
        }
    }

    fn change_waits(&mut self, run: usize, list: Vec<(usize, u64)>) {
        let now = self.now;
        for (key, number) in &list {
            if self.runs[run].waits.contains(&(*key, *number)) {
                continue;
            }
            self.kept[*key].retain(|(_, until)| *until > now);
            if self.kept[*key].is_empty() {
                self.index[*key].push((run, *number));
            } else {
                let (id, _) = self.kept[*key].remove(0);
                self.runs[run].inbox.push(body(*number, &format!("m{id}")));
            }
        }
        for (key, index) in self.index.iter_mut().enumerate() {
            index.retain(|(waiting, number)| *waiting != run || list.contains(&(key, *number)));
        }
        self.runs[run].waits = list;
    }

    /// Ids of what waits for a run, past the store.
    async fn event_ids(&self, run: usize) -> Vec<MessageId> {
        let mut raw = self.world.raw().await;
        let inbox = self.world.key_name(&format!("inbox:{}", self.runs[run].id));
        let ids: Vec<String> =
            redis::cmd("ZRANGE").arg(inbox).arg(0).arg(-1).query_async(&mut raw).await.unwrap();
        ids.iter().map(|id| message(id)).collect()
    }

    async fn publish(&mut self, key: usize, id: u8, kept: bool) {
        // A minute more than half an hour, so that the time of the test itself does not matter.
        let ttl = if kept { Duration::from_mins(31) } else { Duration::ZERO };
        let answer = self.world.publish(KEYS[key], &format!("m{id}"), ttl).await;
        let delivered = |answer: &Published, expected: RunId, before| match answer {
            Published::Delivered { to, again } => {
                assert_eq!((to.run_id, *again), (expected, before));
            }
            other => panic!("{other:?}"),
        };
        match self.sent.get(&id) {
            Some(Some(run)) => delivered(&answer, self.runs[*run].id, true),
            Some(None) => assert_eq!(answer, Published::Buffered { again: true }),
            None if !self.index[key].is_empty() => {
                let (run, number) = self.index[key].remove(0);
                delivered(&answer, self.runs[run].id, false);
                self.runs[run].inbox.push(body(number, &format!("m{id}")));
                self.sent.insert(id, Some(run));
            }
            None if kept => {
                assert_eq!(answer, Published::Buffered { again: false });
                self.kept[key].push((id, self.now + HALF_HOUR_MS + 60_000));
                self.sent.insert(id, None);
            }
            None => assert_eq!(answer, Published::Nobody),
        }
    }

    async fn signal(&mut self, id: u8) {
        let signal = BroadcastSignal {
            workspace: &self.world.workspace,
            project: &self.world.project,
            name: "stop",
            variables_json: "{}",
            id: &message(&format!("s{id}")),
        };
        let page = self.world.store.broadcast_signal(&signal, 100, None).await.unwrap();
        assert_eq!((page.full, page.next), (0, None));
        let mut told: Vec<_> = page.woken.into_iter().map(|woken| woken.run_id).collect();
        told.sort();
        let mut expected = Vec::new();
        for run in self.runs.iter_mut().filter(|run| run.signal) {
            expected.push(run.id);
            if run.signals.insert(id) {
                run.inbox.push(r#"{"kind":"signal","name":"stop","variables":{}}"#.to_owned());
            }
        }
        expected.sort();
        assert_eq!(told, expected);
    }

    async fn check(&self) {
        for run in &self.runs {
            let explained = self.world.store.explain_run(run.id).await.unwrap().unwrap();
            assert_eq!(explained.record.state, run.state);
            assert_eq!(explained.inbox_events, run.inbox.len() as u64);
            let over = run.state.is_final();
            let waits = if over { 0 } else { run.waits.len() + usize::from(run.signal) };
            assert_eq!(explained.waits, waits);
            // Whoever has something to deal with and is free has an alarm.
            if run.state == RunState::Running && run.fence.is_none() && !run.inbox.is_empty() {
                assert!(explained.alarm_at_ms.is_some());
            }
        }
    }

    /// The index has what the model says and nothing else.
    async fn check_keys(&self) {
        let keys = self.index.iter().filter(|index| !index.is_empty()).count();
        assert_eq!(self.world.keys_like("wait:*").await, keys);
        let waits_for_signal = self.runs.iter().any(|run| run.signal);
        assert_eq!(self.world.keys_like("signal:*").await, usize::from(waits_for_signal));
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
    fn messages_and_signals_go_where_the_model_says_after_any_sequence_of_operations(
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::with_movable_clock().await;
            let mut model = Model {
                world: &world,
                now: 0,
                runs: Vec::new(),
                index: [Vec::new(), Vec::new()],
                kept: [Vec::new(), Vec::new()],
                sent: BTreeMap::new(),
            };
            for _ in 0..RUNS {
                model.runs.push(Run {
                    id: world.run(&Request::process()).await,
                    state: RunState::Queued,
                    fence: None,
                    waits: Vec::new(),
                    signal: false,
                    numbers: 0,
                    inbox: Vec::new(),
                    signals: BTreeSet::new(),
                });
            }
            for step in &steps {
                model.step(step).await;
                model.check().await;
            }
            model.check_keys().await;
            world.end().await;
        });
    }
}
