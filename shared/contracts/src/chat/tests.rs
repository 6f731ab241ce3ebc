//! Options of conversations: what is taken, and which field is named otherwise.

use serde_json::json;

use super::*;
use crate::Reply;
use crate::golden::check;

const CONVERSATION: &str = "CV1501JDX3Z8GF0000000000000000";
const RUN: &str = "AG1501JDX3Z8GF0000000000000000";

fn raw(json: &Value) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).unwrap()
}

fn field<T: std::fmt::Debug>(result: Result<T, ErrorBody>) -> String {
    let error = result.unwrap_err();
    error.details["field"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_person_writes_has_one_to_eight_thousand_characters() {
    let reply = |text: &str| ChatReply::parse(&raw(&json!({"conversationId": "x", "text": text})));
    assert!(reply(&"é".repeat(8_000)).is_ok());
    for bad in [String::new(), " \n".to_owned(), "é".repeat(8_001)] {
        assert_eq!(field(reply(&bad)), "text");
    }
}

#[test]
fn a_page_has_one_to_a_hundred_entries() {
    for (limit, good) in [(0, false), (1, true), (100, true), (101, false)] {
        assert_eq!(ChatList::parse(&raw(&json!({"limit": limit}))).is_ok(), good, "{limit}");
        let read = raw(&json!({"conversationId": "x", "limit": limit}));
        assert_eq!(ChatRead::parse(&read).is_ok(), good, "{limit}");
    }
    assert_eq!(ChatList::parse(&raw(&json!({}))).unwrap().1, 50);
}

/// NB-11, NB-37
#[test]
fn arguments_come_with_an_edit_and_a_reason_with_a_rejection() {
    let decide = |decision: &str, more: Value| {
        let mut options =
            json!({"conversationId": "x", "runId": RUN, "callId": "c1", "decision": decision});
        let object = options.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        ChatDecide::parse(&raw(&options)).map(|(_, decision)| decision)
    };
    assert_eq!(decide("approve", json!({})), Ok(ValidDecision::Approve));
    let args = json!({"amount": 7});
    let edited = ValidDecision::Edit(args.as_object().unwrap().clone());
    assert_eq!(decide("edit", json!({"args": args})), Ok(edited));
    assert_eq!(decide("reject", json!({})), Ok(ValidDecision::Reject(None)));
    let why = ValidDecision::Reject(Some("No.".into()));
    assert_eq!(decide("reject", json!({"message": "No."})), Ok(why));
    for (decision, more, named) in [
        ("edit", json!({}), "args"),
        ("edit", json!({"args": [1]}), "args"),
        // It is another call of the same tool, never a call of another one.
        ("edit", json!({"args": {}, "tool": "other"}), "tool"),
        ("edit", json!({"args": {}, "message": "No."}), "message"),
        ("approve", json!({"args": {}}), "args"),
        ("approve", json!({"message": "No."}), "message"),
        ("reject", json!({"args": {}}), "args"),
        ("reject", json!({"message": ""}), "message"),
        ("ignore", json!({}), "decision"),
        ("approve", json!({"callId": ""}), "callId"),
    ] {
        assert_eq!(field(decide(decision, more)), named, "{decision}");
    }
}

#[test]
fn quiet_hours_can_be_set_taken_back_and_left_alone() {
    let settings = |options: Value| ChatSettings::parse(&raw(&options));
    assert!(settings(json!({})).unwrap().only_reads());
    assert_eq!(settings(json!({"quietHours": null})).unwrap().quiet_hours, Some(None));
    assert_eq!(settings(json!({"optOut": true})).unwrap().quiet_hours, None);
    let hours = |from: &str, zone: &str| {
        settings(json!({"quietHours": {"from": from, "to": "07:30", "timeZone": zone}}))
    };
    assert!(hours("22:00", "Europe/Berlin").is_ok());
    assert_eq!(field(hours("24:00", "UTC")), "quietHours.from");
    assert_eq!(field(hours("22:00", "a b")), "quietHours.timeZone");
    assert_eq!(field(hours("22:00", "")), "quietHours.timeZone");
}

fn conversation() -> ChatConversation {
    ChatConversation {
        conversation_id: CONVERSATION.into(),
        chat_session_id: "CS1501JDX3Z8GF0000000000000000".into(),
        agent_id: "deal-coach".into(),
        title: Some("Your deal".into()),
        created_at: 1_764_468_000_000,
        updated_at: 1_764_468_060_000,
        unread: 1,
        active_run_id: Some(RUN.into()),
    }
}

fn entry() -> ChatEntry {
    ChatEntry {
        seq: 3,
        at: 1_764_468_060_000,
        from: ChatAuthor::Agent,
        text: "The deal waits for you.".into(),
        run_id: Some(RUN.into()),
    }
}

#[test]
fn what_people_do_in_conversations_keeps_its_form() {
    let hours = ChatQuietHours {
        from: "22:00".into(),
        to: "07:30".into(),
        time_zone: "Europe/Berlin".into(),
    };
    check("chat.list", &ChatList { before: Some(1_764_468_060_001), limit: Some(20) });
    let listed = ChatListed { conversation: conversation(), last: entry() };
    let list = ChatListPage { conversations: vec![listed], next: Some(1_764_468_060_000) };
    check("chat.list.reply", &Reply::Done(list));
    let read = ChatRead {
        conversation_id: CONVERSATION.into(),
        before: Some(4),
        limit: Some(20),
        mark_read: Some(true),
    };
    check("chat.read", &read);
    let held = HeldCall {
        run_id: RUN.into(),
        call_id: "call_1_1".into(),
        agent_id: Some("clerk".into()),
        tool: "sendOffer".into(),
        args: raw(&json!({"amount": 7})),
        expires_at: 1_764_469_000_000,
    };
    let page = ChatPage {
        conversation: conversation(),
        messages: vec![entry()],
        older: true,
        held: vec![held],
    };
    check("chat.read.reply", &Reply::Done(page));
    let text = "Why?".to_owned();
    check("chat.reply", &ChatReply { conversation_id: CONVERSATION.into(), text });
    check("chat.reply.reply", &Reply::Done(ChatSaid { seq: 4, run_id: RUN.into(), queued: false }));
    let decide = ChatDecide {
        conversation_id: CONVERSATION.into(),
        run_id: RUN.into(),
        call_id: "call_1_1".into(),
        decision: ChatDecision::Edit,
        args: Some(raw(&json!({"amount": 6}))),
        message: None,
    };
    check("chat.decide", &decide);
    let decided = ChatDecided { run_id: RUN.into(), call_id: "call_1_1".into() };
    check("chat.decide.reply", &Reply::Done(decided));
    let settings = ChatSettings { opt_out: Some(false), quiet_hours: Some(Some(hours.clone())) };
    check("chat.settings", &settings);
    let now = ChatSettingsNow { opt_out: false, quiet_hours: Some(hours) };
    check("chat.settings.reply", &Reply::Done(now));
}
