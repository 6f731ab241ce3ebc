//! One call to Redis from the first attempt to the answer: which failures are tried again, and until when.
//!
//! Trying again is always safe: scripts recognise a call that they have already carried out.

use std::time::{Duration, Instant};

use rand::Rng;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::time::{sleep, timeout_at};

use crate::error::StoreError;
use crate::link::{Loan, Slots};
use crate::metrics::{Metrics, Operation};
use crate::script::Lua;

const BACKOFF_FIRST: Duration = Duration::from_millis(10);
const BACKOFF_MAX: Duration = Duration::from_millis(400);

/// Room for the name of a command and the number of its keys, in bytes.
const WORDS_BYTES: usize = 16;

/// What is sent.
pub(crate) enum Request<'a> {
    /// A command that only reads, or that may be repeated for another reason.
    Plain(Cmd),
    /// A script.
    Script { lua: &'a Lua, keys: &'a [String], args: &'a [&'a [u8]] },
}

impl Request<'_> {
    fn command(&self, with_source: bool) -> Cmd {
        match self {
            Self::Plain(command) => command.clone(),
            Self::Script { lua, keys, args } => {
                let (word, script) =
                    if with_source { ("EVAL", &lua.source) } else { ("EVALSHA", &lua.sha1) };
                let bytes = keys.iter().map(String::len).chain(args.iter().map(|arg| arg.len()));
                let bytes = bytes.sum::<usize>() + script.len() + WORDS_BYTES;
                let mut command = Cmd::with_capacity(keys.len() + args.len() + 3, bytes);
                command.arg(word).arg(script).arg(keys.len()).arg(*keys).arg(*args);
                command
            }
        }
    }
}

/// What to do about a failure.
enum Remedy {
    /// Send the same again, now with the text of the script.
    SendSource,
    /// Wait a little and try again; over a new connection if that is said.
    Again { reason: &'static str, reconnect: bool, maybe_written: bool },
    /// The login is refused. Repeating at once does not help, a corrected password does.
    Denied,
    /// Repeating does not help.
    GiveUp,
}

fn remedy_of_server(kind: ServerErrorKind) -> Remedy {
    let refused = |reason, reconnect| Remedy::Again { reason, reconnect, maybe_written: false };
    match kind {
        ServerErrorKind::NoScript => Remedy::SendSource,
        ServerErrorKind::BusyLoading => refused("loading", true),
        // The primary has become a replica: a new connection finds the new primary.
        ServerErrorKind::ReadOnly => refused("readonly", true),
        ServerErrorKind::MasterDown | ServerErrorKind::ClusterDown => refused("down", true),
        ServerErrorKind::TryAgain | ServerErrorKind::Moved | ServerErrorKind::Ask => {
            refused("tryagain", false)
        }
        _ => Remedy::GiveUp,
    }
}

fn remedy(error: &RedisError) -> Remedy {
    let again =
        |reason, reconnect, maybe_written| Remedy::Again { reason, reconnect, maybe_written };
    match error.kind() {
        ErrorKind::Server(ServerErrorKind::ResponseError)
            // A slot is on its way to another node; the scripts read before they write, so nothing has happened.
            if error.detail().is_some_and(|text| text.contains("non local key")) =>
        {
            again("tryagain", false, false)
        }
        ErrorKind::Server(kind) => remedy_of_server(kind),
        ErrorKind::Extension => match error.code() {
            Some("OOM") => again("memory", false, false),
            Some("MISCONF") => again("disk", false, false),
            Some("BUSY") => again("busy", false, false),
            Some("NOREPLICAS") => again("down", false, false),
            Some("NOAUTH" | "WRONGPASS") => Remedy::Denied,
            Some("UNBLOCKED") => again("readonly", true, true),
            _ => Remedy::GiveUp,
        },
        ErrorKind::AuthenticationFailed => Remedy::Denied,
        ErrorKind::Io if error.is_timeout() => again("timeout", false, true),
        ErrorKind::Io | ErrorKind::Parse => again("io", true, true),
        ErrorKind::ClusterConnectionNotFound
        | ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::NoValidReplicasFoundBySentinel => again("down", true, false),
        _ => Remedy::GiveUp,
    }
}

/// The last failure of a call that is being tried again.
struct Trouble {
    reason: &'static str,
    cause: Option<RedisError>,
}

/// Sends requests over the shared connections.
pub(crate) struct Caller {
    pub(crate) slots: Slots,
    pub(crate) metrics: Metrics,
    pub(crate) deadline: Duration,
}

impl Caller {
    /// Sends `request` until it is answered or the deadline has passed.
    pub(crate) async fn call(
        &self,
        operation: Operation,
        request: Request<'_>,
    ) -> Result<Value, StoreError> {
        let begun = Instant::now();
        let result = self.call_until(operation, request, begun + self.deadline).await;
        self.metrics.done(operation, begun.elapsed());
        if let Err(error) = &result {
            self.metrics.failed(operation, error);
        }
        result
    }

    async fn call_until(
        &self,
        operation: Operation,
        request: Request<'_>,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        let mut progress = Progress::default();
        let attempts = self.attempts(operation, &request, &mut progress);
        if let Ok(result) = timeout_at(deadline.into(), attempts).await {
            return result;
        }
        let Trouble { reason, cause } =
            progress.trouble.unwrap_or(Trouble { reason: "timeout", cause: None });
        Err(StoreError::Unavailable {
            operation: operation.as_str(),
            reason,
            maybe_written: progress.maybe_written || progress.in_flight,
            cause: cause.map(Into::into),
        })
    }

    /// Tries for ever; whoever calls it sets the bound.
    async fn attempts(
        &self,
        operation: Operation,
        request: &Request<'_>,
        progress: &mut Progress,
    ) -> Result<Value, StoreError> {
        let mut command = request.command(false);
        let mut backoff = BACKOFF_FIRST;
        loop {
            let mut loan = match self.slots.get().await {
                Ok(loan) => loan,
                Err(error) if matches!(remedy(&error), Remedy::Denied) => {
                    return Err(denied(operation, progress.maybe_written, error));
                }
                Err(error) => {
                    progress.trouble = Some(Trouble { reason: "connect", cause: Some(error) });
                    pause(&mut backoff).await;
                    continue;
                }
            };
            self.metrics.round_trip(operation);
            progress.in_flight = true;
            let answer = loan.link.send(&command).await;
            progress.in_flight = false;
            let error = match answer {
                Ok(value) => {
                    self.slots.answered(&loan);
                    return Ok(value);
                }
                Err(error) => error,
            };
            match remedy(&error) {
                // Redis has lost its scripts, as it does with every restart.
                Remedy::SendSource => command = request.command(true),
                Remedy::Again { reason, reconnect, maybe_written } => {
                    self.report(&loan, &error, reconnect);
                    progress.maybe_written |= maybe_written;
                    progress.trouble = Some(Trouble { reason, cause: Some(error) });
                    pause(&mut backoff).await;
                }
                Remedy::Denied => {
                    self.slots.discard(&loan);
                    return Err(denied(operation, progress.maybe_written, error));
                }
                Remedy::GiveUp => {
                    let operation = operation.as_str();
                    return Err(StoreError::Refused { operation, cause: error.into() });
                }
            }
        }
    }

    fn report(&self, loan: &Loan, error: &RedisError, reconnect: bool) {
        if reconnect {
            self.slots.discard(loan);
        } else if error.is_timeout() {
            self.slots.timed_out(loan);
        }
    }
}

/// What is known about a call that has no answer yet.
#[derive(Default)]
struct Progress {
    trouble: Option<Trouble>,
    maybe_written: bool,
    in_flight: bool,
}

fn denied(operation: Operation, maybe_written: bool, error: RedisError) -> StoreError {
    StoreError::Unavailable {
        operation: operation.as_str(),
        reason: "auth",
        maybe_written,
        cause: Some(error.into()),
    }
}

/// Waits half to all of `backoff`, so that callers that failed together come back apart, and doubles it.
async fn pause(backoff: &mut Duration) {
    let share = rand::rng().random_range(0.5..1.0);
    sleep(backoff.mul_f64(share)).await;
    *backoff = (*backoff * 2).min(BACKOFF_MAX);
}
