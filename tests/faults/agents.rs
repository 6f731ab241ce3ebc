//! An agent run of three turns with four tool calls, whose runner dies by `kill -9` at every commit, call and publish.
//!
//! What must hold: what was recorded is not asked for again, each effect of a tool comes once per call, a call that must not be
//! repeated and was cut off ends the run, each answer is charged once, and there is one end with one job.

use std::os::unix::process::ExitStatusExt;

use anyhow::{Context as _, Result, ensure};
use runfleet_catalog::{Billing, Price};
use runfleet_client::AgentStartOptions;
use runfleet_domain::RunId;
use runfleet_tests::{BOUND, Fleet, Jobs, Options, Provider, project};
use serde_json::{Value, json};

/// How the run ends.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// As if nothing had happened.
    Well,
    /// After one more question than answers were recorded: one answer was lost with its runner.
    AfterOneMoreQuestion,
    /// After one effect was asked for twice under one key: its answer was lost with its runner.
    AfterOneMoreEffect,
    /// Because a call that must not be repeated was cut off, after this many of its effects.
    CutOff(usize),
}

/// What one answer of the provider costs, in millionths of a credit.
const ANSWER_COST: u64 = 10 * 3 + 5 * 7;

fn billing() -> Billing {
    let price = Price { input_per_million: 3, output_per_million: 7, cached_per_million: None };
    let prices = [("served/one".to_owned(), price)].into();
    Billing { subscription: true, credits: None, prices }
}

async fn dies(point: &str, ends: Ends) -> Result<()> {
    let provider = Provider::start().await?;
    let options = Options {
        settings: provider.settings(),
        fail_at: Some(("agent-runner", point.to_owned())),
        without: vec!["process-runner", "delivery"],
        ..Options::default()
    };
    let mut fleet = Fleet::start(options).await?;
    fleet.apply_documents("clerk", &provider.documents()).await?;
    fleet.apply_bundle(|bundle| bundle.workspace.billing = Some(billing())).await?;
    let (workspace, name) = project();
    let jobs = Jobs::take(&fleet.broker, workspace.clone(), name, true);
    let client = fleet.client()?;
    let options = AgentStartOptions::new("Do it.").on_result("deal_coached", &json!(7))?;
    let started = client.agents().start("clerk", options).await?;
    let status = fleet.ended("agent-runner").await?;
    ensure!(status.signal() == Some(9), "the runner was to be killed at {point}: {status}");
    fleet.spawn("agent-runner", None)?;

    let run_id: RunId = started.run_id.parse()?;
    let job = jobs.wait(run_id.outcome_job(), BOUND).await.context("the run has no end")?;
    let payload: Value = serde_json::from_str(job.payload.get())?;
    let run = &payload["agentRun"];
    let asked = provider.asked();
    let charged = asked.effects.get(&format!("{run_id}:call_2_1")).copied().unwrap_or_default();
    let noted = asked.effects.get(&format!("{run_id}:call_1_3")).copied().unwrap_or_default();
    ensure!(asked.effects.len() <= 2, "an effect has a key of its own: {asked:?}");
    let questions: usize = asked.turns.values().sum();
    // An answer that was lost with its runner is not charged, and none is charged twice.
    let answers = if matches!(ends, Ends::CutOff(_)) { 2 } else { 3 };
    let cost = fleet.store.load_run(run_id).await?.context("no run")?.cost;
    let used = fleet.store.credits_used(&workspace, &"clerk".parse()?).await?;
    let expected = answers * ANSWER_COST;
    ensure!(
        (cost, used.workspace, used.agent) == (expected, expected, expected),
        "{cost} {used:?}"
    );
    if let Ends::CutOff(effects) = ends {
        ensure!(run["error"]["code"] == "SERVER_RESTARTED", "{run}");
        ensure!((charged, noted, questions) == (effects, 1, 2), "{asked:?}");
        return fleet.remove().await;
    }
    ensure!(run["status"] == "COMPLETED" && run["text"] == "All done.", "{run}");
    ensure!(run["usage"]["iterations"] == 3 && run["usage"]["inputTokens"] == 30, "{run}");
    let more = |of: Ends| usize::from(ends == of);
    ensure!(questions == 3 + more(Ends::AfterOneMoreQuestion), "{asked:?}");
    ensure!((charged, noted) == (1, 1 + more(Ends::AfterOneMoreEffect)), "{asked:?}");
    ensure!(jobs.count() == 1, "{} jobs", jobs.count());
    fleet.remove().await
}

macro_rules! kills {
    ($($name:ident: $point:literal, $ends:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            dies($point, $ends).await
        }
    )*};
}

kills! {
    agent_runner_killed_with_a_fresh_claim_loses_nothing: "agent.claimed@1", Ends::Well;
    agent_runner_killed_before_its_first_commit_loses_nothing: "agent.before_commit@1", Ends::Well;
    agent_runner_killed_between_commit_and_question_loses_nothing: "agent.checkpointed@1", Ends::Well;
    agent_runner_killed_after_asking_for_a_turn_asks_once: "agent.asked@1", Ends::Well;
    agent_runner_killed_before_a_model_call_asks_once: "agent.before_turn@2", Ends::Well;
    agent_runner_killed_with_an_answer_in_hand_asks_again: "agent.answered@2", Ends::AfterOneMoreQuestion;
    agent_runner_killed_with_an_answer_stored_never_asks_again: "agent.answer_stored@1", Ends::Well;
    agent_runner_killed_with_an_answer_told_never_asks_again: "agent.answer_told@1", Ends::Well;
    agent_runner_killed_before_the_commit_of_an_answer_never_asks_again: "agent.before_commit@2", Ends::Well;
    agent_runner_killed_between_commit_and_tool_calls_makes_each_once: "agent.checkpointed@2", Ends::Well;
    agent_runner_killed_in_the_middle_of_asking_for_tools_makes_each_once: "agent.asked@3", Ends::Well;
    agent_runner_killed_before_a_tool_call_makes_it_once: "agent.before_tool@4", Ends::Well;
    agent_runner_killed_with_a_call_begun_that_must_not_be_repeated_ends_the_run: "agent.tool_begun@4", Ends::CutOff(0);
    agent_runner_killed_with_a_call_done_that_must_not_be_repeated_does_not_repeat_it: "agent.tool_done@4", Ends::CutOff(1);
    agent_runner_killed_with_the_result_of_a_call_stored_never_repeats_it: "agent.answer_stored@6", Ends::Well;
    agent_runner_killed_with_a_call_done_that_may_be_repeated_repeats_it_under_its_key: "agent.tool_done@3", Ends::AfterOneMoreEffect;
    agent_runner_killed_with_the_last_answer_in_hand_asks_again: "agent.answered@3", Ends::AfterOneMoreQuestion;
    agent_runner_killed_with_the_last_answer_stored_ends_once: "agent.answer_stored@7", Ends::Well;
    agent_runner_killed_between_end_and_outcome_ends_once: "agent.committed@1", Ends::Well;
    agent_runner_killed_between_publish_and_confirm_loses_nothing: "publisher.sent@3", Ends::Well;
    agent_runner_killed_between_work_and_ack_loses_nothing: "consumer.handled@3", Ends::Well;
    agent_runner_killed_just_before_an_ack_loses_nothing: "consumer.before_ack@4", Ends::Well;
    agent_runner_killed_just_after_an_ack_loses_nothing: "consumer.after_ack@4", Ends::Well;
}
