//! Random sequences of operations against a simple model of what the ledger should hold.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use runfleet_domain::{JobId, RunId, RunState};
use runfleet_store::{
    AlarmSet, Appended, Checkpoint, Claim, Claimed, End, Finished, HandedOver, JobFinished,
    OutcomeState, Paused, Renewed, Saved, Started, Wake,
};

use crate::world::{Request, World, finished, message, name};

const LEASE_MS: i64 = 60_000;
const RETENTION_MS: i64 = 7 * 86_400_000;

/// One step. Runs are named by their place in the order in which they were made.
#[derive(Debug, Clone)]
enum Step {
    Start {
        key: u8,
        identity: bool,
        outcome: bool,
    },
    Claim(usize),
    Renew(usize, bool),
    Checkpoint {
        run: usize,
        fresh: bool,
        release: bool,
        consume: bool,
        timer: bool,
    },
    Append(usize, u8),
    Finish(usize, bool),
    FinishUnclaimed(usize, bool),
    Cancel(usize),
    Pause(usize),
    Resume(usize),
    HandOver(usize),
    FinishJob(usize),
    /// Less than a lease; two of them are more.
    ShortWait,
    LongWait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = 0..4_usize;
    let fresh = prop::bool::weighted(0.8);
    let flag = any::<bool>();
    let step = prop_oneof![
        4 => (0..3_u8, flag, flag)
            .prop_map(|(key, identity, outcome)| Step::Start { key, identity, outcome }),
        4 => run.clone().prop_map(Step::Claim),
        1 => (run.clone(), fresh).prop_map(|(run, fresh)| Step::Renew(run, fresh)),
        4 => (run.clone(), fresh, flag, flag, flag).prop_map(
            |(run, fresh, release, consume, timer)| {
                Step::Checkpoint { run, fresh, release, consume, timer }
            }
        ),
        2 => (run.clone(), 0..4_u8).prop_map(|(run, event)| Step::Append(run, event)),
        2 => (run.clone(), fresh).prop_map(|(run, fresh)| Step::Finish(run, fresh)),
        2 => (run.clone(), fresh).prop_map(|(run, fresh)| Step::FinishUnclaimed(run, fresh)),
        1 => run.clone().prop_map(Step::Cancel),
        1 => run.clone().prop_map(Step::Pause),
        1 => run.clone().prop_map(Step::Resume),
        2 => run.clone().prop_map(Step::HandOver),
        1 => run.prop_map(Step::FinishJob),
        2 => Just(Step::ShortWait),
        1 => Just(Step::LongWait),
    ];
    prop::collection::vec(step, 1..60)
}

struct Run {
    id: RunId,
    identity: bool,
    outcome: OutcomeState,
    state: RunState,
    version: u64,
    fence: u64,
    /// End of the lease; 0 when nobody holds it.
    lease: i64,
    waiting: BTreeSet<u8>,
    seen: BTreeSet<u8>,
    finished_at: i64,
    alarm: bool,
    job_ended: bool,
}

impl Run {
    fn held(&self, now: i64) -> bool {
        self.lease > now
    }

    fn end(&mut self, state: RunState, now: i64) -> Finished {
        let wanted = self.outcome == OutcomeState::Pending;
        self.state = state;
        self.version += 1;
        self.fence += 1;
        self.lease = 0;
        self.waiting.clear();
        self.finished_at = now;
        self.alarm = wanted;
        finished(wanted)
    }
}

/// Only what comes back is compared, not the record that goes with it.
fn without_record(finished: Finished) -> Finished {
    match finished {
        Finished::Ended(_) => Finished::Busy,
        other => other,
    }
}

struct Model<'a> {
    world: &'a World,
    runs: Vec<Run>,
    keys: HashMap<u8, usize>,
    now: i64,
}

impl Model<'_> {
    async fn step(&mut self, step: &Step) {
        match *step {
            Step::Start { key, identity, outcome } => self.start(key, identity, outcome).await,
            Step::ShortWait => self.wait(LEASE_MS / 2 + 5_000).await,
            Step::LongWait => self.wait(RETENTION_MS / 2 + 60_000).await,
            Step::Claim(run)
            | Step::Renew(run, _)
            | Step::Checkpoint { run, .. }
            | Step::Append(run, _)
            | Step::Finish(run, _)
            | Step::FinishUnclaimed(run, _)
            | Step::Cancel(run)
            | Step::Pause(run)
            | Step::Resume(run)
            | Step::HandOver(run)
            | Step::FinishJob(run) => {
                let (world, now) = (self.world, self.now);
                if let Some(run) = self.runs.get_mut(run) {
                    step_of_run(world, now, run, step).await;
                }
            }
        }
    }

    async fn wait(&mut self, span: i64) {
        self.now += span;
        self.world.move_clock(self.now).await;
    }

    async fn start(&mut self, key: u8, identity: bool, outcome: bool) {
        let request = Request { outcome, ..Request::process().with_key(&format!("k{key}")) };
        let who = if identity { "user:ann" } else { "system" };
        let answer = self.world.start(&Request { identity: who.to_owned(), ..request }).await;
        let holder = self
            .keys
            .get(&key)
            .map(|place| &self.runs[*place])
            .filter(|run| !run.state.is_final() || self.now < run.finished_at + RETENTION_MS);
        if let Some(run) = holder {
            let expected = if run.identity == identity {
                Started::Duplicate { run: run.id, state: run.state }
            } else {
                Started::Conflict
            };
            assert_eq!(answer, expected);
            return;
        }
        let Started::Created { run } = answer else { panic!("{answer:?}") };
        self.keys.insert(key, self.runs.len());
        self.runs.push(Run {
            id: run,
            identity,
            outcome: if outcome { OutcomeState::Pending } else { OutcomeState::None },
            state: RunState::Queued,
            version: 1,
            fence: 0,
            lease: 0,
            waiting: BTreeSet::new(),
            seen: BTreeSet::new(),
            finished_at: 0,
            alarm: true,
            job_ended: false,
        });
    }

    async fn check(&self) {
        let (mut live, mut done) = (0, 0);
        for run in &self.runs {
            let record = self.world.load(run.id).await;
            assert_eq!(
                (record.state, record.version, record.fence, record.outcome),
                (run.state, run.version, run.fence, run.outcome),
            );
            let explained = self.world.store.explain_run(run.id).await.unwrap().unwrap();
            assert_eq!(explained.inbox_events, run.waiting.len() as u64);
            assert_eq!(explained.alarm_at_ms.is_some(), run.alarm);
            let settled = run.state.is_final() && run.outcome != OutcomeState::Pending;
            assert_eq!(explained.expires_in.is_some(), settled);
            let job_lives = run.outcome == OutcomeState::Job && !run.job_ended;
            done += u64::from(job_lives) + u64::from(run.alarm && run.state.is_final());
            live += u64::from(run.alarm && !run.state.is_final());
        }
        assert_eq!(self.world.alarms(AlarmSet::Process).await, live);
        assert_eq!(self.world.alarms(AlarmSet::Done).await, done);
    }
}

async fn step_of_run(world: &World, now: i64, run: &mut Run, step: &Step) {
    let store = &world.store;
    let end = End::plain(RunState::Completed);
    match *step {
        Step::Claim(_) => claim(world, now, run).await,
        Step::Renew(_, fresh) => {
            let fence = run.fence - u64::from(!fresh && run.fence > 0);
            let answer = store.renew_lease(run.id, fence).await.unwrap();
            let mine = run.state == RunState::Running && fence == run.fence && run.lease != 0;
            if mine {
                run.lease = now + LEASE_MS;
                run.alarm = true;
            }
            let inbox = !run.waiting.is_empty();
            assert_eq!(answer, if mine { Renewed::Renewed { inbox } } else { Renewed::Lost });
        }
        Step::Checkpoint { fresh, release, consume, timer, .. } => {
            let fence = run.fence - u64::from(!fresh && run.fence > 0);
            checkpoint(world, now, run, (fence, release, consume, timer)).await;
        }
        Step::Append(_, event) => append(world, now, run, event).await,
        Step::Finish(_, fresh) => {
            let fence = run.fence - u64::from(!fresh && run.fence > 0);
            let answer = store.finish_run(run.id, fence, &end).await.unwrap();
            let expected = if run.state.is_final() {
                Finished::Busy
            } else if fence != run.fence || run.lease == 0 {
                Finished::Lost
            } else {
                run.end(RunState::Completed, now)
            };
            assert_eq!(without_record(answer), expected);
        }
        Step::FinishUnclaimed(_, fresh) => {
            let version = run.version - u64::from(!fresh);
            let answer = store.claim_and_finish_run(run.id, version, &end).await.unwrap();
            let free = !run.state.is_final()
                && run.state != RunState::Paused
                && !run.held(now)
                && run.waiting.is_empty()
                && fresh;
            let expected = if free { run.end(RunState::Completed, now) } else { Finished::Busy };
            assert_eq!(without_record(answer), expected);
        }
        Step::Cancel(_) => {
            let answer = store.end_run(run.id, &End::plain(RunState::Canceled)).await.unwrap();
            let over = run.state.is_final();
            let expected = if over { Finished::Busy } else { run.end(RunState::Canceled, now) };
            assert_eq!(without_record(answer), expected);
        }
        Step::Pause(_) => {
            let answer = store.pause_run(run.id).await.unwrap();
            assert_eq!(answer, hold(run, RunState::Paused));
        }
        Step::Resume(_) => {
            let answer = store.resume_run(run.id).await.unwrap();
            assert_eq!(answer, hold(run, RunState::Running));
        }
        Step::HandOver(_) => hand_over(world, run).await,
        Step::FinishJob(_) => finish_job(world, run).await,
        Step::Start { .. } | Step::ShortWait | Step::LongWait => unreachable!("not of a run"),
    }
}

async fn claim(world: &World, now: i64, run: &mut Run) {
    match world.store.claim_run(run.id, Claim::default()).await.unwrap() {
        Claimed::Ended(_) => assert!(run.state.is_final()),
        Claimed::Paused(_) => assert_eq!(run.state, RunState::Paused),
        Claimed::Busy { .. } => assert!(run.held(now)),
        Claimed::Claimed { fence, cut_off, inbox, .. } => {
            assert!(!run.state.is_final() && run.state != RunState::Paused && !run.held(now));
            assert_eq!(cut_off, run.lease != 0);
            assert_eq!(inbox.len(), run.waiting.len());
            run.state = RunState::Running;
            run.fence += 1;
            run.version += 1;
            run.lease = now + LEASE_MS;
            run.alarm = true;
            assert_eq!(fence, run.fence);
        }
        Claimed::Missing => panic!("the run is there"),
    }
}

async fn checkpoint(
    world: &World,
    now: i64,
    run: &mut Run,
    (fence, release, consume, timer): (u64, bool, bool, bool),
) {
    let events: Vec<_> = run.waiting.iter().map(|event| message(&format!("e{event}"))).collect();
    let consumed = if consume { &events[..] } else { &[] };
    let wake = if timer { Wake::At(9_000_000_000_000) } else { Wake::Never };
    let checkpoint = Checkpoint { release, wake, consumed, ..Checkpoint::new("p") };
    let answer = world.store.checkpoint_run(run.id, fence, &checkpoint).await.unwrap();
    if run.state.is_final() {
        assert_eq!(answer, Saved::Ended(run.state));
    } else if fence != run.fence || run.lease == 0 {
        assert_eq!(answer, Saved::Lost);
    } else {
        if consume {
            run.waiting.clear();
        }
        let gives_back = release && run.waiting.is_empty();
        run.version += 1;
        run.lease = if gives_back { 0 } else { now + LEASE_MS };
        run.alarm = !gives_back || timer;
        let Saved::Saved { released, inbox } = answer else { panic!("{answer:?}") };
        assert_eq!((released, inbox.len()), (gives_back, run.waiting.len()));
    }
}

async fn append(world: &World, now: i64, run: &mut Run, event: u8) {
    let id = message(&format!("e{event}"));
    let answer = world.store.append_event(run.id, &id, "{}").await.unwrap();
    if run.state.is_final() && run.seen.contains(&event) {
        assert!(matches!(answer, Appended::Known | Appended::Ended), "{answer:?}");
    } else if run.state.is_final() {
        assert_eq!(answer, Appended::Ended);
    } else if run.seen.contains(&event) {
        // Ids are forgotten after eight days; the model does not wait that long in one go.
        assert!(matches!(answer, Appended::Known | Appended::Added));
        if answer == Appended::Added {
            run.waiting.insert(event);
            run.alarm |= !run.held(now) && run.state != RunState::Paused;
        }
    } else {
        assert_eq!(answer, Appended::Added);
        run.seen.insert(event);
        run.waiting.insert(event);
        run.alarm |= !run.held(now) && run.state != RunState::Paused;
    }
}

fn hold(run: &mut Run, wanted: RunState) -> Paused {
    if run.state.is_final() {
        return Paused::Ended(run.state);
    }
    if (wanted == RunState::Paused) == (run.state == RunState::Paused) {
        return Paused::Unchanged(run.state);
    }
    run.state = wanted;
    run.fence += 1;
    run.version += 1;
    run.lease = 0;
    run.alarm = wanted == RunState::Running;
    Paused::Changed
}

async fn hand_over(world: &World, run: &mut Run) {
    let job = "onDone".parse().unwrap();
    let answer = world.store.hand_over(&world.hand_over(run.id, &job)).await.unwrap();
    if !run.state.is_final() {
        assert_eq!(answer, HandedOver::NotEnded);
    } else if run.outcome == OutcomeState::None {
        assert_eq!(answer, HandedOver::NotWanted);
    } else if run.outcome == OutcomeState::Pending {
        assert!(matches!(answer, HandedOver::Delivered(_)), "{answer:?}");
        run.outcome = OutcomeState::Job;
        run.alarm = false;
    } else if run.job_ended {
        assert_eq!(answer, HandedOver::JobBegun);
    } else {
        assert!(matches!(answer, HandedOver::Again(_)), "{answer:?}");
    }
}

async fn finish_job(world: &World, run: &mut Run) {
    let job: JobId = run.id.outcome_job();
    let answer = world.store.finish_job(job, 1, true).await.unwrap();
    if run.outcome != OutcomeState::Job {
        assert_eq!(answer, JobFinished::Missing);
    } else if run.job_ended {
        assert!(matches!(answer, JobFinished::Known(_)), "{answer:?}");
    } else {
        assert_eq!(answer, JobFinished::Ended);
        run.job_ended = true;
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
    fn the_ledger_agrees_with_the_model_after_any_sequence_of_operations(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::with_movable_clock().await;
            let mut model = Model { world: &world, runs: Vec::new(), keys: HashMap::new(), now: 0 };
            assert_eq!(world.workspace, name("acme"));
            for step in &steps {
                model.step(step).await;
            }
            model.check().await;
            world.end().await;
        });
    }
}
