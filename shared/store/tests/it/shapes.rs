//! The same ledger on a cluster, behind a Sentinel, and with a login that may do no more than needed.

use std::time::Duration;

use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_store::{
    AlarmSet, AsksIn, BroadcastSignal, CatalogPut, ChangeQuietHours, Checkpoint, DeliveryStatus,
    Due, End, GetRun, Got, HandedOver, ListConversations, MarkHow, Published, Refused, Reserve,
    Reserved, Said, Started, TurnHeld, Verdict, Wait,
};

use crate::calls::find;
use crate::chat_world::Chat;
use crate::messages::{paid, receiver};
use crate::server::Server;
use crate::world::{Request, World, connect, finished, key, message, name, redis_url};

/// One operation of each kind.
async fn everything_works(world: World) -> World {
    ledger_works(&world).await;
    let chat = Chat::of(world);
    chats_work(&chat).await;
    chat.world
}

async fn ledger_works(world: &World) {
    let request = Request::process().with_key("k");
    let run = world.run(&request).await;
    let duplicate = Started::Duplicate { run, state: RunState::Queued };
    assert_eq!(world.start(&request.again()).await, duplicate);
    calls_keys_and_batches_work(world, run).await;
    let fence = world.claim(run).await;
    world.store.append_event(run, &message("e"), "{}").await.unwrap();
    world.store.renew_lease(run, fence).await.unwrap();
    let end = End::plain(RunState::Completed);
    let answer = world.store.finish_run(run, fence, &end).await.unwrap();
    assert_eq!(answer, finished(true));
    let answer = world.store.hand_over(&world.hand_over(run, &request.job)).await.unwrap();
    assert!(matches!(answer, HandedOver::Delivered(_)), "{answer:?}");
    world.store.finish_job(run.outcome_job(), 1, true).await.unwrap();
    for set in runfleet_store::AlarmSet::ALL {
        world.store.due_alarms(world.shard, set, 10).await.unwrap();
        world.store.count_alarms(world.shard, set).await.unwrap();
    }
    world.run(&Request::new(RunKind::Agent)).await;
    let answer = world.store.put_catalog(&world.workspace, Some(0), "{}", &[]).await.unwrap();
    assert_eq!(answer, CatalogPut::Stored { revision: 1 });
    let changes = world.store.catalog_changes(0).await.unwrap();
    assert_eq!(changes.workspaces, std::slice::from_ref(&world.workspace));
    assert!(world.store.explain_run(run).await.unwrap().is_some());
    waits_and_children_work(world).await;
}

async fn chats_work(chat: &Chat) {
    let conversation = chat.conversation().await;
    // The oldest of too many goes, and a day and a message are given back.
    let run = chat.run().await;
    let message = chat.message(run, "c2");
    let refused = Refused { status: DeliveryStatus::Failed, code: "DELIVERY_FAILED" };
    let sending = chat.sending(&message).await;
    chat.mark(&message, sending.fence, MarkHow::NotSent(refused)).await;
    let (id, later) = (crate::world::message("m1"), crate::world::message("m2"));
    let turn = chat.turn(conversation, &id, "Go.");
    chat.reply(&turn).await;
    let (store, workspace, person) = (&chat.world.store, &chat.world.workspace, &chat.person);
    let fence = chat.world.claim(turn.run_id).await;
    let asks_in = AsksIn { conversation, turn: turn.run_id };
    let held = store.hold_calls(asks_in, turn.run_id, fence, Some("[]")).await.unwrap();
    assert_eq!(held, TurnHeld::Held);
    let (part, fence_of_part) = chat.part(asks_in, 1_001).await;
    let held = store.hold_calls(asks_in, part, fence_of_part, Some("[]")).await.unwrap();
    assert_eq!(held, TurnHeld::Held);
    store.end_run(part, &End::plain(RunState::Canceled)).await.unwrap();
    let next = chat.turn(conversation, &later, "On.");
    assert!(
        matches!(chat.reply(&next).await, Said::Said { active: Some(run), held: true, .. } if run == turn.run_id)
    );
    let held = store.hold_calls(asks_in, turn.run_id, fence, Some("[]")).await.unwrap();
    assert_eq!(held, TurnHeld::Written);
    // A message that waits, is due, and goes.
    let message = chat.message(chat.run().await, "c3");
    let waits = Reserve { not_before_ms: Some(1), ..message };
    assert!(matches!(chat.reserve(&waits).await, Reserved::Waiting { due_ms: 1 }));
    assert!(store.waiting_message(message.run_id, "c3").await.unwrap().is_some());
    let due = store.due_alarms(chat.world.shard, AlarmSet::Chat, 10).await.unwrap();
    assert!(matches!(&due[..], [Due::Message(due)] if due.text == message.text));
    let sending = chat.sending(&message).await;
    chat.mark(&message, sending.fence, MarkHow::Later).await;
    chat.sending(&message).await;
    let end = End { output: Some(r#"{"text":"Yes."}"#), ..End::plain(RunState::Completed) };
    store.finish_run(turn.run_id, fence, &end).await.unwrap();
    let list = ListConversations { workspace, person, before_ms: None, limit: 9 };
    assert_eq!(store.list_conversations(&list).await.unwrap().conversations.len(), 1);
    assert_eq!(chat.texts(conversation).await, ["Hello.", "Go.", "On.", "Yes."]);
    store
        .change_chat_settings(workspace, person, Some(true), ChangeQuietHours::Clear)
        .await
        .unwrap();
}

async fn waits_and_children_work(world: &World) {
    let hour = Duration::from_hours(1);
    let signal = Wait::Signal { name: "stop" };
    assert_eq!(world.publish("7", "m1", hour).await, Published::Buffered { again: false });
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let inbox = world.give_back(run, fence, &[paid("7", 1), paid("8", 2), signal], &[]).await;
    assert_eq!(receiver(&world.publish("8", "m2", hour).await), run);
    let broadcast = BroadcastSignal {
        workspace: &world.workspace,
        project: &world.project,
        name: "stop",
        variables_json: "{}",
        id: &message("s"),
    };
    let page = world.store.broadcast_signal(&broadcast, 10, None).await.unwrap();
    assert_eq!(page.woken.len(), 1);
    let child = world.child(run, 3).await;
    assert_eq!(world.store.open_children(run, 10).await.unwrap().len(), 1);
    let end = End { history: &["[1]"], ..End::plain(RunState::Canceled) };
    world.store.end_run(child, &end).await.unwrap();
    assert_eq!(world.store.history(child, 0, 9).await.unwrap(), ["[1]"]);
    let consumed = [inbox[0].id.clone()];
    let rest = world.give_back(run, fence, &[signal], &consumed).await;
    assert_eq!(rest.len(), 3);
    let incident = Checkpoint { incidents: 1, ..Checkpoint::new("p") };
    world.store.checkpoint_run(run, fence, &incident).await.unwrap();
    assert_eq!(world.store.count_incidents(world.shard).await.unwrap(), 1);
    world.store.end_run(run, &end).await.unwrap();
    assert_eq!(world.store.count_incidents(world.shard).await.unwrap(), 0);
}

async fn calls_keys_and_batches_work(world: &World, run: RunId) {
    let (workspace, project, execution) = (&world.workspace, &world.project, &name("exec-1"));
    let request = Request { batch: true, ..Request::process().with_key("b") };
    assert_eq!(world.store.find_start(&find(world, &request)).await.unwrap(), None);
    let made = world.run(&request).await;
    let refused = Request { verdict: Verdict::Refuse, ..request.again() };
    assert!(matches!(world.start(&refused).await, Started::Duplicate { .. }));
    let get = GetRun { workspace, project, execution, calls_budget: Some(9), run: Some(run) };
    assert!(matches!(world.store.get_run(&get).await.unwrap(), Got::Found(_)));
    world.store.revoke_batch(workspace, project, execution, Duration::from_mins(1)).await.unwrap();
    assert!(world.store.batch_revoked(workspace, project, execution).await.unwrap());
    assert_eq!(world.start(&refused.again()).await, Started::Revoked);
    world.store.unrevoke_batch(workspace, project, execution).await.unwrap();
    // From refused to accepted.
    let late = Request { verdict: Verdict::Accept, key: None, ..request.again() };
    world.start(&Request { verdict: Verdict::Refuse, ..late.clone() }).await;
    world.run(&late).await;
    assert!(world.store.show_key(workspace, project, &key("b")).await.unwrap().is_some());
    let released = world.store.release_key(workspace, project, &key("b")).await.unwrap();
    assert_eq!(released, Some(made));
}

#[tokio::test]
async fn a_cluster_holds_the_ledger() {
    let node = Server::start("cluster-enabled yes\nsave \"\"").await;
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await.unwrap();
    let url = format!("redis-cluster://127.0.0.1:{}", node.port);
    let world = World::with(|config| {
        config.url = url.into();
        config.deadline = Duration::from_secs(20);
    })
    .await;
    everything_works(world).await;
}

#[tokio::test]
async fn a_primary_is_found_through_its_sentinel_also_after_a_failover() {
    let mut primary = Server::start("save \"\"\nrequirepass pw\nmasterauth pw").await;
    let replica = format!(
        "save \"\"\nrequirepass pw\nmasterauth pw\nreplicaof 127.0.0.1 {}\nrepl-diskless-sync-delay 0",
        primary.port
    );
    let replica = Server::start(&replica).await;
    let sentinel = format!(
        "sentinel monitor main 127.0.0.1 {} 1\nsentinel auth-pass main pw\n\
         sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000",
        primary.port
    );
    let sentinel = Server::sentinel(&sentinel).await;
    let url = format!("redis-sentinel://:pw@127.0.0.1:{}/0?master=main", sentinel.port);
    let world = World::with(|config| {
        config.url = url.into();
        config.deadline = Duration::from_secs(30);
    })
    .await;
    let world = everything_works(world).await;
    let run = world.run(&Request::process()).await;
    let replicated = async {
        let mut raw = connect(&format!("redis://:pw@127.0.0.1:{}", primary.port)).await.unwrap();
        loop {
            // The run was written over another connection; an own write makes the answer cover it.
            redis::cmd("SET").arg("a").arg("b").query_async::<()>(&mut raw).await.unwrap();
            let replicas: u32 =
                redis::cmd("WAIT").arg(1).arg(400).query_async(&mut raw).await.unwrap();
            let known = sentinel.command(&["SENTINEL", "REPLICAS", "main"]).await.unwrap();
            if replicas == 1 && matches!(&known, redis::Value::Array(list) if !list.is_empty()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), replicated)
        .await
        .expect("a replica that follows");
    primary.kill();
    assert_eq!(world.claim(run).await, 1);
    drop(replica);
}

/// The commands that the documentation says a user of the store needs.
fn commands() -> impl Iterator<Item = &'static str> {
    include_str!("../../README.md").split_whitespace().filter(|word| {
        word.strip_prefix('+')
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase()))
    })
}

#[tokio::test]
async fn a_login_that_may_do_no_more_than_needed_is_enough() {
    let world = World::new().await;
    let mut raw = world.raw().await;
    let user = world.config.namespace.clone();
    let mut setuser = redis::cmd("ACL");
    setuser.arg("SETUSER").arg(&user).arg("on").arg(">pw").arg(format!("~{user}:*")).arg("-@all");
    for word in commands() {
        setuser.arg(word);
    }
    setuser.query_async::<()>(&mut raw).await.unwrap();
    let address = redis_url().rsplit('@').next().unwrap().to_owned();
    let narrow = World::with(|config| {
        config.url = format!("redis://{user}:pw@{address}").into();
        config.namespace.clone_from(&user);
    })
    .await;
    everything_works(narrow).await;
    redis::cmd("ACL").arg("DELUSER").arg(&user).query_async::<()>(&mut raw).await.unwrap();
    world.end().await;
}
