//! What a fleet has used so far: round trips and messages by its own metrics, memory by those and by Redis, processor time by
//! the kernel. Only counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use runfleet_domain::RunId;
use secrecy::ExposeSecret;

use super::fleet::Bench;

/// Ledger operations that go on whether anything runs or not.
const IDLE: [&str; 4] = ["ping", "due_alarms", "catalog_changes", "load_catalog"];

const WORKERS: [&str; 3] = ["start-intake", "process-runner", "completion-dispatcher"];

/// Longest answer of Redis that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Round trips to Redis and confirmed messages, by what they were for, and processor time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// By operation of the ledger.
    pub(crate) trips: BTreeMap<String, f64>,
    /// By where they went. Answers to clients are not counted by the workers.
    pub(crate) messages: BTreeMap<String, f64>,
    /// Microseconds by worker. Unlike times on the clock, they change little when other programs use the machine.
    pub(crate) processor: BTreeMap<String, f64>,
}

impl Counts {
    /// What has come since `before`, for each of `runs`.
    pub(crate) fn since(&self, before: &Self, runs: f64) -> Self {
        let part = |now: &BTreeMap<String, f64>, then: &BTreeMap<String, f64>| {
            let each = now.iter().map(|(name, value)| {
                (name.clone(), (value - then.get(name).copied().unwrap_or(0.0)) / runs)
            });
            each.filter(|(_, value)| *value > 0.0).collect()
        };
        Self {
            trips: part(&self.trips, &before.trips),
            messages: part(&self.messages, &before.messages),
            processor: part(&self.processor, &before.processor),
        }
    }

    /// All round trips.
    pub(crate) fn all_trips(&self) -> f64 {
        self.trips.values().sum()
    }

    /// All messages.
    pub(crate) fn all_messages(&self) -> f64 {
        self.messages.values().sum()
    }
}

/// Memory at one time, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// `used_memory` of Redis.
    pub(crate) redis: f64,
    /// Resident memory of process-runner.
    pub(crate) runner: f64,
}

impl Bench {
    /// What was done so far for runs of Processes.
    pub(crate) async fn counts(&self) -> Result<Counts> {
        self.counts_of(&WORKERS).await
    }

    /// What these workers have done so far.
    pub(crate) async fn counts_of(&self, workers: &[&str]) -> Result<Counts> {
        let mut counts = Counts::default();
        for &worker in workers {
            counts.processor.insert(worker.to_owned(), processor_micros(worker)?);
            for line in self.fleet.metrics(worker).await?.lines() {
                let Some((series, value)) = line.rsplit_once(' ') else { continue };
                let Ok(value) = value.parse::<f64>() else { continue };
                if let Some(operation) =
                    label(series, "runfleet_store_round_trips_total{", "operation")
                    && !IDLE.contains(&operation)
                {
                    *counts.trips.entry(operation.to_owned()).or_default() += value;
                }
                if let Some(target) = label(series, "runfleet_publisher_messages_total{", "target")
                    && series.contains("\"confirmed\"")
                {
                    *counts.messages.entry(target.to_owned()).or_default() += value;
                }
            }
        }
        Ok(counts)
    }

    /// The memory that is in use now.
    pub(crate) async fn memory(&self) -> Result<Memory> {
        let runner = self.fleet.metric("process-runner", "process_resident_memory_bytes").await?;
        let answer = Redis::connect(self)?.ask("INFO memory")?;
        let info = answer.text()?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        let redis = used.context("Redis does not tell its memory")?.trim().parse()?;
        Ok(Memory { redis, runner })
    }

    /// Memory of the keys that have the id of a run in their names, in bytes, and how many they are.
    pub(crate) fn memory_of(&self, run: RunId) -> Result<(f64, usize)> {
        let mut redis = Redis::connect(self)?;
        let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
        loop {
            let page = redis.ask(&format!("SCAN {cursor} MATCH *{run}* COUNT 10000"))?;
            let Answer::List(page) = page else { bail!("Redis answers SCAN with no list") };
            let [next, Answer::List(found)] = page.as_slice() else { bail!("no page of keys") };
            for key in found {
                keys.push(key.text()?.to_owned());
            }
            next.text()?.clone_into(&mut cursor);
            if cursor == "0" {
                break;
            }
        }
        let mut bytes = 0.0;
        for key in &keys {
            bytes += redis.ask(&format!("MEMORY USAGE {key} SAMPLES 0"))?.text()?.parse::<f64>()?;
        }
        Ok((bytes, keys.len()))
    }
}

/// Microseconds of processor time of everything that a round uses. A fleet and a relay that take turns on one machine can be
/// compared by it also while the machine's speed changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Processor {
    /// The broker.
    pub(crate) rabbitmq: f64,
    /// The ledger.
    pub(crate) redis: f64,
    /// The three workers that a run of a Process needs.
    pub(crate) workers: f64,
    /// This program: callers and the host of the project, or all of the relay.
    pub(crate) own: f64,
}

impl Processor {
    /// What was used so far.
    pub(crate) fn now(servers: &crate::OwnServers) -> Result<Self> {
        let server = |name| {
            let pid = servers.process(name)?.as_raw_nonzero();
            micros(&std::fs::read_to_string(format!("/proc/{pid}/stat"))?)
        };
        let workers: Result<Vec<f64>> = WORKERS.iter().map(|name| processor_micros(name)).collect();
        Ok(Self {
            rabbitmq: server("rabbitmq")?,
            redis: server("redis")?,
            workers: workers?.iter().sum(),
            own: micros(&std::fs::read_to_string("/proc/self/stat")?)?,
        })
    }

    /// What has come since `before`, for each of `runs`.
    pub(crate) fn since(&self, before: &Self, runs: f64) -> Self {
        Self {
            rabbitmq: (self.rabbitmq - before.rabbitmq) / runs,
            redis: (self.redis - before.redis) / runs,
            workers: (self.workers - before.workers) / runs,
            own: (self.own - before.own) / runs,
        }
    }

    /// All of it.
    pub(crate) fn all(&self) -> f64 {
        self.rabbitmq + self.redis + self.workers + self.own
    }
}

/// Processor time by what the kernel says of a process, in microseconds. It counts in hundredths of a second.
fn micros(stat: &str) -> Result<f64> {
    let (_, back) = stat.rsplit_once(')').context("what the kernel says of a process")?;
    let fields: Vec<&str> = back.split_whitespace().collect();
    let [user, system] = [11, 12].map(|index| fields.get(index).copied().unwrap_or("0"));
    Ok((user.parse::<f64>()? + system.parse::<f64>()?) * 10_000.0)
}

/// Processor time of a worker that this process has started.
fn processor_micros(worker: &str) -> Result<f64> {
    let this = std::process::id().to_string();
    let name: String = format!("runfleet-{worker}").chars().take(15).collect();
    for entry in std::fs::read_dir("/proc").context("looking at processes")? {
        // A process may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else { continue };
        let Some((front, back)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = back.split_whitespace().collect();
        if front.ends_with(&format!("({name}")) && fields.get(1) == Some(&this.as_str()) {
            return micros(&stat);
        }
    }
    bail!("{worker} does not run")
}

/// The value of a label in a series whose name begins with `name`.
fn label<'a>(series: &'a str, name: &str, label: &str) -> Option<&'a str> {
    let labels = series.strip_prefix(name)?;
    let (_, value) = labels.split_once(&format!("{label}=\""))?;
    value.split('"').next()
}

/// Questions that the ledger does not ask: a bare connection to the benchmark's own Redis.
struct Redis(BufReader<TcpStream>);

/// What Redis answers; numbers are texts.
enum Answer {
    Text(String),
    List(Vec<Answer>),
}

impl Answer {
    fn text(&self) -> Result<&String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::List(_) => bail!("Redis answers with a list"),
        }
    }
}

impl Redis {
    fn connect(bench: &Bench) -> Result<Self> {
        let url = bench.servers.redis.expose_secret();
        let (password, address) = url
            .strip_prefix("redis://:")
            .and_then(|rest| rest.trim_end_matches('/').split_once('@'))
            .context("an address of Redis has another form")?;
        let stream = TcpStream::connect(address).context("connecting to Redis")?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut redis = Self(BufReader::new(stream));
        redis.ask(&format!("AUTH {password}"))?;
        Ok(redis)
    }

    /// Asks in the form of one line. Words must have no white space in them.
    fn ask(&mut self, line: &str) -> Result<Answer> {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("an empty answer of Redis")?;
        Ok(match kind {
            "+" | ":" => Answer::Text(rest.to_owned()),
            "$" => {
                let size: usize = rest.parse().context("Redis has no such thing")?;
                ensure!(size <= ANSWER_BYTES_MAX, "an answer of Redis is too large");
                let mut text = vec![0; size + 2];
                self.0.read_exact(&mut text)?;
                text.truncate(size);
                Answer::Text(String::from_utf8(text)?)
            }
            "*" => {
                let size: usize = rest.parse().context("Redis has no such list")?;
                ensure!(size <= ANSWER_BYTES_MAX, "an answer of Redis is too large");
                Answer::List((0..size).map(|_| self.answer()).collect::<Result<_>>()?)
            }
            _ => bail!("Redis refuses a question"),
        })
    }
}
