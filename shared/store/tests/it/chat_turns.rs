//! What a person writes: each message is a turn, one at a time in a conversation.

use std::time::Duration;

use futures_util::future::join_all;
use runfleet_domain::limits::CHAT_TURNS_WAITING_MAX;
use runfleet_domain::{ConversationId, MessageId, RunId, RunKind, RunState};
use runfleet_store::{
    AlarmSet, AsksIn, ChangeQuietHours, ChatFrom, ChatSettings, ChildStarted, End, Finished,
    HOLD_BYTES_MAX, QuietHours, Said, StartChild, StartTurn, StoreError, TurnHeld, Woken,
};

use crate::chat_world::Chat;
use crate::children::call;
use crate::world::{World, message, name};

impl Chat {
    /// A conversation with one message of the agent.
    pub(crate) async fn conversation(&self) -> ConversationId {
        self.send(&self.message(self.run().await, "c1")).await
    }

    pub(crate) fn turn<'a>(
        &'a self,
        conversation: ConversationId,
        message_id: &'a MessageId,
        text: &'a str,
    ) -> StartTurn<'a> {
        StartTurn {
            conversation,
            workspace: &self.world.workspace,
            person: &self.person,
            message_id,
            text,
            run_id: self.world.fresh_run(RunKind::Agent),
            project: &self.world.project,
            agent: &self.agent,
            agent_version: 4,
            execution: &self.person,
            hops: 10,
            input: r#"{"instruction":"é"}"#,
            time: Duration::from_mins(10),
            traceparent: None,
        }
    }

    pub(crate) async fn reply(&self, turn: &StartTurn<'_>) -> Said {
        self.world.store.reply_in_conversation(turn).await.unwrap()
    }

    /// Ends a turn with an answer, and gives what follows.
    async fn answer(&self, run: RunId, text: &str) -> Option<RunId> {
        let fence = self.world.claim(run).await;
        let output = format!(r#"{{"text":"{text}","result":{{"a":[1]}}}}"#);
        let end = End { output: Some(&output), ..End::plain(RunState::Completed) };
        next(&self.world.store.finish_run(run, fence, &end).await.unwrap())
    }
}

impl Chat {
    /// An agent that a turn has called and that somebody has claimed.
    pub(crate) async fn part(&self, asks_in: AsksIn, instance: u64) -> (RunId, u64) {
        let target = name("helper");
        let start = StartChild {
            kind: RunKind::Agent,
            asks_in: Some(asks_in),
            ..call(&self.world, asks_in.turn, &target, instance)
        };
        let started = self.world.store.start_child(&start).await.unwrap();
        let ChildStarted::Started { run, .. } = started else { panic!("{started:?}") };
        (run, self.world.claim(run).await)
    }

    /// Who has said what the end of a run has put into its conversation.
    async fn said_at_end(&self, run: RunId, end: &End<'_>) -> Option<ChatFrom> {
        let fence = self.world.claim(run).await;
        match self.world.store.finish_run(run, fence, end).await.unwrap() {
            Finished::Finished { said, .. } => said,
            other => panic!("{other:?}"),
        }
    }
}

/// The turn that has begun with an end.
fn next(finished: &Finished) -> Option<RunId> {
    match finished {
        Finished::Finished { next_turn, .. } => {
            next_turn.as_ref().map(|woken: &Woken| woken.run_id)
        }
        other => panic!("{other:?}"),
    }
}

/// CG-077
#[tokio::test]
async fn what_a_person_writes_becomes_a_run_of_that_person_and_its_answer_comes_back() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let id = message("m1");
    let turn = chat.turn(conversation, &id, "Why?");
    let run = turn.run_id;
    let said = Said::Said { run, seq: 2, active: Some(run), held: false };
    assert_eq!(chat.reply(&turn).await, said);
    // The same request again, with the run id that its repetition brings.
    assert_eq!(
        chat.reply(&StartTurn { run_id: chat.turn(conversation, &id, "").run_id, ..turn }).await,
        said
    );
    let record = chat.world.load(run).await;
    assert_eq!(record.user.as_ref(), Some(&chat.person));
    assert_eq!(record.identity, "user:ada");
    assert_eq!((&record.target, record.target_version), (&chat.agent, 4));
    assert_eq!((record.conversation, record.recipient), (Some(conversation), None));
    assert_eq!((record.hops, record.depth, record.state), (10, 1, RunState::Queued));
    assert_eq!(record.input.as_deref(), Some(r#"{"instruction":"é"}"#));
    let time = record.deadline_ms.unwrap() - record.created_at_ms;
    assert_eq!(time, 600_000);
    assert!(chat.world.alarm_is_in(run, Duration::from_secs(5)).await);
    assert_eq!(chat.page(conversation).await.unwrap().conversation.active, Some(run));
    assert_eq!(chat.answer(run, "Because.").await, None);
    let page = chat.page(conversation).await.unwrap();
    assert_eq!((page.conversation.active, page.conversation.unread), (None, 2));
    let from: Vec<ChatFrom> = page.messages.iter().map(|message| message.from).collect();
    assert_eq!(from, [ChatFrom::Agent, ChatFrom::Person, ChatFrom::Agent]);
    assert_eq!(page.messages[1].run, Some(run));
    assert_eq!((page.messages[2].text.as_str(), page.messages[2].run), ("Because.", Some(run)));
    // The run that has sent first is not involved, and the turn has no delivery of its own.
    assert_eq!(chat.world.load(run).await.delivery, None);
    chat.world.end().await;
}

#[tokio::test]
async fn messages_that_come_at_once_make_one_turn_at_a_time_in_their_order() {
    let chat = Chat::of(World::with(|config| config.connections = 8).await);
    let conversation = chat.conversation().await;
    let ids: Vec<MessageId> = (0..8).map(|number| message(&format!("m{number}"))).collect();
    let answers = join_all(ids.iter().map(async |id| {
        let turn = chat.turn(conversation, id, id.as_str());
        chat.reply(&turn).await
    }))
    .await;
    let mut begun = answers.iter().filter_map(|said| match said {
        Said::Said { run, active, .. } if *active == Some(*run) => Some(*run),
        _ => None,
    });
    let first = begun.next().unwrap();
    assert_eq!(begun.next(), None);
    assert_eq!(chat.world.alarms(AlarmSet::Agent).await, 2);
    let mut order: Vec<(u64, RunId)> = answers
        .iter()
        .map(|said| match said {
            Said::Said { run, seq, .. } => (*seq, *run),
            other => panic!("{other:?}"),
        })
        .collect();
    order.sort_unstable();
    let order: Vec<RunId> = order.into_iter().map(|(_, run)| run).collect();
    assert_eq!(order[0], first);
    for (place, run) in order.iter().enumerate() {
        // Those that wait are no runs yet.
        if let Some(later) = order.get(place + 1) {
            assert_eq!(chat.world.store.load_run(*later).await.unwrap(), None);
        }
        assert_eq!(chat.answer(*run, "ok").await, order.get(place + 1).copied());
    }
    assert_eq!(chat.page(conversation).await.unwrap().conversation.active, None);
    assert_eq!(chat.texts(conversation).await.len(), 17);
    chat.world.end().await;
}

#[tokio::test]
async fn as_many_turns_wait_as_may_and_the_next_one_has_to_come_again() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let mut runs = Vec::new();
    for number in 0..=CHAT_TURNS_WAITING_MAX {
        let id = message(&format!("m{number}"));
        let turn = chat.turn(conversation, &id, "More.");
        assert!(matches!(chat.reply(&turn).await, Said::Said { .. }));
        runs.push(turn.run_id);
    }
    let id = message("late");
    let late = chat.turn(conversation, &id, "Late.");
    assert_eq!(chat.reply(&late).await, Said::Full);
    assert_eq!(chat.answer(runs[0], "ok").await, Some(runs[1]));
    let said = chat.reply(&late).await;
    assert!(matches!(said, Said::Said { active: Some(run), .. } if run == runs[1]), "{said:?}");
    chat.world.end().await;
}

#[tokio::test]
async fn a_turn_that_fails_says_so_in_the_conversation_and_the_next_one_begins() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let ids: Vec<MessageId> = (0..3).map(|number| message(&format!("m{number}"))).collect();
    let turns: Vec<_> = ids.iter().map(|id| chat.turn(conversation, id, "Go.")).collect();
    for turn in &turns {
        chat.reply(turn).await;
    }
    let end = End { error: Some(("MAX_TURNS", "Too many.")), ..End::plain(RunState::Failed) };
    let ended = chat.world.store.end_run(turns[0].run_id, &end).await.unwrap();
    assert_eq!(next(&ended), Some(turns[1].run_id));
    let ended = chat.world.store.end_run(turns[1].run_id, &End::plain(RunState::Canceled)).await;
    assert_eq!(next(&ended.unwrap()), Some(turns[2].run_id));
    let fence = chat.world.claim(turns[2].run_id).await;
    let silent = End::plain(RunState::Completed);
    let ended = chat.world.store.finish_run(turns[2].run_id, fence, &silent).await.unwrap();
    assert_eq!(next(&ended), None);
    let system: Vec<String> = chat
        .messages(conversation)
        .await
        .into_iter()
        .filter(|message| message.from == ChatFrom::System)
        .map(|message| message.text)
        .collect();
    assert_eq!(system, ["MAX_TURNS", "CANCELLED", "NO_ANSWER"]);
    chat.world.end().await;
}

#[tokio::test]
async fn a_turn_whose_run_has_vanished_holds_up_nobody() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let (one, two, three) = (message("m1"), message("m2"), message("m3"));
    let first = chat.turn(conversation, &one, "One.");
    let (second, third) =
        (chat.turn(conversation, &two, "Two."), chat.turn(conversation, &three, "Three."));
    chat.reply(&first).await;
    chat.reply(&second).await;
    let mut raw = chat.world.raw().await;
    let key = chat.world.key_name(&format!("run:{}", first.run_id));
    redis::cmd("UNLINK").arg(key).query_async::<()>(&mut raw).await.unwrap();
    // The one that has waited longer comes first.
    let said = chat.reply(&third).await;
    assert!(matches!(said, Said::Said { active: Some(run), .. } if run == second.run_id));
    assert_eq!(chat.answer(second.run_id, "ok").await, Some(third.run_id));
    chat.world.end().await;
}

/// NB-22
#[tokio::test]
async fn only_the_person_of_a_conversation_reads_it_and_writes_in_it() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let (ben, id) = (name("ben"), message("m1"));
    let turn = chat.turn(conversation, &id, "Hi.");
    assert_eq!(chat.reply(&StartTurn { person: &ben, ..turn }).await, Said::Missing);
    let never = ConversationId::new(chat.world.shard, ulid::Ulid::generate());
    assert_eq!(chat.reply(&StartTurn { conversation: never, ..turn }).await, Said::Missing);
    assert_eq!(chat.texts(conversation).await.len(), 1);
    let long = "x".repeat(8_001);
    for bad in [
        StartTurn { text: "", ..turn },
        StartTurn { text: &long, ..turn },
        StartTurn { run_id: chat.world.fresh_run(RunKind::Process), ..turn },
    ] {
        let error = chat.world.store.reply_in_conversation(&bad).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    }
    let other = Chat { person: ben, ..chat };
    assert_eq!(other.page(conversation).await, None);
    other.world.end().await;
}

#[tokio::test]
async fn held_calls_are_shown_by_the_holder_of_the_active_turn_and_go_with_its_end() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let (one, two) = (message("m1"), message("m2"));
    let turn = chat.turn(conversation, &one, "Go.");
    chat.reply(&turn).await;
    let fence = chat.world.claim(turn.run_id).await;
    let hold = async |run, fence, calls| {
        let asks_in = AsksIn { conversation, turn: run };
        chat.world.store.hold_calls(asks_in, run, fence, calls).await.unwrap()
    };
    let pending = async || chat.page(conversation).await.unwrap().conversation.pending;
    assert_eq!(hold(turn.run_id, fence, Some("[1]")).await, TurnHeld::Held);
    assert_eq!(pending().await.as_deref(), Some("[1]"));
    assert_eq!(hold(turn.run_id, fence + 1, Some("[2]")).await, TurnHeld::Lost);
    let outsider = chat.run().await;
    let its = chat.world.claim(outsider).await;
    assert_eq!(hold(outsider, its, Some("[3]")).await, TurnHeld::Lost);
    assert_eq!(pending().await.as_deref(), Some("[1]"));
    assert_eq!(hold(turn.run_id, fence, None).await, TurnHeld::Held);
    assert_eq!(pending().await, None);
    hold(turn.run_id, fence, Some("[1]")).await;
    let next = chat.turn(conversation, &two, "And?");
    chat.reply(&next).await;
    chat.world.store.end_run(turn.run_id, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(pending().await, None);
    assert_eq!(hold(turn.run_id, fence, Some("[1]")).await, TurnHeld::Lost);
    chat.world.end().await;
}

/// NB-24
#[tokio::test]
async fn calls_of_a_part_of_the_active_turn_are_shown_beside_those_of_the_turn_until_either_ends() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let (one, two) = (message("m1"), message("m2"));
    let turn = chat.turn(conversation, &one, "Go.");
    chat.reply(&turn).await;
    let fence = chat.world.claim(turn.run_id).await;
    let asks_in = AsksIn { conversation, turn: turn.run_id };
    let hold = async |(run, fence): (RunId, u64), calls| {
        chat.world.store.hold_calls(asks_in, run, fence, calls).await.unwrap()
    };
    let shown = async || {
        let conversation = chat.page(conversation).await.unwrap().conversation;
        (conversation.pending, conversation.pending_below)
    };
    let (first, second) = (chat.part(asks_in, 1_001).await, chat.part(asks_in, 1_002).await);
    assert_eq!(chat.world.load(first.0).await.asks_in, Some(asks_in));
    assert_eq!(hold(first, Some(r#"["é"]"#)).await, TurnHeld::Held);
    assert_eq!(hold(second, Some("[2]")).await, TurnHeld::Held);
    assert_eq!(hold((turn.run_id, fence), Some("[0]")).await, TurnHeld::Held);
    let (own, below) = shown().await;
    assert_eq!(own.as_deref(), Some("[0]"));
    let below = below.unwrap();
    for (run, calls) in [(first.0, r#"[\"é\"]"#), (second.0, "[2]")] {
        assert!(below.contains(&format!("\"{run}\":\"{calls}\"")), "{below}");
    }

    let large = format!("[\"{}\"]", "x".repeat(HOLD_BYTES_MAX - 4));
    let third = chat.part(asks_in, 1_003).await;
    assert_eq!(hold(third, Some(&large)).await, TurnHeld::Held);
    assert_eq!(hold(second, Some(&large)).await, TurnHeld::Full);
    assert_eq!(hold((third.0, third.1 + 1), None).await, TurnHeld::Lost);
    assert_eq!(hold(third, None).await, TurnHeld::Held);
    // Its end takes its calls along, those of the others stay.
    chat.world.store.end_run(second.0, &End::plain(RunState::Canceled)).await.unwrap();
    let only = format!("{{\"{}\":\"[\\\"é\\\"]\"}}", first.0);
    assert_eq!(shown().await, (Some("[0]".to_owned()), Some(only)));
    assert_eq!(hold(second, Some("[2]")).await, TurnHeld::Lost);

    // With the turn everything goes, and what still runs below it shows nothing any more.
    let next = chat.turn(conversation, &two, "And?");
    chat.reply(&next).await;
    chat.world.store.end_run(turn.run_id, &End::plain(RunState::Canceled)).await.unwrap();
    assert_eq!(shown().await, (None, None));
    assert_eq!(hold(first, Some("[1]")).await, TurnHeld::Lost);
    assert_eq!(shown().await, (None, None));
    chat.world.end().await;
}

#[tokio::test]
async fn the_end_of_a_turn_tells_whether_the_agent_or_the_fleet_has_said_something() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let ids: Vec<MessageId> = (0..3).map(|number| message(&format!("m{number}"))).collect();
    let turns: Vec<_> = ids.iter().map(|id| chat.turn(conversation, id, "Go.")).collect();
    for turn in &turns {
        chat.reply(turn).await;
    }
    let answer = End { output: Some(r#"{"text":"Yes."}"#), ..End::plain(RunState::Completed) };
    let failed = End { error: Some(("MAX_TURNS", "Too many.")), ..End::plain(RunState::Failed) };
    let silent = End::plain(RunState::Completed);
    let mut said = Vec::new();
    for (turn, end) in turns.iter().zip([answer, failed, silent]) {
        said.push(chat.said_at_end(turn.run_id, &end).await);
    }
    assert_eq!(said, [ChatFrom::Agent, ChatFrom::System, ChatFrom::System].map(Some));
    let outsider = chat.run().await;
    assert_eq!(chat.said_at_end(outsider, &answer).await, None);
    chat.world.end().await;
}

/// NB-20
#[tokio::test]
async fn a_message_and_a_call_that_is_held_always_find_each_other_in_either_order() {
    let chat = Chat::new().await;
    let conversation = chat.conversation().await;
    let ids = ["m1", "m2", "m3"].map(message);
    let turn = chat.turn(conversation, &ids[0], "Go.");
    chat.reply(&turn).await;
    let fence = chat.world.claim(turn.run_id).await;
    let hold = async || {
        let held = chat.world.store.hold_calls(
            AsksIn { conversation, turn: turn.run_id },
            turn.run_id,
            fence,
            Some("[1]"),
        );
        held.await.unwrap()
    };
    let pending = async || chat.page(conversation).await.unwrap().conversation.pending;
    let held_by = |said: Said| match said {
        Said::Said { active: Some(active), held, .. } if active == turn.run_id => held,
        other => panic!("{other:?}"),
    };
    // Held first: the message finds it, and so does each repetition of it while it waits.
    assert_eq!(hold().await, TurnHeld::Held);
    let late = chat.turn(conversation, &ids[1], "Wait.");
    assert!(held_by(chat.reply(&late).await) && held_by(chat.reply(&late).await));
    // Written first: what is to be held finds that nobody will decide.
    assert_eq!(hold().await, TurnHeld::Written);
    assert_eq!(pending().await, None);
    assert!(!held_by(chat.reply(&chat.turn(conversation, &ids[2], "Please.")).await));
    // A message whose own turn has come closes nothing any more, however late it comes again.
    let end = End::plain(RunState::Completed);
    let ended = chat.world.store.finish_run(turn.run_id, fence, &end).await.unwrap();
    assert_eq!(next(&ended), Some(late.run_id));
    let fence = chat.world.claim(late.run_id).await;
    let shown = chat.world.store.hold_calls(
        AsksIn { conversation, turn: late.run_id },
        late.run_id,
        fence,
        Some("[2]"),
    );
    assert_eq!(shown.await.unwrap(), TurnHeld::Written);
    let said = chat.reply(&late).await;
    assert!(
        matches!(said, Said::Said { active: Some(run), held: false, .. } if run == late.run_id)
    );
    chat.world.end().await;
}

#[tokio::test]
async fn what_a_person_says_about_messages_is_kept_until_it_is_changed() {
    let chat = Chat::new().await;
    let (store, workspace) = (&chat.world.store, &chat.world.workspace);
    let settings = async || store.chat_settings(workspace, &chat.person).await.unwrap();
    assert_eq!(settings().await, ChatSettings::default());
    let hours = QuietHours {
        from: "22:00".to_owned(),
        to: "07:30".to_owned(),
        time_zone: "Europe/Berlin".to_owned(),
    };
    let change = async |opt_out, quiet| {
        store.change_chat_settings(workspace, &chat.person, opt_out, quiet).await.unwrap()
    };
    let quiet = ChatSettings { opt_out: false, quiet_hours: Some(hours.clone()) };
    assert_eq!(change(None, ChangeQuietHours::Set(&hours)).await, quiet);
    let both = ChatSettings { opt_out: true, ..quiet };
    assert_eq!(change(Some(true), ChangeQuietHours::Keep).await, both);
    assert_eq!(settings().await, both);
    let out = ChatSettings { opt_out: true, quiet_hours: None };
    assert_eq!(change(None, ChangeQuietHours::Clear).await, out);
    assert_eq!(change(Some(false), ChangeQuietHours::Keep).await, ChatSettings::default());
    let ben = store.chat_settings(workspace, &name("ben")).await.unwrap();
    assert_eq!(ben, ChatSettings::default());
    chat.world.end().await;
}
