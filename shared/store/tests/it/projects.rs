//! Versions of projects, their hosts, and calls of their code.

use std::time::Duration;

use runfleet_domain::Name;
use runfleet_store::{
    BeginCall, CallAttempt, CallBegun, CallEnded, EndCall, Registered, Registration, VERSIONS_MAX,
};

use crate::world::{World, name};

const KEEP: Duration = Duration::from_hours(1);
const WITHIN: Duration = Duration::from_secs(8);

async fn register(
    world: &World,
    version: &str,
    manifest: &str,
    active: Option<&str>,
) -> Registered {
    let new = Registration {
        workspace: &world.workspace,
        project: &world.project,
        version,
        summary: "{}",
        manifest,
        active,
    };
    world.store.register_version(&new).await.unwrap()
}

/// CG-231
#[tokio::test]
async fn a_version_is_kept_as_it_was_registered_first() {
    let world = World::new().await;
    assert_eq!(register(&world, "1.0", "a", None).await, Registered::Created);
    assert_eq!(register(&world, "1.0", "a", None).await, Registered::Known);
    assert_eq!(register(&world, "1.0", "b", None).await, Registered::Other);
    let load = |version| world.store.load_manifest(&world.workspace, &world.project, version);
    assert_eq!(load("1.0").await.unwrap().as_deref(), Some("a"));
    assert_eq!(load("1.1").await.unwrap(), None);
    world.end().await;
}

/// CG-231
#[tokio::test]
async fn the_oldest_versions_go_and_the_active_one_stays() {
    let world = World::new().await;
    for number in 0..VERSIONS_MAX + 5 {
        register(&world, &format!("v{number}"), "m", Some("v0")).await;
        // Two of one millisecond would be in the order of their names.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let shown = world.store.show_project(&world.workspace, &world.project, None).await.unwrap();
    let versions: Vec<&str> = shown.versions.iter().map(|one| one.version.as_str()).collect();
    assert_eq!(versions.len(), VERSIONS_MAX);
    assert_eq!((versions[0], versions[VERSIONS_MAX - 1]), ("v24", "v0"));
    assert!(!versions.contains(&"v5") && versions.contains(&"v6"));
    let gone = world.store.load_manifest(&world.workspace, &world.project, "v1").await.unwrap();
    assert_eq!(gone, None);
    world.end().await;
}

#[tokio::test]
async fn a_host_counts_for_a_minute_after_its_last_sign_of_life() {
    let world = World::with_movable_clock().await;
    let show = |host| world.store.show_project(&world.workspace, &world.project, host);
    show(Some(("h1", "1.0"))).await.unwrap();
    show(Some(("h2", "1.0"))).await.unwrap();
    // With another version it is the same host.
    let shown = show(Some(("h1", "1.1"))).await.unwrap();
    let mut hosts: Vec<_> =
        shown.hosts.iter().map(|host| (host.id.as_str(), host.version.as_str())).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [("h1", "1.1"), ("h2", "1.0")]);
    world.move_clock(59_000).await;
    assert_eq!(show(Some(("h2", "1.0"))).await.unwrap().hosts.len(), 2);
    world.move_clock(61_000).await;
    let shown = show(None).await.unwrap();
    assert_eq!(shown.hosts.len(), 1);
    assert_eq!(shown.hosts[0].id, "h2");
    world.end().await;
}

struct Calls<'a> {
    world: &'a World,
    id: Name,
}

impl Calls<'_> {
    async fn begin(&self, message_id: &str, input: &str, to: &str) -> CallBegun {
        let begin = BeginCall {
            workspace: &self.world.workspace,
            project: &self.world.project,
            call_id: &self.id,
            message_id,
            input,
            within: WITHIN,
            reply: Some((to, "c")),
        };
        self.world.store.begin_call(&begin).await.unwrap()
    }

    async fn begun(&self, message_id: &str, input: &str, to: &str) -> CallAttempt {
        match self.begin(message_id, input, to).await {
            CallBegun::Begun(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    async fn end(&self, attempt: &CallAttempt, done: bool, answer: &str) -> CallEnded {
        let end = EndCall {
            workspace: &self.world.workspace,
            project: &self.world.project,
            call_id: &self.id,
            attempt: attempt.attempt,
            answer_key: &attempt.answer_key,
            done,
            answer,
            keep: KEEP,
        };
        self.world.store.end_call(&end).await.unwrap()
    }
}

/// CG-233
#[tokio::test]
async fn a_request_that_comes_again_is_the_same_call_and_gets_the_same_answer() {
    let world = World::new().await;
    let calls = Calls { world: &world, id: name("call") };
    let first = calls.begun("m1", "1", "old").await;
    assert_eq!(calls.begun("m1", "1", "new").await, first);
    assert_eq!(calls.begin("m2", "1", "x").await, CallBegun::Busy);
    assert_eq!(calls.begin("m2", "2", "x").await, CallBegun::OtherInput);
    let to = ("new".to_owned(), "c".to_owned());
    assert_eq!(calls.end(&first, true, "done").await, CallEnded::Ended(Some(to.clone())));
    let known = CallEnded::Known { to: Some(to), answer: "done".to_owned() };
    assert_eq!(calls.end(&first, false, "late").await, known);
    for message in ["m1", "m2"] {
        assert_eq!(calls.begin(message, "1", "x").await, CallBegun::Ended("done".to_owned()));
        assert_eq!(calls.begin(message, "2", "x").await, CallBegun::OtherInput);
    }
    world.end().await;
}

/// CG-236
#[tokio::test]
async fn only_whoever_knows_the_key_of_an_attempt_ends_it() {
    let world = World::new().await;
    let calls = Calls { world: &world, id: name("call") };
    let first = calls.begun("m1", "1", "to").await;
    let forged = CallAttempt { answer_key: "0".repeat(32), ..first.clone() };
    assert_eq!(calls.end(&forged, true, "x").await, CallEnded::Missing);
    let other = CallAttempt { attempt: 2, ..first.clone() };
    assert_eq!(calls.end(&other, true, "x").await, CallEnded::Missing);
    let elsewhere = Calls { world: &world, id: name("other") };
    assert_eq!(elsewhere.end(&first, true, "x").await, CallEnded::Missing);
    world.end().await;
}

/// CG-234
#[tokio::test]
async fn a_call_that_failed_or_got_no_answer_may_be_made_again_and_its_old_answer_is_refused() {
    let world = World::with_movable_clock().await;
    let calls = Calls { world: &world, id: name("call") };
    let first = calls.begun("m1", "1", "to").await;
    assert!(matches!(calls.end(&first, false, "no").await, CallEnded::Ended(_)));
    // The request that has failed is told so again; another one is another attempt.
    assert_eq!(calls.begin("m1", "1", "to").await, CallBegun::Ended("no".to_owned()));
    let second = calls.begun("m2", "2", "to").await;
    assert_eq!((second.attempt, first.attempt), (2, 1));
    assert_ne!(second.answer_key, first.answer_key);
    world.move_clock(9_000).await;
    let third = calls.begun("m3", "2", "to").await;
    assert_eq!(third.attempt, 3);
    assert_eq!(calls.end(&second, true, "late").await, CallEnded::Missing);
    assert!(matches!(calls.end(&third, true, "yes").await, CallEnded::Ended(_)));
    world.end().await;
}
