//! Random sequences of what senders do with messages, against a simple model of what may become of them.

use proptest::prelude::*;
use runfleet_domain::{ConversationId, RunId, RunState};
use runfleet_store::{
    Delivery, DeliveryStatus, End, MarkHow, Marked, MessageCaps, Refused, Reserve, Reserved,
};

use crate::chat_world::{Chat, NO_CAPS, UNAVAILABLE, not_sent, rate_limited};
use crate::world::World;

const LEASE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Some time ahead of every clock.
const QUIET_UNTIL_MS: u64 = 4_000_000_000_000;
const PER_RUN: i32 = 2;
const PER_DAY: i32 = 4;
const CALLS: [&str; 3] = ["c1", "c2", "c3"];
const BLOCKED: Refused<'static> =
    Refused { status: DeliveryStatus::Blocked, code: "RECIPIENT_NOT_FOUND" };
const BROKEN: Refused<'static> =
    Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };

const NOT_SENT: Delivery = Delivery {
    status: DeliveryStatus::NotSent,
    error_code: None,
    conversation: None,
    new_conversation: false,
};

/// One step. Messages are named by the place of their run and of their call.
#[derive(Debug, Clone)]
enum Step {
    Reserve {
        run: usize,
        call: usize,
        dedups: bool,
        refused: bool,
        quiet: bool,
    },
    Mark {
        run: usize,
        call: usize,
        stale: bool,
        how: u8,
    },
    EndRun(usize),
    /// Longer than a lease.
    Wait,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (run, call) = (0..3_usize, 0..CALLS.len());
    let rarely = prop::bool::weighted(0.15);
    let step = prop_oneof![
        6 => (run.clone(), call.clone(), any::<bool>(), rarely, prop::bool::weighted(0.3))
            .prop_map(|(run, call, dedups, refused, quiet)| {
                Step::Reserve { run, call, dedups, refused, quiet }
            }),
        6 => (run.clone(), call, rarely, 0..6_u8)
            .prop_map(|(run, call, stale, how)| Step::Mark { run, call, stale, how }),
        1 => run.prop_map(Step::EndRun),
        2 => Just(Step::Wait),
    ];
    prop::collection::vec(step, 1..50)
}

#[derive(Debug, Clone, PartialEq)]
enum Message {
    New,
    /// `until` is the end of the lease; 0 when it was given back.
    Sending {
        fence: u64,
        until: i64,
        unsure: bool,
        /// Whether it has ever had to wait.
        waited: bool,
    },
    /// `counted`: for the day.
    Waiting {
        fence: u64,
        counted: bool,
    },
    Done(Delivery),
}

struct Run {
    id: RunId,
    live: bool,
    counted: i32,
    delivery: Option<Delivery>,
    messages: [Message; 3],
    conversation: Option<(ConversationId, bool)>,
    sent: usize,
}

impl Run {
    fn settle(&mut self, call: usize, delivery: Delivery) {
        self.messages[call] = Message::Done(delivery.clone());
        let sent = |delivery: &Delivery| delivery.status == DeliveryStatus::Sent;
        if self.live && !self.delivery.as_ref().is_some_and(sent) {
            self.delivery = Some(delivery);
        }
    }

    /// One of its messages waits.
    fn put_off(&mut self, call: usize, fence: u64, counted: bool) {
        self.settle(call, NOT_SENT);
        self.messages[call] = Message::Waiting { fence, counted };
    }

    fn end(&mut self) {
        let sending = |message: &Message| matches!(message, Message::Sending { .. });
        let is_sent =
            self.delivery.as_ref().is_some_and(|known| known.status == DeliveryStatus::Sent);
        if !is_sent && self.messages.iter().any(sending) {
            self.delivery = Some(of(UNAVAILABLE));
        }
        self.delivery.get_or_insert(NOT_SENT);
        self.live = false;
    }
}

fn of(refused: Refused<'_>) -> Delivery {
    not_sent(refused.status, refused.code)
}

struct Model<'a> {
    chat: &'a Chat,
    runs: Vec<Run>,
    /// Messages of the day that count.
    counted: i32,
    /// Messages that wait.
    waiting: i32,
    now: i64,
    /// What the clock is ahead at the beginning: a day has just begun, so that none ends during the test.
    ahead: i64,
}

impl Model<'_> {
    async fn step(&mut self, step: &Step) {
        match *step {
            Step::Reserve { run, call, dedups, refused, quiet } => {
                let refused = refused.then_some(BLOCKED);
                self.reserve(run, call, dedups, refused, quiet && refused.is_none()).await;
            }
            Step::Mark { run, call, stale, how } => self.mark(run, call, stale, how).await,
            Step::EndRun(run) => {
                let end = End::plain(RunState::Canceled);
                self.chat.world.store.end_run(self.runs[run].id, &end).await.unwrap();
                if self.runs[run].live {
                    self.runs[run].end();
                }
            }
            Step::Wait => {
                self.now += LEASE_MS + 5_000;
                self.chat.world.move_clock(self.ahead + self.now).await;
            }
        }
    }

    async fn ask(
        &self,
        place: usize,
        call: usize,
        sink_dedups: bool,
        refused: Option<Refused<'static>>,
        quiet: bool,
    ) -> Reserved {
        let run = &self.runs[place];
        let caps = MessageCaps {
            per_run: PER_RUN.unsigned_abs(),
            per_day: PER_DAY.unsigned_abs(),
            ..NO_CAPS
        };
        let wish = self.chat.message(run.id, CALLS[call]);
        let not_before_ms = quiet.then_some(QUIET_UNTIL_MS);
        let wish = Reserve { latest: false, caps, sink_dedups, refused, not_before_ms, ..wish };
        self.chat.reserve(&wish).await
    }

    async fn reserve(
        &mut self,
        place: usize,
        call: usize,
        sink_dedups: bool,
        refused: Option<Refused<'static>>,
        quiet: bool,
    ) {
        let answer = self.ask(place, call, sink_dedups, refused, quiet).await;
        let run = &mut self.runs[place];
        let known = |delivery: Delivery, first| Reserved::Known { delivery, first };
        let now = self.now;
        let expected = match run.messages[call].clone() {
            Message::Done(delivery) => known(delivery, false),
            Message::Sending { until, .. } if until > now => {
                assert!(matches!(answer, Reserved::Busy { .. }), "{answer:?}");
                return;
            }
            Message::Waiting { fence, counted } => {
                if !self.wait_is_over(place, call, counted, refused, quiet, &answer) {
                    return;
                }
                let until = self.now + LEASE_MS;
                self.runs[place].messages[call] =
                    Message::Sending { fence: fence + 1, until, unsure: false, waited: true };
                return self.is_sending(place, &answer, fence + 1);
            }
            Message::Sending { fence, until, unsure, waited } => {
                let unsure = unsure || until != 0;
                if (!run.live && !waited) || (unsure && (!sink_dedups || refused.is_some())) {
                    run.settle(call, of(UNAVAILABLE));
                    self.counted -= i32::from(!unsure);
                    run.counted -= i32::from(!unsure);
                    known(of(UNAVAILABLE), true)
                } else if let Some(refused) = refused {
                    run.settle(call, of(refused));
                    self.counted -= 1;
                    run.counted -= 1;
                    known(of(refused), true)
                } else if quiet && !unsure {
                    run.put_off(call, fence, true);
                    self.waiting += 1;
                    Reserved::Waiting { due_ms: QUIET_UNTIL_MS }
                } else {
                    let until = now + LEASE_MS;
                    run.messages[call] =
                        Message::Sending { fence: fence + 1, until, unsure, waited };
                    return self.is_sending(place, &answer, fence + 1);
                }
            }
            Message::New if !run.live => Reserved::RunEnded,
            Message::New => {
                let day = if quiet { self.waiting } else { self.counted };
                let over = run.counted >= PER_RUN || day >= PER_DAY;
                if refused.is_some() || over {
                    let delivery = refused.map_or_else(rate_limited, of);
                    run.settle(call, delivery.clone());
                    known(delivery, true)
                } else if quiet {
                    run.counted += 1;
                    run.put_off(call, 0, false);
                    self.waiting += 1;
                    Reserved::Waiting { due_ms: QUIET_UNTIL_MS }
                } else {
                    let until = now + LEASE_MS;
                    run.messages[call] =
                        Message::Sending { fence: 1, until, unsure: false, waited: false };
                    run.counted += 1;
                    self.counted += 1;
                    return self.is_sending(place, &answer, 1);
                }
            }
        };
        assert_eq!(answer, expected);
    }

    /// Whether a message that waits is in somebody's hands now.
    fn wait_is_over(
        &mut self,
        place: usize,
        call: usize,
        counted: bool,
        refused: Option<Refused<'static>>,
        quiet: bool,
        answer: &Reserved,
    ) -> bool {
        let run = &mut self.runs[place];
        let full = !counted && self.counted >= PER_DAY;
        let decided = match refused {
            // Runs end by being cancelled here.
            _ if !run.live => Some(NOT_SENT),
            Some(refused) => Some(of(refused)),
            None if quiet => {
                assert_eq!(*answer, Reserved::Waiting { due_ms: QUIET_UNTIL_MS });
                return false;
            }
            None => full.then(rate_limited),
        };
        self.waiting -= 1;
        let Some(delivery) = decided else {
            self.counted += i32::from(!counted);
            return true;
        };
        run.counted -= 1;
        self.counted -= i32::from(counted);
        run.settle(call, delivery.clone());
        assert_eq!(*answer, Reserved::Known { delivery, first: true });
        false
    }

    /// All messages of a run go to one conversation.
    fn is_sending(&mut self, place: usize, answer: &Reserved, fence: u64) {
        let Reserved::Reserved(sending) = answer else { panic!("{answer:?}") };
        assert_eq!(sending.fence, fence);
        let own = (sending.conversation, sending.new_conversation);
        assert_eq!(*self.runs[place].conversation.get_or_insert(own), own);
    }

    async fn mark(&mut self, place: usize, call: usize, stale: bool, how: u8) {
        let run = &mut self.runs[place];
        let fence = match run.messages[call] {
            Message::Sending { fence, .. } => fence - u64::from(stale),
            Message::Waiting { fence, .. } => fence,
            Message::New | Message::Done(_) => 1,
        };
        let how = match how {
            0 => MarkHow::Sent,
            1 => MarkHow::Post,
            2 => MarkHow::Failed(BROKEN),
            3 => MarkHow::NotSent(BROKEN),
            4 => MarkHow::Later,
            _ => MarkHow::Unsure,
        };
        let wish = self.chat.message(run.id, CALLS[call]);
        let answer = self.chat.mark(&wish, fence, how).await;
        let (fence, unsure, waited) = match run.messages[call].clone() {
            Message::New => return assert_eq!(answer, Marked::Missing),
            Message::Done(delivery) => {
                let Marked::Known { delivery: known, first: false, .. } = answer else {
                    panic!("{answer:?}");
                };
                return assert_eq!(known, delivery);
            }
            // Nobody has it.
            Message::Waiting { .. } => return assert_eq!(answer, Marked::Lost),
            Message::Sending { .. } if stale => return assert_eq!(answer, Marked::Lost),
            Message::Sending { fence, unsure, waited, .. } => (fence, unsure, waited),
        };
        let (id, new) = run.conversation.expect("a conversation");
        let delivery = match how {
            MarkHow::Later | MarkHow::Unsure => {
                let unsure = unsure || how == MarkHow::Unsure;
                run.messages[call] = Message::Sending { fence, until: 0, unsure, waited };
                return assert_eq!(answer, Marked::Later);
            }
            MarkHow::Post if !run.live && !waited => of(UNAVAILABLE),
            MarkHow::Sent | MarkHow::Post => {
                run.sent += 1;
                crate::chat_world::sent(id, new)
            }
            MarkHow::Failed(refused) => of(refused),
            MarkHow::NotSent(refused) => {
                self.counted -= i32::from(!unsure);
                run.counted -= i32::from(!unsure);
                of(refused)
            }
        };
        let Marked::Known { delivery: known, first: true, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(known, delivery);
        run.settle(call, delivery);
    }

    async fn check(&self) {
        let mut raw = self.chat.world.raw().await;
        let caps = self.chat.world.key_name("chatcaps:acme:coach:ada");
        let waiting: Option<i32> =
            redis::cmd("HGET").arg(caps).arg("waiting").query_async(&mut raw).await.unwrap();
        assert_eq!(waiting.unwrap_or_default(), self.waiting);
        for run in &self.runs {
            assert_eq!(self.chat.delivery(run.id).await, run.delivery);
            assert_eq!(self.chat.world.load(run.id).await.state.is_final(), !run.live);
            let Some((conversation, _)) = run.conversation else { continue };
            let said = self.chat.page(conversation).await.map_or(0, |page| page.messages.len());
            assert_eq!(said, run.sent);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    /// CG-078
    #[test]
    fn messages_become_what_the_model_says_after_any_sequence_of_operations(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let chat = Chat::of(World::with_movable_clock().await);
            let probe = chat.run().await;
            let started_at = i64::try_from(chat.world.load(probe).await.created_at_ms).unwrap();
            let ahead = DAY_MS - started_at % DAY_MS;
            chat.world.move_clock(ahead).await;
            let mut runs = Vec::new();
            for _ in 0..3 {
                runs.push(Run {
                    id: chat.run().await,
                    live: true,
                    counted: 0,
                    delivery: None,
                    messages: [Message::New, Message::New, Message::New],
                    conversation: None,
                    sent: 0,
                });
            }
            let mut model = Model { chat: &chat, runs, counted: 0, waiting: 0, now: 0, ahead };
            for step in &steps {
                model.step(step).await;
            }
            model.check().await;
            chat.world.end().await;
        });
    }
}
