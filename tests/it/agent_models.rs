//! Agents whose models are behind HTTP: a mock that others have published, in each language; a provider that misbehaves in every
//! way; and many runs at once whose model is slow.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::{try_join, try_join_all};
use runfleet_client::{AgentStartOptions, Client};
use runfleet_contracts::agents::AgentRunState;
use runfleet_domain::RunId;
use runfleet_testkit::wait_until;
use runfleet_tests::{
    ANSWER, BOUND, BadModel, CANARY, Fleet, Jobs, ModelMock, Options, RETRY_AFTER, code, ended,
    project,
};
use serde_json::{Value, json};

#[tokio::test]
async fn agents_ask_a_published_mock_in_each_language_of_providers_and_use_a_tool() -> Result<()> {
    let mock = tokio::task::spawn_blocking(ModelMock::start).await??;
    let fleet = Fleet::start(Options { settings: mock.settings(), ..Options::default() }).await?;
    fleet.apply_documents("mock", &mock.documents()).await?;
    let (client, (workspace, name)) = (fleet.client()?, project());
    let jobs = Jobs::take(&fleet.broker, workspace, name, true);
    for language in ModelMock::languages() {
        let options = AgentStartOptions::new("multiply six by seven");
        let options = options.on_result("deal_coached", &json!(language))?;
        let started = client.agents().start(&format!("asks-{language}"), options).await?;
        let state = ended(&client, &started.run_id).await?;
        let expected = "It is 42, with a text that is longer than one piece.";
        assert_eq!((state.text.as_deref(), code(&state)), (Some(expected), None), "{language}");
        let run_id: RunId = started.run_id.parse()?;
        let job = jobs.wait(run_id.outcome_job(), BOUND).await?;
        let payload: Value = serde_json::from_str(job.payload.get())?;
        let usage = &payload["agentRun"]["usage"];
        assert_eq!(usage["iterations"], 2, "{language}");
        if language != "ollama" {
            let tokens = (&usage["inputTokens"], &usage["outputTokens"]);
            assert_eq!(tokens, (&json!(22), &json!(14)), "{language}");
        }
    }
    let asked = mock.asked().await?;
    for path in ["/v1/chat/completions", "/v1/messages", "/v1beta/models/a-model", "/api/chat"] {
        let times = asked.iter().filter(|asked| asked.starts_with(path)).count();
        assert_eq!(times, 2, "{path}: {asked:?}");
    }
    assert_eq!(asked.len(), 8, "{asked:?}");
    assert!(!fleet.logs().contains(ModelMock::key()));
    fleet.remove().await
}

/// Starts the agent and waits for its end. Gives also how long that took.
async fn run(client: &Client, agent: &str, seconds: u32) -> Result<(AgentRunState, Duration)> {
    let options = AgentStartOptions::new("Do it.").timeout_seconds(seconds);
    let options = options.on_result("deal_coached", &json!(null))?;
    let began = Instant::now();
    let started = client.agents().start(agent, options).await?;
    Ok((ended(client, &started.run_id).await?, began.elapsed()))
}

/// CG-092, CG-093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_provider_does_a_run_ends_in_time_with_the_code_for_it() -> Result<()> {
    let model = BadModel::start().await?;
    let fleet = Fleet::start(Options { settings: model.settings(), ..Options::default() }).await?;
    fleet.apply_documents("bad", &model.documents()).await?;
    let client = fleet.client()?;
    // Long enough for a second attempt and the pause before it, and not for a third one.
    let seconds = 14;
    let expected = [
        ("bad-good", "", 1),
        // Twice, and once by its patient sister.
        ("bad-hang", "LLM_NETWORK", 3),
        ("bad-trickle", "LLM_NETWORK", 3),
        ("bad-drip", "LLM_NETWORK", 3),
        ("bad-cut", "LLM_NETWORK", 2),
        ("bad-large", "LLM_RESPONSE_FAILED", 1),
        ("bad-frame", "LLM_RESPONSE_FAILED", 1),
        ("bad-garbled", "LLM_PARSE", 2),
        ("bad-page", "LLM_PARSE", 2),
        ("bad-loop", "MAX_TURNS", 4),
        ("bad-limited", "", 2),
        ("bad-down", "", 2),
        ("bad-refused", "LLM_HTTP_ERROR", 1),
    ];
    let runs = expected.map(|(agent, ..)| run(&client, agent, seconds));
    // Calls that would last longer than their runs.
    let patient = ["patient-hang", "patient-trickle", "patient-drip"];
    let outlasting = patient.map(|agent| run(&client, agent, 10));
    let (states, outlasted) = try_join(try_join_all(runs), try_join_all(outlasting)).await?;
    for ((agent, word, times), (state, took)) in expected.into_iter().zip(states) {
        assert_eq!(code(&state).unwrap_or_default(), word, "{agent}");
        assert!(took < Duration::from_secs(seconds.into()), "{agent} took {took:?}");
        let asked = model.asked(agent.trim_start_matches("bad-"));
        assert_eq!(asked.len(), times, "{agent}: {asked:?}");
        // At the limit a model is asked to sum up, and what it says then is kept.
        let says = if word.is_empty() || word == "MAX_TURNS" { Some(ANSWER) } else { None };
        assert_eq!(state.text.as_deref(), says, "{agent}");
        assert!(!format!("{state:?}").contains(CANARY), "{agent}");
    }
    let asked = model.asked("limited");
    let pause = asked[1] - asked[0];
    assert!(pause >= Duration::from_secs(RETRY_AFTER.into()), "asked again after {pause:?}");
    for (agent, (state, took)) in patient.into_iter().zip(outlasted) {
        assert_eq!((state.status.as_str(), code(&state)), ("TIMEOUT", Some("TIMEOUT")), "{agent}");
        assert!(took < Duration::from_secs(15), "{agent} took {took:?}");
    }
    wait_until("no call goes on after its run", Duration::from_secs(5), || async {
        Ok((model.now() == 0).then_some(()))
    })
    .await?;
    assert!(!fleet.logs().contains(CANARY));
    fleet.remove().await
}

/// Resident memory of agent-runner, in KiB.
async fn memory(fleet: &Fleet) -> Result<f64> {
    Ok(fleet.metric("agent-runner", "process_resident_memory_bytes").await? / 1_024.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_whose_model_is_slow_do_not_wait_for_each_other_and_take_little_memory() -> Result<()>
{
    const RUNS: usize = 64;
    let model = BadModel::start().await?;
    let fleet = Fleet::start(Options { settings: model.settings(), ..Options::default() }).await?;
    fleet.apply_documents("bad", &model.documents()).await?;
    let client = fleet.client()?;
    // What the first run loads stays.
    let (state, _) = run(&client, "patient-good", 60).await?;
    ensure!(code(&state).is_none(), "{state:?}");
    let before = memory(&fleet).await?;
    let began = Instant::now();
    let options = || AgentStartOptions::new("Take your time.");
    let starts = (0..RUNS).map(|_| client.agents().start("bad-slow", options()));
    let runs = try_join_all(starts).await?;
    wait_until("all runs wait for the model", BOUND, || async {
        Ok((model.now() == RUNS).then_some(()))
    })
    .await
    .with_context(|| format!("at most {} of {RUNS} at a time", model.most()))?;
    let during = memory(&fleet).await?;
    for run in &runs {
        let state = ended(&client, &run.run_id).await?;
        ensure!(state.text.as_deref() == Some(ANSWER), "{state:?}");
    }
    let (took, each) = (began.elapsed(), (during - before) / 64.0);
    eprintln!(
        "{RUNS} runs with a model of 5 s took {took:?}; {each:.0} KiB each beside {before:.0} KiB"
    );
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(each < 512.0, "{each} KiB a run");
    fleet.remove().await
}
