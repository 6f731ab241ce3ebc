//! Redis and the network as they are on a bad day.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use prometheus::Registry;
use runfleet_domain::{RunId, RunKind, RunState};
use runfleet_store::{
    CatalogPut, Checkpoint, ChildStarted, Claim, End, Finished, MarkHow, Marked, MessageCaps,
    Published, Reserve, Said, Saved, Started, Store, StoreConfig, StoreError, Waits, Wake,
};
use secrecy::ExposeSecret;

use crate::chat_world::{Chat, NO_CAPS};
use crate::children::call;
use crate::messages::{paid, receiver};
use crate::proxy::Proxy;
use crate::server::{DURABLE, Server};
use crate::world::{Request, World, connect, finished, message, name, redis_url};

/// The shared Redis behind a proxy: the URL through it, and the proxy.
async fn proxied() -> (String, Proxy) {
    let url = redis_url();
    let address = url.rsplit('@').next().unwrap().trim_start_matches("redis://");
    let proxy = Proxy::before(address.to_owned()).await;
    (url.replace(address, &format!("127.0.0.1:{}", proxy.port())), proxy)
}

async fn command(world: &World, words: &[&str]) {
    let mut raw = connect(world.config.url.expose_secret()).await.unwrap();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async::<redis::Value>(&mut raw).await.unwrap();
}

/// A number in the record of a run, seen past the proxy; 0 when there is none.
async fn field_past_proxy(world: &World, run: RunId, field: &str) -> u64 {
    let mut raw = world.raw().await;
    let key = world.key_name(&format!("run:{run}"));
    let number: Option<u64> =
        redis::cmd("HGET").arg(key).arg(field).query_async(&mut raw).await.unwrap();
    number.unwrap_or_default()
}

#[tokio::test]
async fn scripts_that_redis_has_forgotten_are_sent_again() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    command(&world, &["SCRIPT", "FLUSH"]).await;
    let fence = world.claim(run).await;
    command(&world, &["SCRIPT", "FLUSH"]).await;
    let requests: Vec<_> = (0..32).map(|_| Request::process()).collect();
    join_all(requests.iter().map(|request| world.run(request))).await;
    let end = End::plain(RunState::Completed);
    let answer = world.store.finish_run(run, fence, &end).await.unwrap();
    assert_eq!(answer, finished(true));
    world.end().await;
}

#[tokio::test]
async fn cut_connections_are_replaced_without_anybody_noticing() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| config.url = url.into()).await;
    let requests: Vec<_> = (0..400).map(|_| Request::process()).collect();
    let starts = join_all(requests.iter().map(|request| world.run(request)));
    let cuts = async {
        for _ in 0..10 {
            // All over the time that the starts take.
            tokio::time::sleep(Duration::from_millis(5)).await;
            proxy.cut().await;
        }
    };
    let (runs, ()) = tokio::join!(starts, cuts);
    for run in runs {
        assert_eq!(world.load(run).await.state, RunState::Queued);
    }
    assert_eq!(world.starts_today(RunKind::Process).await, 400);
    assert!(proxy.connections() > 2);
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_waited_for_with_a_bound() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| {
        config.url = url.into();
        config.connections = 1;
        config.response_timeout = Duration::from_millis(150);
        config.deadline = Duration::from_millis(700);
    })
    .await;
    let request = Request::process();
    proxy.stall(true);
    let begun = Instant::now();
    let error = world.store.start_run(&request.start(&world)).await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(error.is_transient() && error.maybe_written(), "{error:?}");
    assert!(
        matches!(error, StoreError::Unavailable { reason: "timeout" | "connect", .. }),
        "{error:?}"
    );
    proxy.stall(false);
    // It was done although no answer came; the same message finds it.
    assert!(matches!(world.start(&request).await, Started::Replayed { .. }));
    assert_eq!(world.starts_today(RunKind::Process).await, 1);
    world.end().await;
}

/// Carries out `call` so that its first answer is lost after Redis has done what `done` sees past the proxy.
async fn losing_the_answer<T>(
    proxy: &Proxy,
    call: impl Future<Output = T>,
    done: impl AsyncFn() -> bool,
) -> T {
    proxy.stall(true);
    let cut = async {
        let waited = tokio::time::timeout(Duration::from_secs(20), async {
            while !done().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.expect("redis does it");
        proxy.cut().await;
        proxy.stall(false);
    };
    tokio::join!(call, cut).0
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_is_found_by_its_repetition() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| {
        config.url = url.into();
        config.connections = 1;
        config.response_timeout = Duration::from_secs(10);
        config.deadline = Duration::from_secs(30);
    })
    .await;
    // Logins and scripts that Redis does not know yet have answers too: those must not be the ones that are held back.
    let earlier = world.run(&Request::new(RunKind::Agent)).await;
    let fence = world.claim(earlier).await;
    let nothing = Checkpoint::new("p");
    world.store.checkpoint_run(earlier, fence, &nothing).await.unwrap();
    world.store.finish_run(earlier, fence, &End::plain(RunState::Completed)).await.unwrap();
    let request = Request { calls_limit: Some(1), day_limit: 1, ..Request::process() };
    let start = request.start(&world);
    let run = start.run_id;
    let started = losing_the_answer(&proxy, world.store.start_run(&start), async || {
        field_past_proxy(&world, run, "version").await >= 1
    });
    assert_eq!(started.await.unwrap(), Started::Created { run });
    let claimed = losing_the_answer(&proxy, world.claim(run), async || {
        field_past_proxy(&world, run, "version").await >= 2
    });
    assert_eq!(claimed.await, 1);
    assert_eq!(world.load(run).await.fence, 1);
    let checkpoint = Checkpoint { release: true, ..nothing };
    let saved =
        losing_the_answer(&proxy, world.store.checkpoint_run(run, 1, &checkpoint), async || {
            field_past_proxy(&world, run, "version").await >= 3
        });
    assert_eq!(saved.await.unwrap(), Saved::Saved { released: true, inbox: Vec::new() });
    let fence = world.claim(run).await;
    let version = world.load(run).await.version;
    let end = End::plain(RunState::Completed);
    let answer = losing_the_answer(&proxy, world.store.finish_run(run, fence, &end), async || {
        field_past_proxy(&world, run, "version").await > version
    });
    assert_eq!(answer.await.unwrap(), finished(true));
    world.end().await;
}

/// Members of a key, seen past the proxy.
async fn size_past_proxy(world: &World, command: &str, rest: &str) -> u64 {
    let mut raw = world.raw().await;
    redis::cmd(command).arg(world.key_name(rest)).query_async(&mut raw).await.unwrap()
}

#[tokio::test]
async fn waits_messages_and_children_whose_answers_were_lost_are_not_doubled() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| {
        config.url = url.into();
        config.connections = 1;
        config.response_timeout = Duration::from_secs(10);
        config.deadline = Duration::from_secs(30);
    })
    .await;
    let (store, hour) = (&world.store, Duration::from_hours(1));
    let earlier = world.waiting_run(&[]).await;
    world.publish("0", "m0", Duration::ZERO).await;
    let (child, end) = (world.child(earlier, 1).await, End::plain(RunState::Canceled));
    store.end_run(child, &end).await.unwrap();

    let kept = losing_the_answer(&proxy, world.publish("7", "m1", hour), async || {
        size_past_proxy(&world, "ZCARD", "keptall:acme:crm").await == 1
    });
    assert_eq!(kept.await, Published::Buffered { again: true });
    let run = world.run(&Request::process()).await;
    let fence = world.claim(run).await;
    let (workspace, project) = (&world.workspace, &world.project);
    let waits = Waits { workspace, project, list: &[paid("7", 1), paid("8", 2)] };
    let checkpoint = Checkpoint {
        release: true,
        wake: Wake::Never,
        waits: Some(&waits),
        history: &["[1]", "[2]"],
        incidents: 1,
        ..Checkpoint::new("p")
    };
    let saved =
        losing_the_answer(&proxy, store.checkpoint_run(run, fence, &checkpoint), async || {
            size_past_proxy(&world, "LLEN", &format!("hist:{run}")).await >= 2
        });
    let Saved::Saved { released: false, inbox } = saved.await.unwrap() else { panic!("a message") };
    assert_eq!(inbox.len(), 1);
    assert_eq!(store.history(run, 0, 10).await.unwrap(), ["[1]", "[2]"]);
    assert_eq!(store.count_incidents(world.shard).await.unwrap(), 1);
    let delivered = losing_the_answer(&proxy, world.publish("8", "m2", hour), async || {
        size_past_proxy(&world, "ZCARD", &format!("inbox:{run}")).await == 2
    });
    assert_eq!(receiver(&delivered.await), run);
    assert_eq!(size_past_proxy(&world, "ZCARD", &format!("inbox:{run}")).await, 2);

    let target = name("sub");
    let start = call(&world, run, &target, 7);
    let child = start.run_id();
    let started = losing_the_answer(&proxy, store.start_child(&start), async || {
        field_past_proxy(&world, child, "version").await == 1
    });
    let duplicate = ChildStarted::Started { run: child, duplicate: true };
    assert_eq!(started.await.unwrap(), duplicate);
    let end = End { history: &["[3]"], ..end };
    let ended = losing_the_answer(&proxy, store.end_run(child, &end), async || {
        field_past_proxy(&world, child, "version").await == 2
    });
    let Finished::Finished { parent_to_wake: Some(parent), .. } = ended.await.unwrap() else {
        panic!("the end of a child");
    };
    assert_eq!(parent.run_id, run);
    assert_eq!(store.history(child, 0, 10).await.unwrap(), ["[3]"]);
    assert_eq!(size_past_proxy(&world, "ZCARD", &format!("inbox:{run}")).await, 3);
    world.end().await;
}

#[tokio::test]
async fn a_catalog_whose_answer_was_lost_is_not_taken_for_somebody_elses() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| {
        config.url = url.into();
        config.connections = 1;
        config.response_timeout = Duration::from_secs(10);
        config.deadline = Duration::from_secs(30);
    })
    .await;
    let put = world.store.put_catalog(&world.workspace, Some(0), "{}", &[]);
    let answer = losing_the_answer(&proxy, put, async || {
        let mut raw = world.raw().await;
        let key = world.key_name("catalog:acme");
        redis::cmd("EXISTS").arg(key).query_async(&mut raw).await.unwrap()
    });
    assert_eq!(answer.await.unwrap(), CatalogPut::Stored { revision: 1 });
    assert_eq!(world.store.catalog_changes(0).await.unwrap().latest, 1);
    world.end().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_as_not_reached() {
    let mut config = StoreConfig::new("redis://127.0.0.1:1", "test-nobody");
    config.response_timeout = Duration::from_millis(100);
    config.deadline = Duration::from_millis(300);
    let store = Store::open(&config, &Registry::new()).unwrap();
    let begun = Instant::now();
    let error = store.ping().await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(matches!(error, StoreError::Unavailable { reason: "connect", .. }), "{error:?}");
    assert!(!error.maybe_written());
}

#[tokio::test]
async fn a_wrong_password_is_told_without_the_password() {
    let url = redis_url();
    let address = url.rsplit('@').next().unwrap();
    let config = StoreConfig::new(format!("redis://:hunter2@{address}"), "test-nobody");
    let store = Store::open(&config, &Registry::new()).unwrap();
    let error = store.ping().await.unwrap_err();
    assert!(matches!(error, StoreError::Config(_)), "{error:?}");
    let error_of_work = store.catalog_changes(0).await.unwrap_err();
    assert!(matches!(error_of_work, StoreError::Unavailable { reason: "auth", .. }));
    let shown = format!("{error} {error:?} {error_of_work} {error_of_work:?} {store:?} {config:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("refuses the login"), "{shown}");
}

#[tokio::test]
async fn a_damaged_record_is_told_by_its_field() {
    let world = World::new().await;
    let run = world.run(&Request::process()).await;
    let mut raw = world.raw().await;
    let key = world.key_name(&format!("run:{run}"));
    redis::cmd("HSET").arg(key).arg("state").arg("?").query_async::<()>(&mut raw).await.unwrap();
    let error = world.store.load_run(run).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { kind: "run", field: "state" }), "{error:?}");
    assert!(!error.is_transient());
    let key = world.key_name("msg:acme:crm:m");
    redis::cmd("HSET").arg(key).arg("a").arg("b").query_async::<()>(&mut raw).await.unwrap();
    let request = Request { message: crate::world::message("m"), ..Request::process() };
    let error = world.store.start_run(&request.start(&world)).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { operation: "start_run", .. }), "{error:?}");
    world.end().await;
}

#[tokio::test]
async fn the_future_of_an_operation_is_small() {
    let world = World::new().await;
    let request = Request::process();
    let start = request.start(&world);
    let job = request.job.clone();
    let outcome = world.hand_over(start.run_id, &job);
    for size in [
        size_of_val(&world.store.start_run(&start)),
        size_of_val(&world.store.claim_run(start.run_id, Claim::default())),
        size_of_val(&world.store.hand_over(&outcome)),
        size_of_val(&world.store.catalog_changes(0)),
    ] {
        assert!(size < 4_096, "{size}");
    }
    world.end().await;
}

#[tokio::test]
async fn every_round_trip_is_counted() {
    let world = World::new().await;
    let request = Request::process();
    let run = world.run(&request).await;
    let version = world.load(run).await.version;
    world.store.claim_and_finish_run(run, version, &End::plain(RunState::Completed)).await.unwrap();
    world.store.hand_over(&world.hand_over(run, &request.job)).await.unwrap();
    world.store.finish_job(run.outcome_job(), 1, true).await.unwrap();
    let trips = world
        .registry
        .gather()
        .into_iter()
        .filter(|family| family.name() == "runfleet_store_round_trips_total")
        .flat_map(|family| family.get_metric().to_vec())
        .filter(|metric| metric.get_label()[0].value() != "ping")
        .map(|metric| metric.get_counter().get_value())
        .sum::<f64>();
    // Five for a whole straight run; a Redis that was just started has each script sent once more.
    assert!((5.0..=9.0).contains(&trips), "{trips}");
    let again = Store::open(&world.config, &world.registry);
    assert!(matches!(again, Err(StoreError::Config(_))));
    world.end().await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_crash_of_redis_and_the_store_comes_back_by_itself() {
    let mut redis = Server::start(DURABLE).await;
    let world = World::with(|config| {
        config.url = redis.url().into();
        config.deadline = Duration::from_secs(20);
        config.connections = 4;
    })
    .await;
    let restarted = AtomicBool::new(false);
    let starts = async {
        let mut answers = Vec::new();
        let mut chunk = 0;
        // One more when the server is back, so that every run of this test has starts before, in and after the crash.
        while !restarted.load(Ordering::Relaxed) || answers.len() < 2_000 {
            let requests: Vec<_> = (0..200)
                .map(|number| Request {
                    calls_limit: None,
                    day_limit: 1_000_000,
                    ..Request::process().with_key(&format!("k{chunk}:{}", number / 2))
                })
                .collect();
            answers.extend(join_all(requests.iter().map(|request| world.start(request))).await);
            chunk += 1;
        }
        answers
    };
    let crash = async {
        // In the middle of the starts, and away for as long as some of them try.
        tokio::time::sleep(Duration::from_millis(300)).await;
        redis.kill();
        tokio::time::sleep(Duration::from_millis(300)).await;
        redis.start_again().await;
        restarted.store(true, Ordering::Relaxed);
    };
    let (answers, ()) = tokio::join!(starts, crash);
    let pairs = answers.len() / 2;
    let mut created = 0;
    for answer in answers {
        match answer {
            Started::Created { run } => {
                created += 1;
                assert_eq!(world.load(run).await.state, RunState::Queued);
            }
            Started::Duplicate { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(created, pairs);
}

#[tokio::test]
async fn a_redis_that_may_not_write_for_a_while_is_waited_for() {
    let mut redis = Server::start(DURABLE).await;
    let world = World::with(|config| config.url = redis.url().into()).await;
    // A replica of nobody: it answers, but takes no writes.
    command(&world, &["REPLICAOF", "127.0.0.1", "1"]).await;
    let request = Request::process();
    let promote = async {
        // The start has been refused by then.
        tokio::time::sleep(Duration::from_millis(200)).await;
        command(&world, &["REPLICAOF", "NO", "ONE"]).await;
    };
    let (run, ()) = tokio::join!(world.run(&request), promote);
    command(&world, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = world.store.claim_run(run, Claim::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: "memory", .. }), "{error:?}");
    assert!(!error.maybe_written());
    command(&world, &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(world.claim(run).await, 1);
    redis.kill();
    let error = world.store.load_run(run).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: "connect", .. }), "{error:?}");
    redis.start_again().await;
    assert_eq!(world.load(run).await.fence, 1);
}

/// The state of a message seen past the proxy, as a number that grows: 0 when there is none.
async fn message_past_proxy(world: &World, run: RunId, call: &str) -> u64 {
    let mut raw = world.raw().await;
    let key = world.key_name(&format!("chatmsg:{run}.{call}"));
    let state: Option<String> =
        redis::cmd("HGET").arg(key).arg("state").query_async(&mut raw).await.unwrap();
    state.map_or(0, |state| if state == "DONE" { 2 } else { 1 })
}

#[tokio::test]
async fn messages_and_turns_whose_answers_were_lost_are_not_doubled() {
    let (url, proxy) = proxied().await;
    let world = World::with(|config| {
        config.url = url.into();
        config.connections = 1;
        config.response_timeout = Duration::from_secs(10);
        config.deadline = Duration::from_secs(30);
    })
    .await;
    let chat = Chat::of(world);
    // Every script is known before an answer is held back.
    let conversation = chat.conversation().await;
    let earlier = message("m0");
    let turn = chat.turn(conversation, &earlier, "Zero.");
    chat.reply(&turn).await;
    let canceled = End::plain(RunState::Canceled);
    chat.world.store.end_run(turn.run_id, &canceled).await.unwrap();
    let run = chat.run().await;
    let caps = MessageCaps { per_run: 1, ..NO_CAPS };
    let wish = Reserve { caps, ..chat.message(run, "c1") };
    let world = &chat.world;
    let sending = losing_the_answer(&proxy, chat.sending(&wish), async || {
        message_past_proxy(world, run, "c1").await == 1
    })
    .await;
    assert_eq!((sending.fence, sending.conversation), (1, conversation));
    assert_eq!(field_past_proxy(world, run, "messages").await, 1);
    let marked = losing_the_answer(&proxy, chat.mark(&wish, 1, MarkHow::Sent), async || {
        message_past_proxy(world, run, "c1").await == 2
    })
    .await;
    assert!(matches!(marked, Marked::Known { seq: Some(4), .. }), "{marked:?}");
    assert_eq!(field_past_proxy(world, run, "sending").await, 0);
    let (one, two) = (message("m1"), message("m2"));
    let (first, second) =
        (chat.turn(conversation, &one, "One."), chat.turn(conversation, &two, "Two."));
    let said = losing_the_answer(&proxy, chat.reply(&first), async || {
        field_past_proxy(world, first.run_id, "version").await == 1
    })
    .await;
    let active = Some(first.run_id);
    assert_eq!(said, Said::Said { run: first.run_id, seq: 5, active, held: false });
    chat.reply(&second).await;
    let ended =
        losing_the_answer(&proxy, world.store.end_run(first.run_id, &canceled), async || {
            field_past_proxy(world, second.run_id, "version").await == 1
        })
        .await;
    let Finished::Finished { next_turn: Some(next), .. } = ended.unwrap() else { panic!("a turn") };
    assert_eq!(next.run_id, second.run_id);
    let texts = ["Hello.", "Zero.", "CANCELLED", "Hello.", "One.", "Two.", "CANCELLED"];
    assert_eq!(chat.texts(conversation).await, texts);
    chat.world.end().await;
}
