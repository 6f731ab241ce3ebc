//! A fleet whose agents write to people, with runs that wait for their messages and no agent-runner: tests say what is sent.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::{SignedDuration, Timestamp};
use runfleet_broker::{Management, Topology, TopologyAdmin};
use runfleet_contracts::DeliverMessage;
use runfleet_contracts::agents::{AgentInput, ApprovalPolicy, Conversation, DeliverTo};
use runfleet_domain::admission::RunAs;
use runfleet_domain::{Lane, Name, RunId, RunKind, Shard};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{
    ChangeQuietHours, ChatMessage, ConversationPage, Delivery, ListConversations, QuietHours,
    ReadConversation, StartRun, Started, Verdict,
};
use runfleet_testkit::wait_until;
use runfleet_worker::effects;
use tempfile::TempDir;
use ulid::Ulid;

use crate::fleet::{BOUND, CATALOG_EVERY, Fleet, Options, project};

/// The key of the signed webhooks of [`sink_documents`].
const KEY: &str = "a key that nobody guesses";

/// Agents that write through sinks: `own` into the conversation only, `hook` through a webhook that knows ids, `plain` through one
/// that does not, `slack`, `most`, and `mail`; `strict` is `hook` without messages in quiet hours. `web` is the address of a server without a path, `mail` a port of this machine.
pub fn sink_documents(web: &str, mail: u16) -> String {
    let mut documents = String::new();
    let mut add = |kind: &str, name: &str, spec: String| {
        let head = format!("---\napiVersion: runfleet/v1\nkind: {kind}\n");
        documents += &[head, format!("metadata: {{name: {name}}}\nspec: {spec}\n")].concat();
    };
    let common = "timeoutSeconds: 1";
    for (name, deduplicates) in [("hook", true), ("plain", false)] {
        let spec = format!(
            "{{type: webhook, url: '{web}/{name}', keyFile: hook.key, deduplicates: {deduplicates}, {common}}}"
        );
        add("ChatSink", name, spec);
    }
    add("ChatSink", "slack", format!("{{type: slack, url: '{web}/slack', {common}}}"));
    add("ChatSink", "most", format!("{{type: mattermost, url: '{web}/most', {common}}}"));
    let server = format!("host: 127.0.0.1, port: {mail}, security: none, from: agent@demo.example");
    add("ChatSink", "mail", format!("{{type: smtp, {server}, {common}}}"));
    for sink in ["hook", "plain", "slack", "most", "mail"] {
        add("Agent", sink, format!("{{displayName: Coach, model: played/one, chatSink: {sink}}}"));
    }
    let strict = "{model: played/one, chatSink: hook, quietHours: {policy: block}}";
    add("Agent", "strict", strict.to_owned());
    add("Agent", "own", "{displayName: Coach, model: played/one}".to_owned());
    documents
}

/// A workspace `demo` with people, and its project.
fn workspace(people: &str) -> String {
    format!(
        "apiVersion: runfleet/v1\nkind: Workspace\nmetadata: {{name: demo}}\nspec: {{people: [{people}]}}\n\
         ---\napiVersion: runfleet/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{version: \"1\", \
         jobs: [{{key: deal_coached}}], policy: {{agents: {{agents: {{mode: ALL}}, allowSystem: true, maxRunsPerDay: 10000}}}}}}\n"
    )
}

/// Ada, whom every sink knows.
const ADA: &str = "{id: ada, reach: {mail: ada@demo.example, most: '@ada', slack: '#ada'}}";

/// The fleet and what belongs to it.
pub struct Post {
    /// The fleet.
    pub fleet: Fleet,
    documents: String,
    secrets: TempDir,
}

impl Post {
    /// Starts a fleet with the documents of [`sink_documents`] and the given settings, over short leases.
    pub async fn start(documents: String, options: Options) -> Result<Self> {
        let secrets = tempfile::tempdir()?;
        std::fs::create_dir_all(secrets.path().join("demo"))?;
        std::fs::write(secrets.path().join("demo/hook.key"), KEY)?;
        let mut settings: Vec<(String, String)> = [
            ("RUNFLEET_CHAT_ALLOW", "127.0.0.1"),
            ("RUNFLEET_CHAT_LEASE_MS", "2000"),
            ("RUNFLEET_CHAT_RATE_MS", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let folder = secrets.path().display().to_string();
        settings.push(("RUNFLEET_HTTP_SECRETS_DIR".to_owned(), folder));
        settings.extend(options.settings);
        let fleet = Fleet::start(Options { settings, ..options }).await?;
        let post = Self { fleet, documents, secrets };
        post.people(ADA).await?;
        Ok(post)
    }

    /// The workers that a test of delivery alone does not need.
    pub fn others() -> Vec<&'static str> {
        vec!["start-intake", "process-runner", "agent-runner", "completion-dispatcher"]
    }

    /// The key of the signed webhooks.
    pub fn key(&self) -> &'static str {
        KEY
    }

    /// Applies the documents with these people, in the form of a YAML list without its brackets, and waits until workers know.
    pub async fn people(&self, people: &str) -> Result<()> {
        self.apply(&[workspace(people), self.documents.clone()].concat()).await
    }

    /// Applies the documents with others behind them.
    pub async fn more(&self, documents: &str) -> Result<()> {
        self.apply(&[&workspace(ADA), self.documents.as_str(), documents].concat()).await
    }

    async fn apply(&self, documents: &str) -> Result<()> {
        let dir = tempfile::tempdir_in(self.secrets.path())?;
        std::fs::write(dir.path().join("all.yaml"), documents)?;
        let place = dir.path().to_path_buf();
        let bundle = runfleet_cli::apply::read(&[place])?;
        let namespace = &self.fleet.namespace;
        let management = Management::new(namespace.management())?;
        let admin = TopologyAdmin::new(namespace.amqp.clone(), management, Topology::standard())?;
        runfleet_cli::apply::store_bundle(&self.fleet.store, &admin, &bundle).await?;
        // No condition that a test could see says that a worker knows: more than twice the time after which it looks.
        tokio::time::sleep(3 * CATALOG_EVERY).await;
        Ok(())
    }

    /// A run of an agent that may write to a person and has not ended.
    pub async fn run(&self, agent: &str, person: &str) -> Result<RunId> {
        self.run_with(agent, person, Conversation::Latest, None).await
    }

    /// The same with a conversation and its title.
    pub async fn run_with(
        &self,
        agent: &str,
        person: &str,
        conversation: Conversation,
        title: Option<&str>,
    ) -> Result<RunId> {
        let (workspace, project) = project();
        let (agent, person): (Name, Name) = (agent.parse()?, person.parse()?);
        let input = AgentInput {
            instruction: "Write.".to_owned(),
            variables: None,
            records: Vec::new(),
            result_schema: None,
            run_as: RunAs::Agent,
            approval_policy: ApprovalPolicy::Deny,
            timeout_seconds: 1_800,
            deliver_to: Some(DeliverTo {
                personnel_id: person.to_string(),
                conversation: Some(conversation),
                title: title.map(str::to_owned),
            }),
        };
        let input = serde_json::to_string(&input)?;
        let id = Ulid::generate();
        let run_id = RunId::new(RunKind::Agent, Shard::of_workspace(workspace.as_str()), id);
        let (message_id, execution) = (format!("m-{id}").parse()?, id.to_string().parse()?);
        let start = StartRun {
            run_id,
            workspace: &workspace,
            project: &project,
            lane: Lane::Interactive,
            message_id: &message_id,
            key: None,
            identity: "system",
            target: &agent,
            target_version: 1,
            execution: &execution,
            calls_budget: None,
            calls_limit: None,
            batch: false,
            day_limit: 1_000_000,
            verdict: Verdict::Accept,
            user: None,
            recipient: Some(&person),
            hops: 9,
            depth: 1,
            chain: 0,
            instance_name: None,
            input: Some(&input),
            outcome: None,
            deadline_ms: Some(now_ms() + 1_800_000),
            traceparent: None,
        };
        match self.fleet.store.start_run(&start).await? {
            Started::Created { run } => Ok(run),
            other => bail!("no run was made: {other:?}"),
        }
    }

    /// Sends the message of one call, as agent-runner does; `within` is how long the run waits for its result.
    pub async fn send(&self, run: RunId, call: &str, text: &str, within: Duration) -> Result<()> {
        let deliver = DeliverMessage {
            run_id: run,
            call_id: call.to_owned(),
            message: text.to_owned(),
            note: Some(format!("note of {call}")),
            deadline: now_ms() + u64::try_from(within.as_millis())?,
        };
        let effect = effects::deliver(&deliver, Lane::Interactive, None)?;
        effects::publish(&self.fleet.broker.publisher(), effect).await?;
        Ok(())
    }

    /// Waits until the run of a call was told its result.
    pub async fn told(&self, run: RunId, call: &str) -> Result<()> {
        let id = format!("tool:{call}").parse()?;
        wait_until("the run is told what became of its message", BOUND, || async {
            Ok(self.fleet.store.knows_event(run, &id).await?.then_some(()))
        })
        .await
    }

    /// What became of the messages of a run, as its record says it.
    pub async fn delivery(&self, run: RunId) -> Result<Option<Delivery>> {
        let record = self.fleet.store.load_run(run).await?.context("the run is gone")?;
        Ok(record.delivery)
    }

    /// Sends a message and waits for its end; gives the word of what became of it.
    pub async fn sent(&self, run: RunId, call: &str, text: &str) -> Result<String> {
        self.send(run, call, text, Duration::from_mins(5)).await?;
        self.told(run, call).await?;
        self.word(run).await
    }

    /// What became of the messages of a run in one word: `SENT`, or status and code.
    pub async fn word(&self, run: RunId) -> Result<String> {
        let delivery = self.delivery(run).await?.context("nothing was decided")?;
        let status = delivery.status.as_str().to_owned();
        Ok(delivery.error_code.map_or(status.clone(), |code| format!("{status}:{code}")))
    }

    /// The conversation that a message of a run is in, as the agent sees it.
    pub async fn conversation(&self, run: RunId) -> Result<ConversationPage> {
        let delivery = self.delivery(run).await?.context("nothing was decided")?;
        let conversation = delivery.conversation.context("nothing was sent")?;
        let (workspace, _) = project();
        let read = ReadConversation {
            conversation,
            workspace: &workspace,
            person: None,
            before: None,
            limit: 100,
            seen: false,
        };
        let page = self.fleet.store.read_conversation(&read).await?;
        page.context("the conversation is gone")
    }

    /// The texts of that conversation.
    pub async fn texts(&self, run: RunId) -> Result<Vec<String>> {
        let page = self.conversation(run).await?;
        Ok(page.messages.into_iter().map(|ChatMessage { text, .. }| text).collect())
    }

    /// The texts of all conversations of a person, without order.
    pub async fn said_to(&self, person: &str) -> Result<Vec<String>> {
        let (workspace, person) = (project().0, person.parse()?);
        let list = ListConversations {
            workspace: &workspace,
            person: &person,
            before_ms: None,
            limit: 100,
        };
        let mut texts = Vec::new();
        for (conversation, _) in self.fleet.store.list_conversations(&list).await?.conversations {
            let read = ReadConversation {
                conversation: conversation.id,
                workspace: &workspace,
                person: None,
                before: None,
                limit: 100,
                seen: false,
            };
            let page = self.fleet.store.read_conversation(&read).await?;
            let page = page.context("the conversation is gone")?;
            texts.extend(page.messages.into_iter().map(|ChatMessage { text, .. }| text));
        }
        Ok(texts)
    }

    /// Whether a person is not to be disturbed: for an hour before and two hours after this moment.
    pub async fn quiet(&self, person: &str, quiet: bool) -> Result<()> {
        let (workspace, person) = (project().0, person.parse()?);
        let at = |hours: i64| Timestamp::now() + SignedDuration::from_hours(hours);
        let time = |hours| at(hours).strftime("%H:%M").to_string();
        let hours = QuietHours { from: time(-1), to: time(2), time_zone: "UTC".to_owned() };
        let change = if quiet { ChangeQuietHours::Set(&hours) } else { ChangeQuietHours::Clear };
        let store = &self.fleet.store;
        store.change_chat_settings(&workspace, &person, Some(false), change).await?;
        Ok(())
    }

    /// Where the secrets of the workers are.
    pub fn secrets(&self) -> &Path {
        self.secrets.path()
    }
}
