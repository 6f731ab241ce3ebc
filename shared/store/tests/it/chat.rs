//! Messages of agents to people: once for each id, and in the right conversation.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::CONVERSATION_MESSAGES_MAX;
use runfleet_domain::{RunState, Shard};
use runfleet_store::{
    ChatFrom, Delivery, DeliveryStatus, End, HandedOver, ListConversations, MarkHow, Marked,
    ReadConversation, Refused, Reserve, Reserved, StoreError,
};

use crate::chat_world::{Chat, LEASE, UNAVAILABLE, not_sent, sent};
use crate::world::{Request, World, name};

const LEASE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// CG-070, CG-076, CG-098
#[tokio::test]
async fn a_message_that_was_sent_is_in_the_conversation_of_agent_and_person_with_its_note() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let text = "Grüße 👩‍👩‍👧‍👦 e\u{301} שלום \"\\ \u{7f}\u{0}\n";
    let message = Reserve {
        text,
        note: Some("She asked for it."),
        title: Some("Deal 7"),
        ..chat.message(run, "c1")
    };
    let sending = chat.sending(&message).await;
    assert_eq!((sending.fence, sending.new_conversation), (1, true));
    // Nothing is there before it was sent.
    assert_eq!(chat.page(sending.conversation).await, None);
    assert_eq!(chat.delivery(run).await, None);
    let marked = chat.mark(&message, 1, MarkHow::Sent).await;
    let delivery = sent(sending.conversation, true);
    assert_eq!(marked, Marked::Known { delivery: delivery.clone(), seq: Some(1), first: true });
    assert_eq!(chat.delivery(run).await, Some(delivery));
    let page = chat.page(sending.conversation).await.unwrap();
    assert_eq!(page.conversation.title.as_deref(), Some("Deal 7"));
    assert_eq!((page.conversation.unread, page.conversation.last_seq, page.older), (1, 1, false));
    assert_eq!((&page.conversation.agent, &page.conversation.person), (&chat.agent, &chat.person));
    assert_eq!(page.conversation.project, chat.world.project);
    assert_eq!(page.messages.len(), 1);
    assert_eq!(page.messages[0].text, text);
    assert_eq!(page.messages[0].note.as_deref(), Some("She asked for it."));
    assert_eq!((page.messages[0].from, page.messages[0].run), (ChatFrom::Agent, Some(run)));
    chat.world.end().await;
}

/// CG-079
#[tokio::test]
async fn latest_goes_on_in_the_newest_conversation_and_new_opens_one_for_each_run() {
    let chat = Chat::new().await;
    let (first, second, third) = (chat.run().await, chat.run().await, chat.run().await);
    let one = chat.send(&chat.message(first, "c1")).await;
    let apart = Reserve { latest: false, title: Some("Apart"), ..chat.message(second, "c1") };
    let two = chat.send(&apart).await;
    assert_ne!(one, two);
    assert_eq!(chat.delivery(second).await, Some(sent(two, true)));
    // The second message of that run goes where its first one went.
    assert_eq!(chat.send(&Reserve { call_id: "c2", ..apart }).await, two);
    assert_eq!(chat.delivery(second).await, Some(sent(two, true)));
    assert_eq!(chat.send(&chat.message(third, "c1")).await, two);
    assert_eq!(chat.delivery(third).await, Some(sent(two, false)));
    assert_eq!(chat.send(&chat.message(first, "c2")).await, one);
    // Now the first one is the newest.
    assert_eq!(chat.send(&chat.message(chat.run().await, "c1")).await, one);
    // Another person has conversations of their own.
    let ben = Chat { person: name("ben"), ..chat };
    let other = ben.send(&ben.message(ben.run().await, "c1")).await;
    assert!(other != one && other != two);
    assert_eq!(ben.page(one).await, None);
    ben.world.end().await;
}

#[tokio::test]
async fn a_message_that_comes_again_is_sent_once() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let message = chat.message(run, "c1");
    let answers = join_all((0..16).map(|_| chat.reserve(&message))).await;
    let reserved = |answer: &&Reserved| matches!(answer, Reserved::Reserved(_));
    assert_eq!(answers.iter().filter(reserved).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Reserved::Busy { .. })).count(), 15);
    let marks = join_all((0..4).map(|_| chat.mark(&message, 1, MarkHow::Sent))).await;
    let first = |mark: &&Marked| matches!(mark, Marked::Known { first: true, seq: Some(1), .. });
    assert_eq!(marks.iter().filter(first).count(), 1, "{marks:?}");
    let Marked::Known { delivery, .. } = &marks[0] else { panic!("{marks:?}") };
    let known = Reserved::Known { delivery: delivery.clone(), first: false };
    assert_eq!(chat.reserve(&message).await, known);
    // What is said later changes nothing.
    let late = chat.mark(&message, 1, MarkHow::Failed(UNAVAILABLE)).await;
    assert_eq!(late, Marked::Known { delivery: delivery.clone(), seq: Some(1), first: false });
    assert_eq!(chat.texts(delivery.conversation.unwrap()).await.len(), 1);
    chat.world.end().await;
}

#[tokio::test]
async fn a_message_that_was_left_unmarked_is_never_sent_again_to_a_sink_without_ids() {
    let chat = Chat::of(World::with_movable_clock().await);
    let run = chat.run().await;
    let message = chat.message(run, "c1");
    chat.sending(&message).await;
    chat.world.move_clock(LEASE_MS - 5_000).await;
    assert!(matches!(chat.reserve(&message).await, Reserved::Busy { .. }));
    chat.world.move_clock(LEASE_MS + 5_000).await;
    let delivery = not_sent(DeliveryStatus::Failed, "DELIVERY_UNAVAILABLE");
    let known = |first| Reserved::Known { delivery: delivery.clone(), first };
    assert_eq!(chat.reserve(&message).await, known(true));
    assert_eq!(chat.reserve(&message).await, known(false));
    // The sender that was away comes back.
    let late = chat.mark(&message, 1, MarkHow::Sent).await;
    assert_eq!(late, Marked::Known { delivery: delivery.clone(), seq: None, first: false });
    assert_eq!(chat.delivery(run).await, Some(delivery));
    chat.world.end().await;
}

#[tokio::test]
async fn a_sink_that_knows_ids_gets_the_message_again_and_the_older_sender_is_not_believed() {
    let chat = Chat::of(World::with_movable_clock().await);
    let run = chat.run().await;
    let message = Reserve { sink_dedups: true, ..chat.message(run, "c1") };
    let first = chat.sending(&message).await;
    chat.world.move_clock(LEASE_MS + 5_000).await;
    let second = chat.sending(&message).await;
    assert_eq!((second.fence, second.conversation), (2, first.conversation));
    assert_eq!(chat.mark(&message, 1, MarkHow::Sent).await, Marked::Lost);
    assert_eq!(chat.mark(&message, 1, MarkHow::Later).await, Marked::Lost);
    // The second attempt sent nothing, but the first one may have: it counts.
    let refused = Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };
    let marked = chat.mark(&message, 2, MarkHow::NotSent(refused)).await;
    let delivery = not_sent(DeliveryStatus::Failed, "DELIVERY_FAILED");
    assert_eq!(marked, Marked::Known { delivery, seq: None, first: true });
    let mut caps = message.caps;
    caps.per_run = 1;
    let next = Reserve { caps, call_id: "c2", ..message };
    assert!(matches!(chat.reserve(&next).await, Reserved::Known { .. }));
    chat.world.end().await;
}

#[tokio::test]
async fn a_message_that_was_put_off_can_be_reserved_at_once_by_whoever_may_send_it() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let message = chat.message(run, "c1");
    chat.sending(&message).await;
    assert_eq!(chat.mark(&message, 1, MarkHow::Later).await, Marked::Later);
    assert_eq!(chat.mark(&message, 1, MarkHow::Later).await, Marked::Later);
    let again = chat.sending(&message).await;
    assert_eq!(again.fence, 2);
    // Nobody knows whether the second attempt has sent it: only a sink that knows ids may get it again.
    assert_eq!(chat.mark(&message, 2, MarkHow::Unsure).await, Marked::Later);
    let with_ids = Reserve { sink_dedups: true, ..message };
    assert_eq!(chat.sending(&with_ids).await.fence, 3);
    assert_eq!(chat.mark(&message, 3, MarkHow::Later).await, Marked::Later);
    let delivery = not_sent(DeliveryStatus::Failed, "DELIVERY_UNAVAILABLE");
    assert_eq!(chat.reserve(&message).await, Reserved::Known { delivery, first: true });
    chat.world.end().await;
}

/// CG-165
#[tokio::test]
async fn a_refusal_of_the_facts_is_recorded_for_the_message_and_counts_nowhere() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let mut caps = chat.message(run, "c1").caps;
    caps.per_run = 1;
    let gone = Refused { status: DeliveryStatus::Blocked, code: "RECIPIENT_NOT_FOUND" };
    let message = Reserve { refused: Some(gone), caps, ..chat.message(run, "c1") };
    let blocked = not_sent(DeliveryStatus::Blocked, "RECIPIENT_NOT_FOUND");
    let known = |first| Reserved::Known { delivery: blocked.clone(), first };
    assert_eq!(chat.reserve(&message).await, known(true));
    // Also when the person is there again.
    let again = Reserve { refused: None, ..message };
    assert_eq!(chat.reserve(&again).await, known(false));
    assert_eq!(chat.delivery(run).await, Some(blocked));
    let conversation = chat.send(&Reserve { call_id: "c2", ..again }).await;
    assert_eq!(chat.delivery(run).await, Some(sent(conversation, true)));
    // A message that was sent counts more than what came after it.
    chat.reserve(&Reserve { call_id: "c3", ..message }).await;
    assert_eq!(chat.delivery(run).await, Some(sent(conversation, true)));
    chat.world.end().await;
}

/// CG-071, CG-073, CG-096, CG-097
#[tokio::test]
async fn a_run_that_ends_without_a_message_has_sent_none_and_other_runs_have_no_delivery() {
    let chat = Chat::new().await;
    let (run, plain) = (chat.run().await, Request::new(runfleet_domain::RunKind::Agent));
    let nobody = chat.world.run(&plain).await;
    assert_eq!(chat.delivery(run).await, None);
    for run in [run, nobody] {
        let fence = chat.world.claim(run).await;
        let end = End::plain(RunState::Completed);
        chat.world.store.finish_run(run, fence, &end).await.unwrap();
    }
    let not_sent = Delivery {
        status: DeliveryStatus::NotSent,
        error_code: None,
        conversation: None,
        new_conversation: false,
    };
    assert_eq!(chat.delivery(run).await, Some(not_sent.clone()));
    assert_eq!(chat.world.load(run).await.state, RunState::Completed);
    assert_eq!(chat.delivery(nobody).await, None);
    assert_eq!(chat.reserve(&chat.message(run, "c1")).await, Reserved::RunEnded);
    // CG-105
    let request = chat.request();
    let handed = chat.world.store.hand_over(&chat.world.hand_over(run, &request.job)).await;
    let HandedOver::Delivered(job) = handed.unwrap() else { panic!("a job") };
    assert_eq!(job.outcome().and_then(|outcome| outcome.delivery.clone()), Some(not_sent));
    chat.world.end().await;
}

#[tokio::test]
async fn a_message_that_is_being_sent_when_its_run_ends_has_failed_for_the_run() {
    let chat = Chat::of(World::with_movable_clock().await);
    let run = chat.run().await;
    let (outside, own) = (chat.message(run, "c1"), chat.message(run, "c2"));
    let put_off = chat.message(run, "c3");
    let conversation = chat.sending(&outside).await.conversation;
    chat.sending(&own).await;
    chat.sending(&put_off).await;
    chat.mark(&put_off, 1, MarkHow::Later).await;
    chat.world.store.end_run(run, &End::plain(RunState::Canceled)).await.unwrap();
    let failed = not_sent(DeliveryStatus::Failed, "DELIVERY_UNAVAILABLE");
    assert_eq!(chat.delivery(run).await, Some(failed.clone()));
    // What a sink has is in the conversation; what only the ledger sends is not sent any more.
    let marked = chat.mark(&outside, 1, MarkHow::Sent).await;
    assert!(matches!(marked, Marked::Known { seq: Some(1), .. }), "{marked:?}");
    let marked = chat.mark(&own, 1, MarkHow::Post).await;
    assert_eq!(marked, Marked::Known { delivery: failed.clone(), seq: None, first: true });
    let known = Reserved::Known { delivery: failed.clone(), first: true };
    assert_eq!(chat.reserve(&put_off).await, known);
    assert_eq!(chat.texts(conversation).await.len(), 1);
    assert_eq!(chat.delivery(run).await, Some(failed));
    chat.world.end().await;
}

#[tokio::test]
async fn only_the_recipient_of_the_start_can_be_written_to_and_sizes_are_checked() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let message = chat.message(run, "c1");
    let (ben, other, elsewhere) = (name("ben"), name("other"), name("elsewhere"));
    for wrong in [Reserve { person: &ben, ..message }, Reserve { agent: &other, ..message }] {
        assert_eq!(chat.reserve(&wrong).await, Reserved::Mismatch);
    }
    let plain = chat.world.run(&Request { recipient: None, ..chat.request() }).await;
    assert_eq!(chat.reserve(&chat.message(plain, "c1")).await, Reserved::Mismatch);
    let never = chat.world.fresh_run(runfleet_domain::RunKind::Agent);
    assert_eq!(chat.reserve(&chat.message(never, "c1")).await, Reserved::Missing);
    let unknown = chat.mark(&message, 1, MarkHow::Sent).await;
    assert_eq!(unknown, Marked::Missing);
    let (long, longer) = ("é".repeat(8_000), "é".repeat(8_001));
    assert_ne!(Shard::of_workspace("elsewhere"), chat.world.shard);
    for bad in [
        Reserve { text: "", ..message },
        Reserve { text: &longer, ..message },
        Reserve { note: Some(&long), ..message },
        Reserve { title: Some(&long), ..message },
        Reserve { call_id: "", ..message },
        Reserve { call_id: "a b", ..message },
        Reserve { lease: Duration::ZERO, ..message },
        Reserve { workspace: &elsewhere, ..message },
    ] {
        let error = chat.world.store.reserve_message(&bad).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    }
    chat.send(&Reserve { text: &long, lease: LEASE, ..message }).await;
    chat.world.end().await;
}

#[tokio::test]
async fn a_conversation_holds_a_bounded_number_of_messages_and_is_read_page_by_page() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let total = CONVERSATION_MESSAGES_MAX + 7;
    let first = chat.send(&chat.message(run, "first")).await;
    for block in (2..=total).collect::<Vec<_>>().chunks(50) {
        join_all(block.iter().map(async |number| {
            let call = format!("c{number}");
            chat.send(&chat.message(run, &call)).await
        }))
        .await;
    }
    let mut read = ReadConversation {
        conversation: first,
        workspace: &chat.world.workspace,
        person: Some(&chat.person),
        before: None,
        limit: 100,
        seen: false,
    };
    let mut seen = Vec::new();
    loop {
        let page = chat.world.store.read_conversation(&read).await.unwrap().unwrap();
        assert_eq!(page.conversation.unread, total);
        let numbers: Vec<u64> = page.messages.iter().map(|message| message.seq).collect();
        read.before = numbers.first().copied();
        seen.splice(0..0, numbers);
        if !page.older {
            break;
        }
    }
    let expected: Vec<u64> = (8..=u64::from(total)).collect();
    assert_eq!(seen, expected);
    let beyond = ReadConversation { before: Some(5), ..read };
    let page = chat.world.store.read_conversation(&beyond).await.unwrap().unwrap();
    assert_eq!((page.messages.len(), page.older), (0, false));
    // What was seen up to some message counts no more; what came later does.
    let some =
        ReadConversation { before: Some(u64::from(total) - 9), limit: 3, seen: true, ..read };
    let page = chat.world.store.read_conversation(&some).await.unwrap().unwrap();
    assert_eq!(page.conversation.unread, 10);
    let all = ReadConversation { before: None, ..some };
    let page = chat.world.store.read_conversation(&all).await.unwrap().unwrap();
    assert_eq!(page.conversation.unread, 0);
    chat.world.end().await;
}

#[tokio::test]
async fn a_page_of_long_messages_is_short_and_the_bytes_of_a_conversation_are_bounded() {
    let chat = Chat::new().await;
    let run = chat.run().await;
    let text = "🦀".repeat(8_000);
    let message = Reserve { text: &text, ..chat.message(run, "c0") };
    let conversation = chat.send(&message).await;
    for number in 1..70 {
        let call = format!("c{number}");
        chat.send(&Reserve { call_id: &call, ..message }).await;
    }
    let page = chat.page(conversation).await.unwrap();
    assert_eq!((page.messages.len(), page.older), (4, true));
    assert_eq!(page.messages.last().unwrap().seq, 70);
    let mut raw = chat.world.raw().await;
    let kept: u64 = redis::cmd("LLEN")
        .arg(chat.world.key_name(&format!("convlog:{conversation}")))
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(kept, 2_097_152 / 32_100);
    chat.world.end().await;
}

#[tokio::test]
async fn a_conversation_is_gone_ninety_days_after_its_last_message() {
    let chat = Chat::of(World::with_movable_clock().await);
    let old = chat.send(&chat.message(chat.run().await, "c1")).await;
    chat.world.move_clock(90 * DAY_MS - 60_000).await;
    assert!(chat.page(old).await.is_some());
    let kept = chat.send(&chat.message(chat.run().await, "c1")).await;
    assert_eq!(kept, old);
    chat.world.move_clock(180 * DAY_MS - 120_000).await;
    assert!(chat.page(old).await.is_some());
    chat.world.move_clock(180 * DAY_MS).await;
    assert_eq!(chat.page(old).await, None);
    let new = chat.send(&chat.message(chat.run().await, "c1")).await;
    assert_ne!(new, old);
    let list = ListConversations {
        workspace: &chat.world.workspace,
        person: &chat.person,
        before_ms: None,
        limit: 10,
    };
    let list = chat.world.store.list_conversations(&list).await.unwrap();
    assert_eq!(list.conversations.len(), 1);
    // In Redis it lives a day longer at most.
    let mut raw = chat.world.raw().await;
    for kind in ["conv", "convlog"] {
        let key = chat.world.key_name(&format!("{kind}:{old}"));
        let ttl: i64 = redis::cmd("PTTL").arg(key).query_async(&mut raw).await.unwrap();
        assert!((1..=91 * DAY_MS).contains(&ttl), "{kind} {ttl}");
    }
    chat.world.end().await;
}

#[tokio::test]
async fn conversations_are_listed_newest_first_page_by_page_and_the_oldest_of_too_many_goes() {
    let chat = Chat::new().await;
    let mut opened = Vec::new();
    for number in 0..201 {
        let run = chat.run().await;
        let title = format!("No. {number}");
        let message = Reserve { latest: false, title: Some(&title), ..chat.message(run, "c1") };
        opened.push(chat.send(&message).await);
    }
    let (mut listed, mut before_ms) = (Vec::new(), None);
    loop {
        let (workspace, person) = (&chat.world.workspace, &chat.person);
        let list = ListConversations { workspace, person, before_ms, limit: 67 };
        let page = chat.world.store.list_conversations(&list).await.unwrap();
        listed.extend(page.conversations.into_iter().map(|(conversation, last)| {
            assert_eq!((last.text.as_str(), last.note), ("Hello.", None));
            conversation.id
        }));
        before_ms = page.next_before_ms;
        if before_ms.is_none() {
            break;
        }
    }
    assert_eq!(chat.page(opened[0]).await, None);
    opened.reverse();
    opened.pop();
    assert_eq!(listed, opened);
    chat.world.end().await;
}
