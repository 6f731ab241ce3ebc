//! Hosts on a real broker, answers in a real ledger.

use std::sync::{Arc, Mutex};

use runfleet_broker::{Outgoing, Route};
use runfleet_contracts::host::HostAccepted;
use runfleet_contracts::{Advance, HostOutcome};
use runfleet_domain::RunId;
use runfleet_testkit::{Doing, TestHost, wait_until};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::{BOUND, World, asked, message, name};

fn keys() -> AnswerKeys {
    AnswerKeys::new(&SecretString::from("k".repeat(32))).unwrap()
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn done(value: &Value) -> HostOutcome {
    HostOutcome::Ok(object(value))
}

/// Takes what process-runner takes, and remembers which runs were woken.
struct Runner {
    woken: Arc<Mutex<Vec<RunId>>>,
    stop: CancellationToken,
}

impl Runner {
    fn start(world: &World) -> Self {
        let (woken, stop) = (Arc::<Mutex<Vec<RunId>>>::default(), CancellationToken::new());
        let consumer = world.consumer("process-runner.interactive");
        let (answers, shutdown, seen) =
            (Arc::clone(&world.answers), stop.clone(), Arc::clone(&woken));
        tokio::spawn(async move {
            let take = move |message: Inbound<RunnerInbox>| {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                async move {
                    let (body, message) = message.split();
                    if is_smuggled(&message, &body) {
                        return Ok(Verdict::Drop("not_an_answer"));
                    }
                    match body {
                        RunnerInbox::Advance(advance) => seen.lock().unwrap().push(advance.run_id),
                        RunnerInbox::Answer(answer) => return answers.take(&message, answer).await,
                        RunnerInbox::Progress(_) | RunnerInbox::Note => {}
                    }
                    Ok(Verdict::Done)
                }
            };
            consumer.run::<RunnerInbox, _, _>(take, shutdown, Duration::ZERO).await
        });
        Self { woken, stop }
    }

    async fn wait(&self, count: usize) -> Vec<RunId> {
        let found = wait_until("woken runs", BOUND, || async {
            let woken = self.woken.lock().unwrap().clone();
            Ok((woken.len() >= count).then_some(woken))
        });
        found.await.unwrap()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_asked_of_a_host_and_its_first_answer_reaches_the_run() {
    let world = World::new(Some(keys())).await;
    world.with_project_queues().await;
    let runner = Runner::start(&world);
    let host = TestHost::start(&world.broker, name("acme"), name("shop"), |_| {
        Doing::Twice(done(&json!({"reserved": 1})), done(&json!({"reserved": 2})))
    });
    let record = world.run().await;
    let asked = asked("reserve", &json!({"order": 5}));
    // A runner that dies after it has asked asks again.
    world.answers.ask(&record, &asked).await.unwrap();
    let requests = host.wait(1, BOUND).await.unwrap();
    let request = &requests[0];
    assert_eq!((request.name.as_str(), request.element_id.as_str()), ("reserve", "Activity_1"));
    assert_eq!((request.instance, request.attempt, request.run_id), (7, 1, record.id));
    assert_eq!(request.variables, object(&json!({"order": 5})));
    assert_eq!(request.headers["warehouse"], "north");
    assert_eq!(request.deadline, asked.expires_ms);
    assert!(request.answer_key.is_some());
    world.answers.ask(&record, &asked).await.unwrap();
    host.wait(2, BOUND).await.unwrap();
    // Each answer wakes the run, and only the first is an event.
    assert_eq!(runner.wait(4).await, [record.id; 4]);
    let answer = json!({"reserved": 1});
    let events = world.inbox(record.id).await;
    assert_eq!(events, [RunEvent::TaskDone { task: 7, attempt: 1, answer }]);
    drop((runner, host));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_a_host_that_dies_is_taken_by_the_next_one() {
    let world = World::new(Some(keys())).await;
    world.with_project_queues().await;
    let record = world.run().await;
    // No host is there yet: the request waits.
    world.answers.ask(&record, &asked("reserve", &json!({}))).await.unwrap();
    let dying = TestHost::start(&world.broker, name("acme"), name("shop"), |_| Doing::Crash);
    dying.wait(1, BOUND).await.unwrap();
    let error = HostOutcome::Error { code: "no-stock".into(), variables: Map::new() };
    let next = TestHost::start(&world.broker, name("acme"), name("shop"), move |_| {
        Doing::Slowly(Duration::from_millis(50), error.clone())
    });
    assert_eq!(next.wait(1, BOUND).await.unwrap()[0].run_id, record.id);
    let runner = Runner::start(&world);
    runner.wait(1).await;
    let events = world.inbox(record.id).await;
    let (code, variables) = ("no-stock".into(), Map::new());
    assert_eq!(events, [RunEvent::TaskError { task: 7, attempt: 1, code, variables }]);
    drop((runner, dying, next));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_believed_only_from_whoever_got_the_request() {
    let mut world = World::new(Some(keys())).await;
    let record = world.run().await;
    let request = world.answers.request(&record, &asked("reserve", &json!({})));
    let good = HostAnswer::to(&request, done(&json!({"n": 1})));
    let wrong_word = HostAnswer { answer_key: Some("0".repeat(32)), ..good.clone() };
    let no_word = HostAnswer { answer_key: None, ..good.clone() };
    let take = async |world: &World, answer: &HostAnswer| {
        world.answers.take(&message(), answer.clone()).await.unwrap()
    };
    for answer in [wrong_word, no_word.clone()] {
        assert_eq!(take(&world, &answer).await, Verdict::Drop("wrong_answer_key"));
    }
    assert_eq!(take(&world, &good).await, Verdict::Done);
    assert_eq!(take(&world, &good).await, Verdict::Duplicate);
    // Without keys, what the answer says of its project is compared with the run.
    let (store, publisher) = (world.store.clone(), world.broker.publisher());
    world.answers = Arc::new(Answers {
        store,
        publisher,
        keys: None,
        tokens: runfleet_worker::Tokens::default(),
    });
    let other = HostAnswer { project: name("crm"), ..no_word.clone() };
    assert_eq!(take(&world, &other).await, Verdict::Drop("answer_of_another_project"));
    let other = HostAnswer { workspace: name("evil"), ..no_word.clone() };
    assert_eq!(take(&world, &other).await, Verdict::Drop("answer_of_another_project"));
    assert_eq!(take(&world, &no_word).await, Verdict::Duplicate);
    let nobody: AskId = "PI1501JDX3Z8GF0000000000000000:7:1".parse().unwrap();
    let gone = HostAnswer { request_id: nobody, run_id: nobody.run_id, ..no_word };
    assert_eq!(take(&world, &gone).await, Verdict::Drop("no_such_run"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_no_run_can_take_fails_the_attempt() {
    let world = World::new(None).await;
    for (outcome, code) in [
        (done(&json!({"a": "x".repeat(70_000)})), "TASK_ANSWER_TOO_LARGE"),
        (HostOutcome::Error { code: String::new(), variables: Map::new() }, "TASK_ANSWER_INVALID"),
        (
            HostOutcome::Failed { code: "no word".into(), retry: true, retry_after_ms: None },
            "TASK_ANSWER_INVALID",
        ),
    ] {
        let record = world.run().await;
        let request = world.answers.request(&record, &asked("reserve", &json!({})));
        let answer = HostAnswer::to(&request, outcome);
        let verdict = world.answers.take(&message(), answer).await.unwrap();
        assert_eq!(verdict, Verdict::Done);
        let ask = request.request_id;
        assert_eq!(world.inbox(record.id).await, [failed(ask, code, false)]);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_asked_for_has_failed() {
    let world = World::new(None).await;
    let record = world.run().await;
    world.answers.ask(&record, &asked("reserve", &json!({}))).await.unwrap();
    let ask = AskId { run_id: record.id, instance: 7, attempt: 1 };
    assert_eq!(world.inbox(record.id).await, [failed(ask, "TASK_QUEUE_MISSING", true)]);
    let record = world.run().await;
    let large = json!({"a": "x".repeat(300_000)});
    world.answers.ask(&record, &asked("reserve", &large)).await.unwrap();
    let ask = AskId { run_id: record.id, ..ask };
    assert_eq!(world.inbox(record.id).await, [failed(ask, "TASK_TOO_LARGE", false)]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_host_says_beside_its_answer_changes_nothing() {
    let world = World::new(None).await;
    let runner = Runner::start(&world);
    let record = world.run().await;
    let request = world.answers.request(&record, &asked("reserve", &json!({})));
    let route = Route::Answer(record.lane);
    let publisher = world.broker.publisher();
    let accepted = HostAccepted { request_id: request.request_id, until: request.deadline };
    let sent = Outgoing::message("accepted", &accepted).unwrap();
    publisher.publish(&route, sent).await.unwrap();
    let advance = Advance { run_id: record.id, fresh: None };
    let smuggled = Outgoing::message("advance", &advance).unwrap();
    publisher.publish(&route, smuggled).await.unwrap();
    let answer = HostAnswer::to(&request, done(&json!({})));
    let sent = Outgoing::message("answer", &answer).unwrap();
    publisher.publish(&route, sent).await.unwrap();
    // One wake-up, which is that of the answer: what came before it was handled before it.
    assert_eq!(runner.wait(1).await, [record.id]);
    assert_eq!(world.inbox(record.id).await.len(), 1);
    drop(runner);
    world.end().await;
}
