//! One message: who it is for, whether it may go, one attempt to send it, and what the run is told.
//!
//! In this order: reserve, send, mark, tell the run, wake it, acknowledge. Whoever comes again after a crash finds in the ledger how
//! far the one before has got. A message that must not be sent yet waits in the ledger, which its run is told at once; its alarm
//! brings it here again, whether the run has ended or not.

mod tell;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use runfleet_broker::{Classify, Failure, HandlerResult, Inbound, Publisher, Verdict};
use runfleet_catalog::{QuietRules, Snapshot};
use runfleet_contracts::DeliverMessage;
use runfleet_contracts::agents::{AgentInput, Conversation};
use runfleet_domain::limits::CHAT_WAIT_MAX;
use runfleet_domain::{Name, RunKind};
use runfleet_http::{AllowList, Client, Config as HttpConfig};
use runfleet_runtime::clock::now_ms;
use runfleet_store::{
    ChatSettings, MarkHow, Marked, MessageCaps, Reserve, Reserved, RunRecord, Sending, Store,
    WaitingMessage,
};
use runfleet_worker::inbox::Only;
use runfleet_worker::keys::Places;
use runfleet_worker::{CatalogCache, Fleet};

use crate::metrics::Metrics;
use crate::outcome::{self, FAILED, Next, Outcome, UNAVAILABLE};
use crate::recipients::{Recipients, RecipientsConfig};
use crate::rules::{self, Known, May};
use crate::sinks::{Held, Letter, Sinks};

/// When a message is looked at again whose sink is busy with others.
const CROWDED_PAUSE: Duration = Duration::from_secs(5);

/// What the handler may touch.
pub(crate) struct Deps {
    store: Store,
    publisher: Publisher,
    catalog: CatalogCache,
    sinks: Sinks,
    recipients: Recipients,
    caps: MessageCaps,
    lease: Duration,
    metrics: Metrics,
}

/// What sends, and who knows recipients: each with a list of its own of what may be called.
pub(crate) fn sinks(
    fleet: &Fleet,
    allow: AllowList,
    places: Places,
    recipients: RecipientsConfig,
) -> anyhow::Result<(Sinks, Recipients)> {
    let http = HttpConfig { allow: allow.clone(), ..HttpConfig::default() };
    let client = Client::new(http, &fleet.process.registry).context("preparing the sinks")?;
    let recipients = Recipients::new(recipients, &client)?;
    Ok((Sinks::new(client, allow, places), recipients))
}

impl Deps {
    pub(crate) fn new(
        fleet: &Fleet,
        sinks: Sinks,
        recipients: Recipients,
        caps: MessageCaps,
        lease: Duration,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store: fleet.store.clone(),
            publisher: fleet.publisher.clone(),
            catalog: fleet.catalog.clone(),
            sinks,
            recipients,
            caps,
            lease,
            metrics: Metrics::new(&fleet.process.registry)?,
        })
    }
}

/// To whom a message goes.
struct To {
    person: Name,
    latest: bool,
    title: Option<String>,
}

/// A message on its way to a person.
struct Errand<'a> {
    deps: &'a Deps,
    call: &'a DeliverMessage,
    record: &'a RunRecord,
    to: To,
    /// What the ledger knows of it, when its run does not wait for it (any more) because it has had to wait itself.
    waited: Option<WaitingMessage>,
    attempt: u32,
    /// When the agent called, in Unix milliseconds; 0 when nobody knows.
    called_ms: u64,
}

pub(crate) async fn handle(
    deps: Arc<Deps>,
    message: Inbound<Only<DeliverMessage>>,
) -> HandlerResult {
    let (body, message) = message.split();
    let call = body.0;
    if call.run_id.kind() != RunKind::Agent || !call.is_within_bounds() {
        return Ok(Verdict::Park(
            "malformed",
            "not a message that an agent run can send".to_owned(),
        ));
    }
    let record = deps.store.load_run(call.run_id).await.transient("loading the run")?;
    let Some(record) = record else { return Ok(Verdict::Drop("no_such_run")) };
    let ended = record.state.is_final();
    // What has had to wait outlives its run, and the time for which that was to wait for it.
    let waited = if ended || now_ms() >= call.deadline {
        let waited = deps.store.waiting_message(call.run_id, &call.call_id).await;
        waited.transient("looking for a message that waits")?
    } else {
        None
    };
    if ended && waited.is_none() {
        // What was left of the message was settled with the end of the run.
        return Ok(Verdict::Drop("run_ended"));
    }
    let Some(to) = waited.as_ref().map(To::of_waiting).or_else(|| To::of_run(&record)) else {
        return Ok(Verdict::Park("no_recipient", "the run may not write to anybody".to_owned()));
    };
    let (attempt, called_ms) = (message.attempt, message.timestamp_ms);
    let (deps, call, record) = (&*deps, &call, &record);
    Errand { deps, call, record, to, waited, attempt, called_ms }.run().await
}

impl To {
    fn of_run(record: &RunRecord) -> Option<Self> {
        let input: AgentInput = serde_json::from_str(record.input.as_deref()?).ok()?;
        let to = input.deliver_to?;
        Some(Self {
            person: to.personnel_id.parse().ok()?,
            latest: to.conversation == Some(Conversation::Latest),
            title: to.title,
        })
    }

    /// Into which conversation it goes was decided when it began to wait.
    fn of_waiting(waited: &WaitingMessage) -> Self {
        Self { person: waited.person.clone(), latest: false, title: waited.title.clone() }
    }
}

impl Errand<'_> {
    async fn run(&self) -> HandlerResult {
        let workspace = &self.record.workspace;
        let snapshot = self.deps.catalog.get(workspace).await.transient("loading the catalog")?;
        let snapshot = snapshot.as_deref();
        let (may, settings) = self.may(snapshot).await?;
        let found = snapshot.and_then(|snapshot| snapshot.sink_of(&self.record.target));
        let may = match (may, &found) {
            // Its agent names a sink that is not there: somebody has to declare it.
            (May::Go, None) => May::Not(FAILED),
            (may, _) => may,
        };
        let held = found.map(|(name, sink)| (self.deps.sinks.of(workspace, &name, &sink), name));
        let permit = match &held {
            Some((held, _)) if may == May::Go => match held.permit().await {
                Some(permit) => Some(permit),
                None => return Ok(Verdict::Snooze(CROWDED_PAUSE)),
            },
            _ => None,
        };
        let verdict = self.reserve(snapshot, held, may, &settings).await;
        drop(permit);
        verdict
    }

    /// Until when the message may be sent, in Unix milliseconds.
    fn deadline_ms(&self) -> u64 {
        self.waited.as_ref().map_or(self.call.deadline, |waited| waited.until_ms)
    }

    /// Until when it may have to wait, in Unix milliseconds.
    fn wait_until_ms(&self, now_ms: u64) -> u64 {
        let since = self.waited.as_ref().map_or(now_ms, |waited| waited.since_ms);
        since.saturating_add(u64::try_from(CHAT_WAIT_MAX.as_millis()).unwrap_or(u64::MAX))
    }

    /// Whether the message may go now, by what the person has said. Whoever knows the person is not asked in vain.
    async fn may(&self, snapshot: Option<&Snapshot>) -> Result<(May, ChatSettings), Failure> {
        let (now, deadline) = (now_ms(), self.deadline_ms());
        if now >= deadline {
            return Ok((May::Not(UNAVAILABLE), ChatSettings::default()));
        }
        let (workspace, agent) = (&self.record.workspace, &self.record.target);
        let person = &self.to.person;
        let facts = self.deps.recipients.facts(snapshot, workspace, person, agent).await?;
        let settings = self.deps.store.chat_settings(workspace, person).await;
        let settings = settings.transient("reading what the person has said")?;
        let rules = snapshot.and_then(|snapshot| snapshot.agent(agent));
        let rules = rules.map_or_else(QuietRules::default, |agent| agent.spec.quiet_hours.clone());
        let known = Known { facts, settings: &settings, rules: &rules };
        let deadline = outcome::until(deadline, now);
        let may = rules::may(&known, now, deadline, self.wait_until_ms(now));
        Ok((may, settings))
    }

    async fn reserve(
        &self,
        snapshot: Option<&Snapshot>,
        held: Option<(Arc<Held>, Name)>,
        may: May,
        settings: &ChatSettings,
    ) -> HandlerResult {
        let kind = held.as_ref().map_or("builtin", |(held, _)| held.kind());
        let wish = self.wish(held.as_ref().map(|(held, _)| &**held), may);
        let reserve = Reserve { quiet_hours: settings.quiet_hours.as_ref(), ..wish };
        runfleet_faults::point("delivery.before_reserve");
        let began = Instant::now();
        let reserved = self.deps.store.reserve_message(&reserve).await;
        match reserved.transient("reserving a message")? {
            Reserved::Reserved(sending) => {
                runfleet_faults::point("delivery.reserved");
                let Some((held, name)) = held else {
                    return self.mark(&sending, MarkHow::NotSent(FAILED), kind).await;
                };
                self.attempt(snapshot, &held, &name, &sending, began).await
            }
            Reserved::Waiting { .. } => {
                runfleet_faults::point("delivery.put_off");
                self.put_off(kind, may).await
            }
            Reserved::Known { delivery, first } => {
                if first {
                    self.deps.metrics.decided(kind, &delivery, None);
                }
                self.tell(&delivery).await
            }
            Reserved::Busy { lease_until_ms } => {
                let wait = Duration::from_millis(lease_until_ms.saturating_sub(now_ms()));
                Ok(Verdict::Snooze(wait))
            }
            Reserved::RunEnded => Ok(Verdict::Drop("run_ended")),
            Reserved::Missing => Ok(Verdict::Drop("no_such_run")),
            Reserved::Mismatch => {
                let what = "the run may not write to this person".to_owned();
                Ok(Verdict::Park("no_recipient", what))
            }
        }
    }

    fn wish(&self, held: Option<&Held>, may: May) -> Reserve<'_> {
        let (call, record) = (self.call, self.record);
        let (refused, not_before_ms) = match may {
            May::Go => (None, None),
            May::Wait(until) => (None, Some(until)),
            May::Not(refused) => (Some(refused), None),
        };
        Reserve {
            run_id: call.run_id,
            call_id: &call.call_id,
            workspace: &record.workspace,
            agent: &record.target,
            person: &self.to.person,
            latest: self.to.latest,
            title: self.to.title.as_deref(),
            text: &call.message,
            note: call.note.as_deref(),
            caps: self.deps.caps,
            sink_dedups: held.is_some_and(Held::deduplicates),
            lease: held.map_or(self.deps.lease, |held| held.lease(self.deps.lease)),
            refused,
            not_before_ms,
            quiet_hours: None,
        }
    }

    /// Sends the message, if there is still time within the lease.
    async fn attempt(
        &self,
        snapshot: Option<&Snapshot>,
        held: &Held,
        name: &Name,
        sending: &Sending,
        began: Instant,
    ) -> HandlerResult {
        if held.is_builtin() {
            return self.mark(sending, MarkHow::Post, held.kind()).await;
        }
        // Whoever was held up for so long may not be the only one any more.
        if began.elapsed() + held.within() > held.lease(self.deps.lease) {
            self.again(sending, MarkHow::Later).await?;
            return Ok(Verdict::Snooze(CROWDED_PAUSE));
        }
        let record = self.record;
        let id = self.call.id_of_text();
        let agent = snapshot.and_then(|snapshot| snapshot.agent(&record.target));
        let agent_name = agent.and_then(|agent| agent.display_name.as_deref());
        let letter = Letter {
            id: &id,
            workspace: &record.workspace,
            project: &record.project,
            agent: &record.target,
            agent_name: agent_name.unwrap_or(record.target.as_str()),
            person: &self.to.person,
            reach: snapshot.and_then(|snapshot| snapshot.reach_of(&self.to.person, name)),
            conversation: sending.conversation,
            new_conversation: sending.new_conversation,
            title: self.to.title.as_deref(),
            text: &self.call.message,
            now_ms: now_ms(),
        };
        let asked = Instant::now();
        let outcome = self.deps.sinks.send(held, &letter).await;
        runfleet_faults::point("delivery.sent");
        self.deps.metrics.attempted(held.kind(), outcome, asked.elapsed());
        self.settle(held, sending, outcome).await
    }

    async fn settle(&self, held: &Held, sending: &Sending, outcome: Outcome) -> HandlerResult {
        let now = now_ms();
        let left_ms = outcome::until(self.deadline_ms(), now).saturating_sub(now);
        match outcome::next(outcome, held.deduplicates(), self.attempt, left_ms) {
            Next::Settle(how) => self.mark(sending, how, held.kind()).await,
            Next::Again { how, wait } => {
                let (run, kind) = (self.call.run_id, held.kind());
                tracing::info!(%run, sink = kind, result = outcome.as_str(), "a message is tried again");
                self.again(sending, how).await?;
                match outcome {
                    // It has said for how long it wants to be left alone.
                    Outcome::Busy(Some(_)) | Outcome::Unsure(Some(_)) => Ok(Verdict::Snooze(wait)),
                    _ => Err(Failure::transient("sending a message")),
                }
            }
        }
    }

    /// Gives a reservation back for another attempt. Whoever has taken it meanwhile decides.
    async fn again(&self, sending: &Sending, how: MarkHow<'static>) -> Result<(), Failure> {
        self.write(sending, how).await.map(|_| ())
    }

    async fn write(&self, sending: &Sending, how: MarkHow<'static>) -> Result<Marked, Failure> {
        let (run, call, period) = (self.call.run_id, &self.call.call_id, self.deps.caps.period);
        let marked = self.deps.store.mark_message(run, call, sending.fence, how, period).await;
        marked.transient("recording what became of a message")
    }

    async fn mark(&self, sending: &Sending, how: MarkHow<'static>, kind: &str) -> HandlerResult {
        let marked = self.write(sending, how).await?;
        runfleet_faults::point("delivery.marked");
        match marked {
            Marked::Known { delivery, first, .. } => {
                if first {
                    let since = now_ms().checked_sub(self.called_ms);
                    let since = since.filter(|_| self.called_ms > 0).map(Duration::from_millis);
                    self.deps.metrics.decided(kind, &delivery, since);
                }
                self.tell(&delivery).await
            }
            // Somebody else has it, or had it: what became of it is looked at again.
            Marked::Later | Marked::Lost => Ok(Verdict::Snooze(CROWDED_PAUSE)),
            Marked::Missing => Ok(Verdict::Drop("no_such_message")),
        }
    }
}
