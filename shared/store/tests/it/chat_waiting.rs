//! Messages that wait until their person may be written to, under a clock that the test moves.

use std::collections::BTreeSet;
use std::time::Duration;

use runfleet_domain::{Name, RunId, RunState};
use runfleet_store::{
    AlarmSet, ChangeQuietHours, Delivery, DeliveryStatus, Due, DueMessage, End, MarkHow, Marked,
    MessageCaps, QuietHours, Refused, Reserve, Reserved,
};

use crate::chat_world::{Chat, NO_CAPS, UNAVAILABLE, not_sent, rate_limited, sent};
use crate::world::{World, name};

const KEEP: ChangeQuietHours<'static> = ChangeQuietHours::Keep;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn plain(status: DeliveryStatus) -> Delivery {
    Delivery { status, error_code: None, conversation: None, new_conversation: false }
}

/// Two people at midnight UTC, and what the clock is ahead of that of Redis.
struct Night {
    chat: Chat,
    /// Midnight, in Unix milliseconds.
    midnight: i64,
    began: i64,
}

impl Night {
    async fn begin() -> Self {
        let chat = Chat::of(World::with_movable_clock().await);
        let probe = chat.run().await;
        let began = i64::try_from(chat.world.load(probe).await.created_at_ms).unwrap();
        let night = Self { chat, midnight: (began / DAY + 2) * DAY, began };
        night.at(0).await;
        night
    }

    /// Moves the clock to so long after midnight.
    async fn at(&self, after: i64) {
        self.chat.world.move_clock(self.midnight + after - self.began).await;
    }

    fn time(&self, after: i64) -> u64 {
        u64::try_from(self.midnight + after).unwrap()
    }

    /// A message that has to wait until so long after midnight.
    fn waits<'a>(&self, message: Reserve<'a>, after: i64) -> Reserve<'a> {
        Reserve { not_before_ms: Some(self.time(after)), ..message }
    }

    /// Lets a message of a fresh run wait, and ends the run with `state` if there is one.
    async fn put_off(&self, caps: MessageCaps, after: i64, state: Option<RunState>) -> RunId {
        let run = self.chat.run().await;
        let message = Reserve { caps, ..self.chat.message(run, "c1") };
        let due_ms = self.time(after);
        let answer = self.chat.reserve(&self.waits(message, after)).await;
        assert_eq!(answer, Reserved::Waiting { due_ms });
        assert_eq!(self.chat.delivery(run).await, Some(plain(DeliveryStatus::NotSent)));
        if let Some(state) = state {
            self.chat.world.store.end_run(run, &End::plain(state)).await.unwrap();
        }
        run
    }

    async fn due(&self) -> Vec<DueMessage> {
        let due = self.chat.world.store.due_alarms(self.chat.world.shard, AlarmSet::Chat, 100);
        let message = |due| match due {
            Due::Message(message) => message,
            other => panic!("{other:?}"),
        };
        due.await.unwrap().into_iter().map(message).collect()
    }
}

#[tokio::test]
async fn a_message_waits_beyond_the_end_of_its_run_and_is_sent_once_when_it_is_due() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let run = chat.run().await;
    let message = Reserve { title: Some("Deal"), note: Some("n"), ..chat.message(run, "c1") };
    let waits = night.waits(message, 7 * HOUR);
    let due_ms = night.time(7 * HOUR);
    assert_eq!(chat.world.store.waiting_message(run, "c1").await.unwrap(), None);
    for _ in 0..3 {
        assert_eq!(chat.reserve(&waits).await, Reserved::Waiting { due_ms });
    }
    chat.world.store.end_run(run, &End::plain(RunState::TimedOut)).await.unwrap();
    assert_eq!(chat.delivery(run).await, Some(plain(DeliveryStatus::NotSent)));
    night.at(7 * HOUR - 2_000).await;
    assert_eq!(night.due().await, []);
    night.at(7 * HOUR + 2_000).await;
    let due = night.due().await;
    let until_ms = night.time(9 * HOUR);
    assert_eq!((due[0].run_id, due[0].call_id.as_str(), due[0].until_ms), (run, "c1", until_ms));
    assert_eq!((due[0].text.as_str(), due[0].note.as_deref()), ("Hello.", Some("n")));
    assert_eq!(night.due().await, [], "it rings again later");
    let known = chat.world.store.waiting_message(run, "c1").await.unwrap().unwrap();
    assert_eq!((known.title.as_deref(), known.until_ms), (Some("Deal"), until_ms));
    assert_eq!(known.person, chat.person);

    let sending = chat.sending(&message).await;
    assert!(sending.new_conversation);
    assert!(matches!(chat.reserve(&message).await, Reserved::Busy { .. }));
    let marked = chat.mark(&message, sending.fence, MarkHow::Post).await;
    assert!(matches!(marked, Marked::Known { first: true, .. }), "{marked:?}");
    assert_eq!(chat.texts(sending.conversation).await, ["Hello."]);
    let delivery = sent(sending.conversation, true);
    assert_eq!(chat.reserve(&waits).await, Reserved::Known { delivery, first: false });
    // What an ended run has told stays as it is, and nothing rings any more.
    assert_eq!(chat.delivery(run).await, Some(plain(DeliveryStatus::NotSent)));
    night.at(40 * HOUR).await;
    assert_eq!(night.due().await, []);
    night.chat.world.end().await;
}

#[tokio::test]
async fn what_waits_for_a_person_rings_at_once_when_the_quiet_hours_of_that_person_change() {
    let night = Night::begin().await;
    let (chat, store) = (&night.chat, &night.chat.world.store);
    let clear = async |person: &Name| {
        let change = ChangeQuietHours::Clear;
        store.change_chat_settings(&chat.world.workspace, person, None, change).await.unwrap();
    };
    let ended = night.put_off(NO_CAPS, 7 * HOUR, Some(RunState::TimedOut)).await;
    let live = night.put_off(NO_CAPS, 8 * HOUR, None).await;
    night.at(HOUR).await;
    clear(&name("ben")).await;
    store
        .change_chat_settings(&chat.world.workspace, &chat.person, Some(false), KEEP)
        .await
        .unwrap();
    assert_eq!(night.due().await, [], "somebody else's, and something else");
    clear(&chat.person).await;
    let due: BTreeSet<RunId> = night.due().await.into_iter().map(|due| due.run_id).collect();
    assert_eq!(due, BTreeSet::from([ended, live]));
    // One goes. The other one may not yet, and waits for its new time.
    let message = chat.message(ended, "c1");
    let sending = chat.sending(&message).await;
    let later = night.waits(chat.message(live, "c1"), 2 * HOUR);
    assert_eq!(chat.reserve(&later).await, Reserved::Waiting { due_ms: night.time(2 * HOUR) });
    chat.mark(&message, sending.fence, MarkHow::Post).await;
    clear(&chat.person).await;
    let due: Vec<RunId> = night.due().await.into_iter().map(|due| due.run_id).collect();
    assert_eq!(due, [live], "what was sent rings no more");
    assert_eq!(chat.texts(chat.send(&chat.message(live, "c1")).await).await.len(), 2);
    clear(&chat.person).await;
    night.at(40 * HOUR).await;
    assert_eq!(night.due().await, []);
    night.chat.world.end().await;
}

#[tokio::test]
async fn a_message_that_is_put_off_while_the_quiet_hours_change_rings_at_once() {
    let night = Night::begin().await;
    let (chat, store) = (&night.chat, &night.chat.world.store);
    let (from, to) = ("22:00".to_owned(), "07:00".to_owned());
    let hours = QuietHours { from, to, time_zone: "UTC".to_owned() };
    let set = async |change: ChangeQuietHours<'_>| {
        let (workspace, person) = (&chat.world.workspace, &chat.person);
        store.change_chat_settings(workspace, person, None, change).await.unwrap();
    };
    set(ChangeQuietHours::Set(&hours)).await;
    let message = Reserve { quiet_hours: Some(&hours), ..chat.message(chat.run().await, "c1") };
    let waits = night.waits(message, 7 * HOUR);
    let due_ms = night.time(7 * HOUR);
    assert_eq!(chat.reserve(&waits).await, Reserved::Waiting { due_ms });
    assert_eq!(night.due().await, []);
    // Its sender has seen the hours above; the person has cleared them before the message is put off.
    set(ChangeQuietHours::Clear).await;
    let second = Reserve { run_id: chat.run().await, ..waits };
    for late in [waits, second] {
        let Reserved::Waiting { due_ms } = chat.reserve(&late).await else { panic!("it waits") };
        assert!(due_ms < night.time(HOUR), "{due_ms}");
    }
    assert_eq!(night.due().await.len(), 2);
    // Looked at again without quiet hours, it goes.
    chat.send(&Reserve { quiet_hours: None, not_before_ms: None, ..second }).await;
    night.chat.world.end().await;
}

#[tokio::test]
async fn a_message_that_is_due_while_its_run_goes_on_is_what_the_run_tells() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let (run, other) =
        (night.put_off(NO_CAPS, HOUR, None).await, night.put_off(NO_CAPS, HOUR, None).await);
    night.at(HOUR + 1).await;
    let conversation = chat.send(&chat.message(run, "c1")).await;
    assert_eq!(chat.delivery(run).await, Some(sent(conversation, true)));
    // The other one goes on in the conversation that is the newest by now, and is being sent when its run ends.
    let sending = chat.sending(&chat.message(other, "c1")).await;
    assert_eq!((sending.conversation, sending.new_conversation), (conversation, false));
    chat.world.store.end_run(other, &End::plain(RunState::TimedOut)).await.unwrap();
    let unknown = not_sent(UNAVAILABLE.status, UNAVAILABLE.code);
    assert_eq!(chat.delivery(other).await, Some(unknown));
    night.chat.world.end().await;
}

/// CG-078
#[tokio::test]
async fn what_waits_counts_for_its_run_at_once_and_for_the_day_on_which_it_is_sent() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let caps = MessageCaps { per_run: 1, per_day: 2, ..NO_CAPS };
    night.at(-4 * HOUR).await;
    let (one, two) =
        (night.put_off(caps, 7 * HOUR, None).await, night.put_off(caps, 7 * HOUR, None).await);
    let blocked = Reserved::Known { delivery: rate_limited(), first: true };
    let more = Reserve { caps, ..chat.message(one, "c2") };
    assert_eq!(chat.reserve(&more).await, blocked, "it is the second one of its run");
    // No more wait than may be sent in a day; this day is another one.
    let third = Reserve { caps, ..chat.message(chat.run().await, "c1") };
    assert_eq!(chat.reserve(&night.waits(third, 7 * HOUR)).await, blocked);
    let today = Reserve { caps, ..chat.message(chat.run().await, "c1") };
    chat.send(&today).await;

    night.at(7 * HOUR + 1).await;
    chat.send(&Reserve { caps, ..chat.message(one, "c1") }).await;
    let early = Reserve { caps, ..chat.message(chat.run().await, "c1") };
    chat.send(&early).await;
    assert_eq!(chat.reserve(&Reserve { caps, ..chat.message(two, "c1") }).await, blocked);
    assert_eq!(chat.delivery(two).await, Some(rate_limited()));
    // Others can wait again.
    night.put_off(caps, 12 * HOUR, None).await;
    night.chat.world.end().await;
}

/// CG-078
#[tokio::test]
async fn what_is_due_at_once_is_spaced_out_and_none_is_lost() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let caps = MessageCaps { burst: 2, period: Duration::from_mins(10), ..NO_CAPS };
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(night.put_off(caps, 7 * HOUR, Some(RunState::TimedOut)).await);
    }
    let mut sent = Vec::new();
    for minute in 0..40 {
        night.at(7 * HOUR + minute * 60_000 + 1_000).await;
        for message in night.due().await {
            let message = Reserve { caps, ..chat.message(message.run_id, "c1") };
            match chat.reserve(&message).await {
                Reserved::Reserved(sending) => {
                    chat.mark(&message, sending.fence, MarkHow::Sent).await;
                    sent.push(minute);
                }
                Reserved::Waiting { due_ms } => assert!(due_ms > night.time(7 * HOUR)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(sent, [0, 0, 10, 20]);
    night.chat.world.end().await;
}

#[tokio::test]
async fn what_is_known_when_it_is_due_decides_and_who_stops_the_run_stops_its_message() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let opted_out = Refused { status: DeliveryStatus::Blocked, code: "RECIPIENT_ACCESS_DENIED" };
    let run = night.put_off(NO_CAPS, HOUR, Some(RunState::Failed)).await;
    night.at(HOUR + 1).await;
    // Still quiet: later, and once more.
    let (message, later) = (chat.message(run, "c1"), night.time(2 * HOUR));
    let put_off = chat.reserve(&night.waits(message, 2 * HOUR)).await;
    assert_eq!(put_off, Reserved::Waiting { due_ms: later });
    assert_eq!(night.due().await, []);
    night.at(2 * HOUR + 1).await;
    assert_eq!(night.due().await[0].until_ms, night.time(4 * HOUR));
    let delivery = not_sent(opted_out.status, opted_out.code);
    let refused = chat.reserve(&Reserve { refused: Some(opted_out), ..message }).await;
    assert_eq!(refused, Reserved::Known { delivery, first: true });

    for state in [RunState::Canceled, RunState::Deleted] {
        let run = night.put_off(NO_CAPS, 3 * HOUR, Some(state)).await;
        night.at(3 * HOUR + 1).await;
        assert_eq!(night.due().await.len(), 1);
        let delivery = plain(DeliveryStatus::NotSent);
        let stopped = chat.reserve(&chat.message(run, "c1")).await;
        assert_eq!(stopped, Reserved::Known { delivery, first: true });
        night.at(2 * HOUR + 1).await;
    }
    night.chat.world.end().await;
}

#[tokio::test]
async fn whoever_dies_while_it_sends_what_has_waited_leaves_it_as_any_other_message() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let run = night.put_off(NO_CAPS, HOUR, Some(RunState::TimedOut)).await;
    night.at(HOUR + 1).await;
    assert_eq!(night.due().await.len(), 1);
    let message = Reserve { sink_dedups: true, ..chat.message(run, "c1") };
    chat.sending(&message).await;
    // The alarm rings once more; a sink that knows ids gets it again, also in quiet hours: it may have it already.
    night.at(HOUR + 20 * 60_000).await;
    assert_eq!(night.due().await.len(), 1);
    let again = chat.reserve(&night.waits(message, 9 * HOUR)).await;
    assert!(matches!(again, Reserved::Reserved(sending) if sending.fence == 2), "{again:?}");
    night.at(HOUR + 40 * 60_000).await;
    let delivery = not_sent(UNAVAILABLE.status, UNAVAILABLE.code);
    let plain = chat.reserve(&chat.message(run, "c1")).await;
    assert_eq!(plain, Reserved::Known { delivery, first: true });

    // One that was given back before its quiet hours waits for their end, and has been counted.
    let caps = MessageCaps { per_day: 1, ..NO_CAPS };
    let chat = Chat { person: crate::world::name("ben"), ..night.chat };
    let run = chat.run().await;
    let message = Reserve { caps, ..chat.message(run, "c1") };
    let first = chat.sending(&message).await;
    chat.mark(&message, first.fence, MarkHow::Later).await;
    let due_ms = u64::try_from(night.midnight + 5 * HOUR).unwrap();
    let waits = Reserve { not_before_ms: Some(due_ms), ..message };
    assert_eq!(chat.reserve(&waits).await, Reserved::Waiting { due_ms });
    assert_eq!(chat.delivery(run).await.unwrap().status, DeliveryStatus::NotSent);
    let sending = chat.sending(&message).await;
    assert_eq!(sending.fence, 2);
    chat.mark(&message, sending.fence, MarkHow::Sent).await;
    assert_eq!(chat.delivery(run).await.unwrap().status, DeliveryStatus::Sent);
    chat.world.end().await;
}

/// CG-078
#[tokio::test]
async fn a_message_that_is_tried_for_an_hour_counts_once_and_is_sent_once() {
    let night = Night::begin().await;
    let chat = &night.chat;
    let caps = MessageCaps { per_run: 2, per_day: 2, ..NO_CAPS };
    let run = chat.run().await;
    let message = Reserve { caps, sink_dedups: true, ..chat.message(run, "c1") };
    let mut fences = Vec::new();
    for (minute, how) in
        [(0, MarkHow::Later), (1, MarkHow::Unsure), (3, MarkHow::Later), (13, MarkHow::Later)]
    {
        night.at(minute * 60_000).await;
        let sending = chat.sending(&message).await;
        fences.push(sending.fence);
        assert_eq!(chat.mark(&message, sending.fence, how).await, Marked::Later);
    }
    night.at(HOUR + 1).await;
    let last = chat.sending(&message).await;
    fences.push(last.fence);
    assert_eq!(fences, [1, 2, 3, 4, 5]);
    // Whoever was held up since an earlier attempt is not believed.
    assert_eq!(chat.mark(&message, 4, MarkHow::Sent).await, Marked::Lost);
    let marked = chat.mark(&message, last.fence, MarkHow::Sent).await;
    assert!(matches!(marked, Marked::Known { first: true, .. }), "{marked:?}");
    assert_eq!(chat.texts(last.conversation).await, ["Hello."]);
    // One more of the run and of the day, and no third.
    chat.send(&Reserve { call_id: "c2", ..message }).await;
    let third = Reserve { caps, ..chat.message(chat.run().await, "c1") };
    let blocked = Reserved::Known { delivery: rate_limited(), first: true };
    assert_eq!(chat.reserve(&third).await, blocked);
    night.chat.world.end().await;
}
