//! A worker dies by `kill -9` between two steps and is started again, as any supervisor does.

use std::os::unix::process::ExitStatusExt;

use anyhow::{Result, ensure};
use runfleet_tests::{Fleet, Jobs, Options, project};

use crate::load::{all_ended_once, start_many};

const STARTS: usize = 20;

/// Starts runs against a fleet whose `worker` dies at `point`, and expects all of them to end once.
async fn dies(worker: &'static str, point: &str) -> Result<()> {
    let options = Options {
        fail_at: Some((worker, point.to_owned())),
        without: vec!["agent-runner", "delivery"],
        ..Options::default()
    };
    let mut fleet = Fleet::start(options).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    let starting = tokio::spawn(start_many(fleet.client()?, STARTS, "kill"));
    let status = fleet.ended(worker).await?;
    ensure!(
        status.signal() == Some(9),
        "{worker} was to be killed at {point} and ended with {status}"
    );
    fleet.spawn(worker, None)?;
    let runs = starting.await??;
    all_ended_once(&fleet, &jobs, &runs).await?;
    fleet.remove().await
}

macro_rules! kills {
    ($($name:ident: $worker:literal at $point:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            dies($worker, $point).await
        }
    )*};
}

kills! {
    intake_killed_before_the_commit_loses_nothing: "start-intake" at "intake.before_commit@3";
    intake_killed_between_commit_and_publish_loses_nothing: "start-intake" at "intake.committed@3";
    intake_killed_between_publish_and_reply_loses_nothing: "start-intake" at "intake.published@3";
    intake_killed_between_reply_and_confirm_loses_nothing: "start-intake" at "intake.answered@3";
    intake_killed_between_confirm_and_ack_loses_nothing: "start-intake" at "intake.confirmed@3";
    intake_killed_with_a_frame_written_but_unconfirmed_loses_nothing: "start-intake" at "publisher.sent@3";
    intake_killed_just_before_an_ack_loses_nothing: "start-intake" at "consumer.before_ack@3";
    intake_killed_just_after_an_ack_loses_nothing: "start-intake" at "consumer.after_ack@3";
    runner_killed_before_the_commit_loses_nothing: "process-runner" at "process.before_commit@3";
    runner_killed_between_commit_and_publish_loses_nothing: "process-runner" at "process.committed@3";
    runner_killed_between_publish_and_confirm_loses_nothing: "process-runner" at "publisher.sent@3";
    runner_killed_between_confirm_and_ack_loses_nothing: "process-runner" at "consumer.handled@3";
    runner_killed_just_before_an_ack_loses_nothing: "process-runner" at "consumer.before_ack@3";
    runner_killed_just_after_an_ack_loses_nothing: "process-runner" at "consumer.after_ack@3";
    dispatcher_killed_before_the_commit_loses_nothing: "completion-dispatcher" at "dispatcher.before_commit@3";
    dispatcher_killed_between_commit_and_publish_loses_nothing: "completion-dispatcher" at "dispatcher.committed@3";
    dispatcher_killed_between_publish_and_confirm_loses_nothing: "completion-dispatcher" at "publisher.sent@3";
    dispatcher_killed_between_confirm_and_ack_loses_nothing: "completion-dispatcher" at "dispatcher.published@3";
    dispatcher_killed_just_before_an_ack_loses_nothing: "completion-dispatcher" at "consumer.before_ack@3";
    dispatcher_killed_just_after_an_ack_loses_nothing: "completion-dispatcher" at "consumer.after_ack@3";
}
