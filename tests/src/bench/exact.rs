//! Ten messages to each of many people, more than a cap of a day allows, sent by two workers through a webhook, every third of them
//! twice: what the receiver gets is counted, and anything but the exact number is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use runfleet_domain::RunId;
use runfleet_runtime::clock::now_ms;
use runfleet_testkit::Servers;

use super::count;
use super::messages::{Messages, person};

/// Messages that an agent wants to send each person.
const EACH: usize = 10;

/// Messages that a person may get in a day.
const PER_DAY: usize = 8;

/// Most people.
const PEOPLE_MAX: usize = 1_000;

/// Runs that are made, or looked at, at the same time.
const AT_ONCE: usize = 16;

/// Longest time of all messages.
const BOUND: Duration = Duration::from_mins(2);

/// The workers.
const WORKERS: [&str; 2] = ["delivery", "delivery.2"];

/// What has come, which is exactly what may come.
pub(crate) struct Exact {
    /// People.
    pub(crate) people: usize,
    /// Messages that agents wanted to send.
    pub(crate) asked: usize,
    /// Messages that the receiver got, each once.
    pub(crate) came: usize,
    /// Messages that a cap has held back.
    pub(crate) refused: usize,
    /// From the first message to the last result.
    pub(crate) wall: Duration,
}

/// Sends `most` messages, 10,000 at most, `in_flight` at a time, and counts what comes of them.
pub(crate) async fn exact(servers: Servers, most: usize, in_flight: usize) -> Result<Exact> {
    let people = most.div_ceil(EACH).min(PEOPLE_MAX);
    let per_day = PER_DAY.to_string();
    let settings = [
        ("RUNFLEET_CHAT_PER_RUN", "100"),
        ("RUNFLEET_CHAT_PER_DAY", per_day.as_str()),
        ("RUNFLEET_CHAT_BURST", "1000"),
        // No attempt may be taken for dead on a machine that is busy.
        ("RUNFLEET_CHAT_LEASE_MS", "60000"),
    ];
    let mut messages = Messages::start_with(servers, &settings, people).await?;
    messages.post.fleet.spawn(WORKERS[1], None)?;
    messages.post.fleet.ready(WORKERS[1]).await?;
    let messages = messages;
    let today = day();
    let runs = stream::iter(0..people)
        .map(async |number| messages.post.run("hook", &person(number)).await)
        .buffered(AT_ONCE);
    let runs: Vec<RunId> = runs.try_collect().await.context("making runs")?;

    let began = Instant::now();
    let calls = runs.iter().flat_map(|run| (0..EACH).map(move |call| (*run, call)));
    let all = stream::iter(calls.map(|(run, call)| messages.asked(run, call)))
        .buffer_unordered(in_flight)
        .try_for_each(async |()| Ok(()));
    tokio::time::timeout(BOUND, all).await.with_context(|| format!("not sent in {BOUND:?}"))??;
    let wall = began.elapsed();
    ensure!(day() == today, "a new UTC day has begun, with new caps: measure once more");
    let (came, refused) = messages.check(&runs).await?;
    messages.stop().await?;
    Ok(Exact { people, asked: people * EACH, came, refused, wall })
}

/// Counts what has come, by person and id of the message; an error unless each of `people` has got exactly what the cap allows, and
/// each id has come once.
fn judge(came: impl Iterator<Item = (String, String)>, people: usize) -> Result<usize> {
    let (mut all, mut ids, mut each) = (0, BTreeSet::new(), BTreeMap::<String, usize>::new());
    for (person, id) in came {
        all += 1;
        ids.insert(id);
        *each.entry(person).or_default() += 1;
    }
    ensure!(ids.len() == all, "{} messages came more than once", all - ids.len());
    if let Some((person, count)) = each.iter().find(|(_, count)| **count != PER_DAY) {
        bail!("{person} got {count} messages and not {PER_DAY}");
    }
    ensure!(each.len() == people, "{} people got messages and not {people}", each.len());
    Ok(all)
}

/// The UTC day by number.
fn day() -> u64 {
    now_ms() / 86_400_000
}

impl Messages {
    /// Sends a message, every third of them once more when its run has been told.
    async fn asked(&self, run: RunId, call: usize) -> Result<()> {
        for _ in 0..=usize::from(call.is_multiple_of(3)) {
            self.one(run, call, &format!("message {call}")).await?;
        }
        Ok(())
    }

    /// How many messages came and how many were held back; an error if that is not exactly what it has to be, for each person.
    async fn check(&self, runs: &[RunId]) -> Result<(usize, usize)> {
        let requests = self.web.requests("/hook").into_iter();
        let came = requests.map(|request| {
            let person = request.body["person"]["id"].as_str().unwrap_or_default().to_owned();
            (person, request.key)
        });
        let came = judge(came, runs.len())?;
        let posted = stream::iter(runs)
            .map(async |run| anyhow::Ok(self.post.conversation(*run).await?.messages.len()))
            .buffer_unordered(AT_ONCE);
        let posted: Vec<usize> = posted.try_collect().await?;
        let full = posted.iter().all(|messages| *messages == PER_DAY);
        ensure!(full, "a conversation does not hold what was sent");
        let mut refused = 0.0;
        for worker in WORKERS {
            refused += self.decided(worker, "webhook", "recipient_rate_limited").await?;
        }
        let held = runs.len() * (EACH - PER_DAY);
        ensure!((refused - count(held)).abs() < 0.5, "{refused} of {held} messages were held back");
        Ok((came, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_too_many_too_few_or_twice_is_noticed() {
        let exact: Vec<(String, String)> =
            (0..3 * PER_DAY).map(|number| (person(number % 3), format!("run.{number}"))).collect();
        let judged = |came: &[(String, String)]| judge(came.iter().cloned(), 3);
        assert_eq!(judged(&exact).unwrap(), 3 * PER_DAY);
        assert!(judged(&exact[1..]).is_err());
        let more = [exact.clone(), vec![(person(0), "run.more".to_owned())]].concat();
        assert!(judged(&more).is_err());
        let mut twice = exact.clone();
        twice[0].1.clone_from(&exact[3].1);
        assert!(judged(&twice).is_err());
        let nobody: Vec<_> = exact.iter().filter(|(who, _)| *who != person(2)).cloned().collect();
        assert!(judged(&nobody).is_err());
    }
}
