//! Every metric of the store. All series exist from the start.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use crate::error::StoreError;

macro_rules! operations {
    ($($variant:ident: $word:literal),* $(,)?) => {
        /// What is asked of the store: the label `operation`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($variant,)*
        }

        impl Operation {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

operations! {
    StartRun: "start_run",
    FindStart: "find_start",
    GetRun: "get_run",
    LoadRun: "load_run",
    ExplainRun: "explain_run",
    ClaimRun: "claim_run",
    RenewLease: "renew_lease",
    CheckpointRun: "checkpoint_run",
    FinishRun: "finish_run",
    ClaimAndFinishRun: "claim_and_finish_run",
    EndRun: "end_run",
    PauseRun: "pause_run",
    ResumeRun: "resume_run",
    AppendEvent: "append_event",
    PublishMessage: "publish_message",
    BroadcastSignal: "broadcast_signal",
    StartChild: "start_child",
    OpenChildren: "open_children",
    History: "history",
    CountIncidents: "count_incidents",
    HandOver: "hand_over",
    FinishJob: "finish_job",
    FailJob: "fail_job",
    BeginJob: "begin_job",
    JobDue: "job_due",
    EnqueueJob: "enqueue_job",
    ListJobs: "list_jobs",
    JobsWaiting: "jobs_waiting",
    LoadJob: "load_job",
    DueAlarms: "due_alarms",
    CountAlarms: "count_alarms",
    ShowKey: "show_key",
    ReleaseKey: "release_key",
    RevokeBatch: "revoke_batch",
    ShowBatch: "show_batch",
    StartsOfDay: "starts_of_day",
    PutCatalog: "put_catalog",
    LoadCatalog: "load_catalog",
    LoadDefinition: "load_definition",
    CatalogChanges: "catalog_changes",
    ReserveMessage: "reserve_message",
    MarkMessage: "mark_message",
    ListConversations: "list_conversations",
    ReadConversation: "read_conversation",
    ReplyInConversation: "reply_in_conversation",
    HoldCalls: "hold_calls",
    ChatSettings: "chat_settings",
    AppendAnswer: "append_answer",
    CreditsUsed: "credits_used",
    HoldCall: "hold_call",
    Ping: "ping",
    Maintenance: "maintenance",
    RegisterVersion: "register_version",
    LoadManifest: "load_manifest",
    ShowProject: "show_project",
    BeginCall: "begin_call",
    EndCall: "end_call",
    LoadMessage: "load_message",
}

/// The words of the label `reason`.
pub(crate) const REASONS: [&str; 12] = [
    "connect", "io", "timeout", "auth", "loading", "readonly", "tryagain", "down", "memory",
    "disk", "busy", "refused",
];

/// Handles of one operation, looked up once.
struct Series {
    duration: Histogram,
    round_trips: IntCounter,
}

/// The metrics of one store.
pub(crate) struct Metrics {
    series: Vec<Series>,
    errors: IntCounterVec,
}

impl Metrics {
    /// Makes the metrics and puts them into `registry`.
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "runfleet_store_operation_duration_seconds",
                "Time of one operation of the ledger, with everything that was tried again.",
            )
            .buckets(vec![
                0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
            ]),
            &["operation"],
        )?;
        let round_trips = IntCounterVec::new(
            Opts::new(
                "runfleet_store_round_trips_total",
                "Commands sent to Redis, repetitions included.",
            ),
            &["operation"],
        )?;
        let errors = IntCounterVec::new(
            Opts::new(
                "runfleet_store_errors_total",
                "Operations of the ledger that gave no answer.",
            ),
            &["operation", "reason"],
        )?;
        registry.register(Box::new(durations.clone()))?;
        registry.register(Box::new(round_trips.clone()))?;
        registry.register(Box::new(errors.clone()))?;
        let series = Operation::ALL
            .iter()
            .map(|operation| Series {
                duration: durations.with_label_values(&[operation.as_str()]),
                round_trips: round_trips.with_label_values(&[operation.as_str()]),
            })
            .collect();
        for operation in Operation::ALL {
            for reason in REASONS {
                errors.with_label_values(&[operation.as_str(), reason]);
            }
        }
        Ok(Self { series, errors })
    }

    /// One command is sent.
    pub(crate) fn round_trip(&self, operation: Operation) {
        if let Some(series) = self.series.get(operation as usize) {
            series.round_trips.inc();
        }
    }

    /// One operation has ended.
    pub(crate) fn done(&self, operation: Operation, elapsed: Duration) {
        if let Some(series) = self.series.get(operation as usize) {
            series.duration.observe(elapsed.as_secs_f64());
        }
    }

    /// One operation gave no answer.
    pub(crate) fn failed(&self, operation: Operation, error: &StoreError) {
        self.errors.with_label_values(&[operation.as_str(), error.reason()]).inc();
    }
}
