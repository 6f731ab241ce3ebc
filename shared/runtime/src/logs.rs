//! Logs: JSON lines with the time in UTC on standard output, or text for people at a terminal.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::env::Env;

/// Appended to every filter: the AMQP client logs whole returned messages, bodies included.
const ALWAYS: &str = "lapin=error,lapin::returned_messages=off";

const LOG_HELP: &str =
    "Which log lines are written: a level, or directives like `info,runfleet_store=debug`.";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Json,
    Pretty,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Self::Json),
            "pretty" => Ok(Self::Pretty),
            _ => Err("must be `json` or `pretty`"),
        }
    }
}

/// Which lines are written, and how.
pub(crate) struct Settings {
    filter: Filter,
    pub(crate) format: LogFormat,
}

/// A filter that ends with the directives that nobody may leave out.
struct Filter(EnvFilter);

impl FromStr for Filter {
    type Err = tracing_subscriber::filter::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        EnvFilter::builder().parse(format!("{text},{ALWAYS}")).map(Self)
    }
}

impl Settings {
    /// Never fails: a mistake is kept in `env`, and the default is used to report it.
    pub(crate) fn from_env(env: &mut Env) -> Self {
        let filter = env.or("RUNFLEET_LOG", Directives("info".to_owned()), LOG_HELP);
        let format = env.optional(
            "RUNFLEET_LOG_FORMAT",
            "`json` or `pretty`; absent: `pretty` at a terminal and `json` elsewhere.",
        );
        let default =
            if std::io::stdout().is_terminal() { LogFormat::Pretty } else { LogFormat::Json };
        Self {
            filter: filter.map_or_else(|| fallback("info"), |directives| directives.filter("info")),
            format: format.flatten().unwrap_or(default),
        }
    }
}

/// Directives that are known to parse, kept as text because a filter cannot be printed back as it was written.
struct Directives(String);

impl Directives {
    fn filter(&self, default: &str) -> Filter {
        self.0.parse().unwrap_or_else(|_| fallback(default))
    }
}

impl FromStr for Directives {
    type Err = tracing_subscriber::filter::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Filter>().map(|_| Self(text.to_owned()))
    }
}

impl fmt::Display for Directives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn fallback(level: &str) -> Filter {
    Filter(EnvFilter::new(format!("{level},{ALWAYS}")))
}

/// Starts the log lines of a worker. An error when the process already has a subscriber.
pub(crate) fn init(worker: &'static str, settings: Settings) -> Result<(), impl std::error::Error> {
    let layer = match settings.format {
        LogFormat::Json => json_layer(worker, std::io::stdout).boxed(),
        LogFormat::Pretty => tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stdout().is_terminal())
            .log_internal_errors(false)
            .boxed(),
    };
    tracing_subscriber::registry().with(settings.filter.0).with(layer).try_init()
}

/// Starts the log lines of a command line: text on standard error, so that standard output stays the command's. Warnings
/// and errors unless `RUNFLEET_LOG` says otherwise. A second call does nothing.
pub fn init_logs_for_cli() {
    let mut env = Env::from_process();
    let directives = env.or("RUNFLEET_LOG", Directives("warn".to_owned()), LOG_HELP);
    let filter =
        directives.map_or_else(|| fallback("warn"), |directives| directives.filter("warn"));
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .log_internal_errors(false);
    let first = tracing_subscriber::registry().with(filter.0).with(layer).try_init().is_ok();
    if let (true, Err(error)) = (first, env.finish()) {
        tracing::warn!(%error, "log filter refused");
    }
}

fn json_layer<S, W>(worker: &str, writer: W) -> impl Layer<S> + use<S, W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> tracing_subscriber::fmt::MakeWriter<'writer> + Send + Sync + 'static,
{
    let start = format!("{{\"worker\":{worker:?},");
    tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        // A closed standard output must not make the logger write to a closed standard error, which panics.
        .log_internal_errors(false)
        .map_event_format(|format| WithWorker { format, start })
        .with_writer(writer)
}

/// Puts the worker's name into every line, also into those of tasks that have no span.
struct WithWorker {
    format: Format<Json>,
    start: String,
}

impl<S, N> FormatEvent<S, N> for WithWorker
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::with_capacity(256);
        self.format.format_event(context, Writer::new(&mut line), event)?;
        match line.strip_prefix('{') {
            Some(rest) => write!(out, "{}{rest}", self.start),
            None => out.write_str(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, log: impl FnOnce()) -> Vec<serde_json::Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::registry()
            .with(filter.parse::<Filter>().unwrap().0)
            .with(json_layer("delivery", move || writer.clone()));
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_is_one_json_object_with_worker_time_fields_and_the_ids_of_its_span() {
        let lines = logged("info", || {
            let span = tracing::info_span!("message", run.id = "PI1");
            let _entered = span.enter();
            tracing::info!(duration_ms = 41, "message handled");
        });
        let line = &lines[0];
        assert_eq!(line["worker"], "delivery");
        assert_eq!(line["message"], "message handled");
        assert_eq!(line["duration_ms"], 41);
        assert_eq!(line["spans"][0]["run.id"], "PI1");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn returned_messages_are_never_logged_whatever_the_filter_says() {
        for filter in ["trace", "lapin=trace", "lapin::returned_messages=trace", "info", ""] {
            let lines = logged(filter, || {
                tracing::error!(target: "lapin::returned_messages", "body");
                tracing::warn!(target: "lapin::channel", "body");
                tracing::error!(target: "lapin::channel", "closed");
            });
            let texts: Vec<_> =
                lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
            assert_eq!(texts, ["closed"], "{filter:?}");
        }
    }

    #[test]
    fn a_filter_or_format_that_means_nothing_is_a_mistake() {
        let mut env =
            Env::from_map([("RUNFLEET_LOG", "info,a=b=c"), ("RUNFLEET_LOG_FORMAT", "xml")]);
        Settings::from_env(&mut env);
        let mistakes = env.finish().unwrap_err().mistakes;
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert_eq!(mistakes[1], "RUNFLEET_LOG_FORMAT is not valid: must be `json` or `pretty`");
    }
}
