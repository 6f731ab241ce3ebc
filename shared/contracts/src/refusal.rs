//! What a caller is told about each refusal of admission: code, reason, field. The only place that translates them.

use runfleet_domain::RunKind;
use runfleet_domain::admission::Refusal;

use crate::error::{ErrorBody, ErrorCode};

/// `details.upstreamCode` repeats the code of refusals that the agent service makes.
fn upstream(code: ErrorCode) -> ErrorBody {
    ErrorBody::new(code).with("upstreamCode", code.as_str()).with("writesMayHaveCompleted", false)
}

fn denied(reason: &str) -> ErrorBody {
    ErrorBody::new(ErrorCode::PermissionDenied).with("reason", reason)
}

fn by_policy(kind: RunKind) -> ErrorBody {
    denied(match kind {
        RunKind::Process => "PROCESSES_NOT_ALLOWED",
        RunKind::Agent => "AGENTS_NOT_ALLOWED",
    })
}

/// The name of the option that holds the outcome job.
pub(crate) fn outcome_option(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Process => "onComplete",
        RunKind::Agent => "onResult",
    }
}

/// The name of the option that holds the target.
pub(crate) fn target_option(kind: RunKind) -> &'static str {
    match kind {
        RunKind::Process => "processInfoId",
        RunKind::Agent => "agentId",
    }
}

impl From<Refusal> for ErrorBody {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TriggerReadOnly => denied("TRIGGER_READ_ONLY"),
            Refusal::DevelopmentReadOnly => denied("DEVELOPMENT_SESSION_READ_ONLY"),
            Refusal::ReadOnly => denied("READ_ONLY"),
            Refusal::ProjectKey => denied("PROJECT_KEY"),
            Refusal::TokenExpired => denied("TOKEN_EXPIRED"),
            Refusal::Disabled(RunKind::Process) => Self::new(ErrorCode::ProcessesDisabled),
            Refusal::Disabled(RunKind::Agent) => Self::new(ErrorCode::AgentsDisabled),
            Refusal::OutcomeInDevelopment(kind) => {
                Self::new(ErrorCode::NotSupported).with("field", outcome_option(kind))
            }
            Refusal::NoCallerToRunAs => {
                Self::field("runAs", "must be `agent` for an execution without a user")
            }
            Refusal::SectionMissing(kind) | Refusal::NotSelected(kind) => by_policy(kind),
            Refusal::SystemNotAllowed(kind) => by_policy(kind).with("identity", "system"),
            Refusal::AutoApproveNotAllowed => denied("AGENT_AUTO_APPROVE_NOT_ALLOWED"),
            Refusal::NoHopsLeft => Self::new(ErrorCode::MaxHopExceeded),
            Refusal::TooDeep { limit } => {
                Self::new(ErrorCode::AgentDepthExceeded).with("limit", limit)
            }
            Refusal::JobNotDeclared(kind) => Self::field(
                &format!("{}.job", outcome_option(kind)),
                "is not declared by the active version of the project",
            ),
            Refusal::TargetNotFound(kind) => {
                Self::new(ErrorCode::NotFound).with("resource", kind.as_str())
            }
            Refusal::NotStartable => Self::field(
                target_option(RunKind::Process),
                "is not a Process that can be started by itself",
            ),
            Refusal::PersonMayNot(RunKind::Process) => denied("PROCESS_START_DENIED"),
            Refusal::PersonMayNot(RunKind::Agent) => denied("AGENT_RUN_DENIED"),
            Refusal::BadInput(bad) => Self::field(&bad.field, bad.problem),
            Refusal::DeliveryUnavailable => upstream(ErrorCode::DeliveryUnavailable),
            Refusal::RecipientNotFound => upstream(ErrorCode::RecipientNotFound),
            Refusal::RecipientAccessDenied => upstream(ErrorCode::RecipientAccessDenied),
            Refusal::RecipientSeatRequired => upstream(ErrorCode::RecipientAiSeatRequired),
            Refusal::SubscriptionRequired => upstream(ErrorCode::AiSubscriptionRequired),
            Refusal::SeatRequired => upstream(ErrorCode::AiSeatRequired),
            Refusal::InsufficientCredits => upstream(ErrorCode::InsufficientCredits),
            Refusal::AgentCreditLimit => upstream(ErrorCode::AgentCreditLimitExceeded),
            Refusal::ModelNotPriced => upstream(ErrorCode::ModelNotPriced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refusal: Refusal) -> (&'static str, String) {
        let body = ErrorBody::from(refusal);
        let detail = ["reason", "field", "upstreamCode", "resource"]
            .iter()
            .find_map(|name| body.details.get(*name).and_then(|value| value.as_str()));
        (body.code.as_str(), detail.unwrap_or_default().to_owned())
    }

    /// CG-002, CG-003, CG-011, CG-012, CG-013, CG-019, CG-145, CG-146, CG-172
    #[test]
    fn each_refusal_has_the_code_and_the_reason_of_the_contract() {
        use RunKind::{Agent, Process};
        let table = [
            (Refusal::TriggerReadOnly, "PERMISSION_DENIED", "TRIGGER_READ_ONLY"),
            (Refusal::DevelopmentReadOnly, "PERMISSION_DENIED", "DEVELOPMENT_SESSION_READ_ONLY"),
            (Refusal::ReadOnly, "PERMISSION_DENIED", "READ_ONLY"),
            (Refusal::ProjectKey, "PERMISSION_DENIED", "PROJECT_KEY"),
            (Refusal::TokenExpired, "PERMISSION_DENIED", "TOKEN_EXPIRED"),
            (Refusal::Disabled(Process), "PROCESSES_DISABLED", ""),
            (Refusal::Disabled(Agent), "AGENTS_DISABLED", ""),
            (Refusal::OutcomeInDevelopment(Process), "NOT_SUPPORTED", "onComplete"),
            (Refusal::OutcomeInDevelopment(Agent), "NOT_SUPPORTED", "onResult"),
            (Refusal::NoCallerToRunAs, "VALIDATION_ERROR", "runAs"),
            (Refusal::SectionMissing(Process), "PERMISSION_DENIED", "PROCESSES_NOT_ALLOWED"),
            (Refusal::SectionMissing(Agent), "PERMISSION_DENIED", "AGENTS_NOT_ALLOWED"),
            (Refusal::NotSelected(Process), "PERMISSION_DENIED", "PROCESSES_NOT_ALLOWED"),
            (Refusal::NotSelected(Agent), "PERMISSION_DENIED", "AGENTS_NOT_ALLOWED"),
            (Refusal::SystemNotAllowed(Process), "PERMISSION_DENIED", "PROCESSES_NOT_ALLOWED"),
            (Refusal::SystemNotAllowed(Agent), "PERMISSION_DENIED", "AGENTS_NOT_ALLOWED"),
            (Refusal::AutoApproveNotAllowed, "PERMISSION_DENIED", "AGENT_AUTO_APPROVE_NOT_ALLOWED"),
            (Refusal::NoHopsLeft, "MAX_HOP_EXCEEDED", ""),
            (Refusal::TooDeep { limit: 3 }, "AGENT_DEPTH_EXCEEDED", ""),
            (Refusal::JobNotDeclared(Process), "VALIDATION_ERROR", "onComplete.job"),
            (Refusal::JobNotDeclared(Agent), "VALIDATION_ERROR", "onResult.job"),
            (Refusal::TargetNotFound(Process), "NOT_FOUND", "process"),
            (Refusal::TargetNotFound(Agent), "NOT_FOUND", "agent"),
            (Refusal::NotStartable, "VALIDATION_ERROR", "processInfoId"),
            (Refusal::PersonMayNot(Process), "PERMISSION_DENIED", "PROCESS_START_DENIED"),
            (Refusal::PersonMayNot(Agent), "PERMISSION_DENIED", "AGENT_RUN_DENIED"),
        ];
        for (refusal, code, detail) in table {
            assert_eq!(told(refusal.clone()), (code, detail.to_owned()), "{refusal:?}");
        }
    }

    /// CG-074, CG-160, CG-162, CG-163, CG-164
    #[test]
    fn refusals_of_the_agent_service_repeat_their_code_and_say_that_nothing_was_written() {
        let table = [
            (Refusal::InsufficientCredits, "INSUFFICIENT_CREDITS"),
            (Refusal::SubscriptionRequired, "AI_SUBSCRIPTION_REQUIRED"),
            (Refusal::SeatRequired, "AI_SEAT_REQUIRED"),
            (Refusal::AgentCreditLimit, "AGENT_CREDIT_LIMIT_EXCEEDED"),
            (Refusal::ModelNotPriced, "MODEL_NOT_PRICED"),
            (Refusal::RecipientNotFound, "RECIPIENT_NOT_FOUND"),
            (Refusal::RecipientAccessDenied, "RECIPIENT_ACCESS_DENIED"),
            (Refusal::RecipientSeatRequired, "RECIPIENT_AI_SEAT_REQUIRED"),
            (Refusal::DeliveryUnavailable, "DELIVERY_UNAVAILABLE"),
        ];
        for (refusal, code) in table {
            let body = ErrorBody::from(refusal);
            assert_eq!(body.code.as_str(), code);
            assert_eq!(body.details["upstreamCode"], code);
            assert_eq!(body.details["writesMayHaveCompleted"], false);
        }
    }

    /// CG-011
    #[test]
    fn a_missing_right_of_executions_without_a_user_names_the_identity() {
        let body = ErrorBody::from(Refusal::SystemNotAllowed(RunKind::Process));
        assert_eq!(body.details["identity"], "system");
    }
}
