//! TypeScript projects beside real workers: the example's code in the project host of the SDK, and the host's own tests.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use runfleet_client::{CallKind, Client, ProcessStartOptions};
use runfleet_contracts::claims::Source;
use runfleet_contracts::facts::Progress;
use runfleet_domain::RunId;
use runfleet_testkit::{Servers, wait_until};
use runfleet_tests::{BOUND, Fleet, Hearing, NodeHost, Options, Told, example, sdk};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// A client of one fresh execution of a script on Ada's behalf.
fn script(fleet: &Fleet) -> Result<Client> {
    let mut claims = fleet.claims();
    claims.source = Source::Script;
    claims.user = Some("ada".parse()?);
    Ok(Client::new(&fleet.broker, fleet.token(&claims)?).deadline(Duration::from_secs(35)))
}

async fn look_at_deal(client: &Client) -> Result<(String, String)> {
    let input = json!({"id": "7", "amount": 120, "customerTier": "gold"});
    let value = client.projects().invoke(CallKind::Script, "look-at-deal", &input, None).await?;
    let id = |name: &str| value[name].as_str().map(str::to_owned).context("no id");
    Ok((id("decision")?, id("coach")?))
}

/// CG-001, CG-005, CG-110, NB-17
#[tokio::test]
async fn a_script_in_typescript_starts_runs_whose_outcome_jobs_and_tools_run_in_the_project()
-> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let mut host = NodeHost::start(&fleet, &example()).await?;
    let mut facts = Hearing::start(&fleet, &["agent.progress.v1.demo.shop"]).await?;
    let client = script(&fleet)?;
    let (decision, coach) = look_at_deal(&client).await?;
    let is_written = |told: &Told| {
        matches!(told, Told::Progress(told) if told.run_id.to_string() == coach
            && matches!(&told.doing, Progress::Writing { tool, text, .. }
                if tool == "deal-margin" && text == "calculating the margin"))
    };
    facts.until("what the tool writes", is_written).await?;

    let decided = host.handled("job:discount_decided", 1).await?;
    let outcome =
        |id: &str| -> Result<String> { Ok(id.parse::<RunId>()?.outcome_job().to_string()) };
    assert_eq!(decided, [outcome(&decision)?]);
    let coached = host.handled("job:deal_coached", 1).await?;
    assert_eq!(coached, [outcome(&coach)?]);
    assert_eq!(host.handled("tool:deal-margin", 1).await?.len(), 1);

    let run = client.agents().get(&coach).await?;
    assert_eq!(run.status, "COMPLETED", "{run:?}");
    let result: Value = serde_json::from_str(run.result.context("no result")?.get())?;
    assert_eq!(result["urgency"], "this week");
    assert_eq!(client.processes().get(&decision).await?.state, "COMPLETED");
    assert!(host.stop().await?.success());
    fleet.remove().await
}

/// CG-121, CG-125
#[tokio::test]
async fn the_same_key_from_rust_and_from_typescript_meets_the_same_run() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let _host = NodeHost::start(&fleet, &example()).await?;
    let client = script(&fleet)?;
    let options = ProcessStartOptions::default()
        .input(&json!({"amount": 5}))?
        .idempotency_key("deal:7:discount");
    let first = client.processes().start("approve-discount", options.clone()).await?;
    let (decision, _) = look_at_deal(&script(&fleet)?).await?;
    assert_eq!(decision, first.instance_id);
    let again = client.processes().start("approve-discount", options).await?;
    assert_eq!((again.instance_id, again.duplicate), (decision, true));
    fleet.remove().await
}

#[tokio::test]
async fn an_action_in_typescript_is_called_with_checked_input_and_answers() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let _host = NodeHost::start(&fleet, &example()).await?;
    let client = script(&fleet)?;
    let call = |input: Value| {
        let client = client.clone();
        async move { client.projects().invoke(CallKind::Action, "discounted_price", &input, None).await }
    };
    assert_eq!(call(json!({"amount": 100, "discount": 5})).await?, json!({"price": 95}));
    assert!(call(json!({"amount": "a lot", "discount": 5})).await.is_err());
    fleet.remove().await
}

/// CG-110, CG-112
#[tokio::test]
async fn a_host_that_is_killed_while_it_runs_a_job_leaves_it_to_the_next_one() -> Result<()> {
    let fleet = Fleet::start(Options::default()).await?;
    let project = tempfile::Builder::new().prefix("runfleet-project.").tempdir()?;
    std::fs::create_dir(project.path().join("src"))?;
    let code = r#"
        import { defineJob } from "@cogover/sdk";
        export default defineJob({ key: "discount_decided" }, async ({ log, payload }) => {
            log.info("begun", { state: (payload as any)?.process?.state });
            await new Promise((resolve) => setTimeout(resolve, 3_000));
        });"#;
    std::fs::write(project.path().join("src/job.ts"), code)?;
    let mut host = NodeHost::start(&fleet, project.path()).await?;
    let options = ProcessStartOptions::default()
        .input(&json!({"amount": 5}))?
        .on_complete("discount_decided", &json!({"order": 7}))?;
    let started = script(&fleet)?.processes().start("approve-discount", options).await?;
    host.wait("a job that has begun", 1, |line| line["message"] == "begun").await?;
    host.kill()?;
    assert!(host.lines(|line| line["message"] == "a handler has ended").is_empty());

    let mut next = NodeHost::start(&fleet, project.path()).await?;
    let ids = next.handled("job:discount_decided", 1).await?;
    assert_eq!(ids, [started.instance_id.parse::<RunId>()?.outcome_job().to_string()]);
    let empty = || async { Ok((fleet.depth("jobs.demo.shop").await? == 0).then_some(())) };
    wait_until("an empty queue", BOUND, empty).await?;
    assert!(next.stop().await?.success());
    fleet.remove().await
}

#[test]
fn the_tests_of_the_project_host_pass_on_a_real_broker() -> Result<()> {
    let servers = Servers::from_env()?;
    let done = Command::new("node")
        .args(["scripts/test.mjs", "test/host/broker"])
        .current_dir(sdk())
        .env("RUNFLEET_AMQP_URL", servers.amqp.expose_secret())
        .env("RUNFLEET_AMQP_MANAGEMENT_URL", servers.management.expose_secret())
        .output()
        .context("starting node: is Node.js 20 installed?")?;
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{told}\n{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
