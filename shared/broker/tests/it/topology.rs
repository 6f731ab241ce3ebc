//! The topology as data against a broker.

use lapin::options::{BasicGetOptions, BasicNackOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use runfleet_broker::{
    Broker, Failure, Object, PublishError, Route, Topology, TopologyAdmin, Verdict, names,
};
use runfleet_domain::Lane;
use secrecy::{ExposeSecret, SecretString};

use crate::fixture::{BOUND, Fixture, consume, lane, note, publish, wait_until};

const QUEUE: &str = "delivery.interactive";
const ROUTE: Route = Route::Deliver(Lane::Interactive);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_topology_is_declared_twice_without_harm_and_every_difference_is_named() {
    let mut fixture = Fixture::new(&[]).await;
    fixture.topology = Topology::standard();
    let admin = fixture.admin();
    assert!(!admin.verify().await.unwrap().is_empty());
    admin.apply().await.unwrap();
    admin.apply().await.unwrap();
    assert_eq!(admin.verify().await.unwrap(), []);
    admin.apply_job_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap()).await.unwrap();
    // At once, although the statistics of the broker know these queues only seconds later.
    assert_eq!(admin.diff().await.unwrap(), [""; 0]);
    let shown = admin.show().await.unwrap();
    assert_eq!(shown.len(), fixture.topology.queues.len() + 2);

    let (_connection, channel) = fixture.raw().await;
    channel.queue_delete("retry.2m".into(), QueueDeleteOptions::default()).await.unwrap();
    channel
        .queue_unbind(QUEUE.into(), "x.return".into(), QUEUE.into(), FieldTable::default())
        .await
        .unwrap();
    fixture.management.delete_policy(&fixture.vhost, "runfleet-jobs").await.unwrap();
    let mut changed = fixture.management.policies(&fixture.vhost).await.unwrap();
    let work = changed.iter_mut().find(|policy| policy.name == "runfleet-work").unwrap();
    work.definition.insert("max-length".to_owned(), 7.into());
    fixture.management.put_policy(&fixture.vhost, work).await.unwrap();
    assert_eq!(admin.verify().await.unwrap(), [Object::Queue("retry.2m".to_owned())]);
    let wanted = [
        "policy `runfleet-jobs` is missing",
        "policy `runfleet-work` is different",
        "queue `delivery.interactive` is not bound to `x.return` under `delivery.interactive`",
        "queue `jobs.acme.shop` has the policy `none`, which is not one of the fleet",
        "queue `retry.2m` is missing",
        "queue `retry.2m` is not bound to `x.retry.2m` under ``",
    ];
    let sorted = async || {
        let mut found = admin.diff().await.unwrap();
        found.sort();
        found
    };
    wait_until("the differences", async || sorted().await == wanted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_back_too_often_is_parked_by_the_broker() {
    let limit = |topology: &mut Topology| {
        let policy = topology.policy_mut("runfleet-work").unwrap();
        policy.definition.insert("delivery-limit".to_owned(), 2.into());
    };
    let fixture = Fixture::with(&[QUEUE], limit).await;
    let broker = fixture.broker().await;
    publish(&broker.publisher(), &ROUTE, "m").await;
    let (_connection, channel) = fixture.raw().await;
    for _ in 0..3 {
        let mut taken = None;
        while taken.is_none() {
            taken = channel.basic_get(QUEUE.into(), BasicGetOptions::default()).await.unwrap();
        }
        let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        taken.unwrap().nack(options).await.unwrap();
    }
    let parked = fixture.take(&names::dead_queue(QUEUE)).await;
    assert_eq!(parked.properties.message_id().as_ref().unwrap().as_str(), "m");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_given_up_is_parked_with_those_of_all_projects_and_can_be_read_there() {
    let fixture = Fixture::new(&["jobs", "unreadable"]).await;
    let mut topology = Topology::with_delays(|_| crate::fixture::RUNG);
    topology
        .queues
        .retain(|queue| queue.name.starts_with("dead.jobs") || queue.name == "dead.unreadable");
    topology
        .bindings
        .retain(|binding| topology.queues.iter().any(|queue| queue.name == binding.queue));
    let admin =
        TopologyAdmin::new(fixture.urls.clone(), fixture.management.clone(), topology).unwrap();
    admin.apply().await.unwrap();
    admin.apply_job_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap()).await.unwrap();
    let broker = fixture.broker().await;
    let route = Route::Job { workspace: "acme".parse().unwrap(), project: "shop".parse().unwrap() };
    publish(&broker.publisher(), &route, "j1").await;
    let running = consume(&broker, lane("jobs.acme.shop", 1), BOUND, |_| async {
        Err(Failure::permanent("running"))
    });
    wait_until("a parked job", async || fixture.settled("jobs", "parked_rejected") > 0.5).await;
    running.stop().await;
    // The dispatcher reads them back; what it cannot read has a place too.
    let running = consume(&broker, lane(names::DEAD_JOBS, 1), BOUND, |message| async move {
        if message.attempt == 1 { Err(Failure::transient("looking")) } else { Ok(Verdict::Done) }
    });
    wait_until("the job read back", async || fixture.settled(names::DEAD_JOBS, "completed") > 0.5)
        .await;
    fixture.publish_raw(names::DEAD_JOBS, lapin::BasicProperties::default(), b"?").await;
    fixture.take(names::DEAD_UNREADABLE).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_the_right_to_declare_connects_publishes_retries_and_parks() {
    let fixture = Fixture::new(&[QUEUE, "start-intake.interactive"]).await;
    let user = format!("worker-{}", fixture.vhost);
    let management = &fixture.management;
    management.put_user(&user, &SecretString::from("pass")).await.unwrap();
    let write = r"^(x\.deliver|x\.retry\..*|x\.dead)$";
    management.put_permissions(&fixture.vhost, &user, ["^$", write, r"^delivery\."]).await.unwrap();
    let mut config = fixture.config();
    let address = fixture.address();
    config.urls = SecretString::from(format!("amqp://{user}:pass@{address}/{}", fixture.vhost));
    config.confirm_timeout = std::time::Duration::from_secs(1);
    assert!(!config.urls.expose_secret().is_empty());
    let broker = Broker::start(config, &fixture.registry).unwrap();
    assert!(broker.wait_connected(BOUND).await);
    let running = consume(&broker, lane(QUEUE, 2), BOUND, |message| async move {
        if message.attempt == 1 {
            Err(Failure::transient("trying"))
        } else {
            Err(Failure::permanent("giving up"))
        }
    });
    publish(&broker.publisher(), &ROUTE, "m").await;
    fixture.take(&names::dead_queue(QUEUE)).await;
    // Another worker's exchange is out of reach, and asking for it harms nobody.
    let forbidden = broker.publisher().publish(&Route::Start(Lane::Interactive), note("no")).await;
    assert_eq!(forbidden, Err(PublishError::NotConfirmed));
    publish(&broker.publisher(), &ROUTE, "again").await;
    running.stop().await;
    broker.close().await;
    management.delete_user(&user).await.unwrap();
}

fn task(project: &str) -> Route {
    Route::Task { workspace: "acme".parse().unwrap(), project: project.parse().unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_takes_the_tasks_of_its_project_answers_them_and_can_wake_no_run() {
    let runner = "process-runner.interactive";
    let fixture = Fixture::new(&[runner, "tasks"]).await;
    fixture
        .admin()
        .apply_job_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap())
        .await
        .unwrap();
    let (user, management) = (format!("host-{}", fixture.vhost), &fixture.management);
    management.put_user(&user, &SecretString::from("pass")).await.unwrap();
    let rights = ["^$", r"^(x\.answers|x\.retry\..*|x\.dead)$", r"^(jobs|tasks)\.acme\.shop$"];
    management.put_permissions(&fixture.vhost, &user, rights).await.unwrap();
    let mut config = fixture.config();
    let address = fixture.address();
    config.urls = SecretString::from(format!("amqp://{user}:pass@{address}/{}", fixture.vhost));
    config.confirm_timeout = std::time::Duration::from_secs(1);
    let host = Broker::start(config, &fixture.registry).unwrap();
    assert!(host.wait_connected(BOUND).await);
    let publisher = host.publisher();
    let running = consume(&host, lane("tasks.acme.shop", 2), BOUND, move |message| {
        let publisher = publisher.clone();
        async move {
            let id = format!("answer:{}", message.message_id);
            publish(&publisher, &Route::Answer(Lane::Interactive), &id).await;
            Ok(Verdict::Done)
        }
    });
    let properties = lapin::BasicProperties::default().with_type("note.v1".into());
    let properties = properties.with_message_id("t1".into());
    fixture.publish_raw("tasks.acme.shop", properties, b"{\"text\":\"hello\"}").await;
    let answer = fixture.take(runner).await;
    assert_eq!(answer.properties.message_id().as_ref().unwrap().as_str(), "answer:t1");
    let line = Route::Process(Lane::Interactive.into());
    let forbidden = host.publisher().publish(&line, note("no")).await;
    assert_eq!(forbidden, Err(PublishError::NotConfirmed));
    running.stop().await;
    host.close().await;
    management.delete_user(&user).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_project_without_a_queue_is_reported_and_a_full_queue_refuses() {
    let length = |topology: &mut Topology| {
        let policy = topology.policy_mut("runfleet-tasks").unwrap();
        policy.definition.insert("max-length".to_owned(), 2.into());
    };
    let fixture = Fixture::with(&["tasks"], length).await;
    fixture
        .admin()
        .apply_job_queue(&"acme".parse().unwrap(), &"shop".parse().unwrap())
        .await
        .unwrap();
    let broker = fixture.broker().await;
    let publisher = broker.publisher();
    assert_eq!(publisher.publish(&task("gone"), note("t")).await, Err(PublishError::NoSuchQueue));
    let within = std::time::Duration::from_millis(400);
    let mut refused = 0;
    for number in 0..8 {
        let done = publisher.publish_within(&task("shop"), note(&number.to_string()), within).await;
        refused += u32::from(done == Err(PublishError::Refused));
    }
    assert!((3..=6).contains(&refused), "{refused}");
}
