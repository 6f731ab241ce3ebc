//! What the model is told of a message. Pure. Says what happened and what makes sense now; names nobody.

use runfleet_store::{Delivery, DeliveryStatus};
use serde_json::{Value, json};

/// The result of the call: status and content.
pub(crate) fn result(delivery: &Delivery) -> Value {
    let status = delivery.status.as_str();
    if delivery.status == DeliveryStatus::Sent {
        let content = json!({
            "delivery": status,
            "newConversation": delivery.new_conversation,
            "message": "The message was sent."
        });
        return json!({"status": "success", "content": content});
    }
    let code = delivery.error_code.as_deref().unwrap_or_default();
    let content = json!({"delivery": status, "errorCode": code, "message": sentence(code)});
    json!({"status": "error", "content": content})
}

/// The result of a call whose message is kept until its person may be written to. The call has done all that it can.
pub(crate) fn waiting() -> Value {
    let content = json!({
        "delivery": "SCHEDULED",
        "message": "The person is not to be disturbed at this time. The message is kept and will be sent later, unless it must not \
                    be sent then. It has not been sent yet. Do not send it again."
    });
    json!({"status": "success", "content": content})
}

fn sentence(code: &str) -> &'static str {
    match code {
        "RECIPIENT_RATE_LIMITED" => {
            "Nothing was sent: the person has had as many messages as there may be for now, or is not to be disturbed at this \
             time. Do not try again in this task."
        }
        "RECIPIENT_NOT_FOUND" | "RECIPIENT_ACCESS_DENIED" | "RECIPIENT_AI_SEAT_REQUIRED" => {
            "Nothing was sent: the person can no longer get messages from you. Do not try again in this task."
        }
        "DELIVERY_UNAVAILABLE" => {
            "The message could not be delivered, or nobody knows whether it was. Do not send it again in this task."
        }
        _ => "The message could not be delivered. Do not try again in this task.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_that_a_message_waits_and_never_that_it_was_sent() {
        let told = waiting();
        assert_eq!(
            (&told["status"], &told["content"]["delivery"]),
            (&json!("success"), &json!("SCHEDULED"))
        );
        assert!(told["content"]["message"].as_str().unwrap().contains("not been sent yet"));
    }

    #[test]
    fn a_model_is_told_what_became_of_its_message() {
        let sent = "SENT:CV1501KC5Q8A9B2C3D4E5F6G7H8J9K:1".parse().unwrap();
        let told = result(&sent);
        assert_eq!(told["status"], "success");
        assert_eq!(told["content"]["newConversation"], true);
        for word in [
            "BLOCKED:RECIPIENT_RATE_LIMITED",
            "BLOCKED:RECIPIENT_NOT_FOUND",
            "FAILED:DELIVERY_UNAVAILABLE",
            "FAILED:DELIVERY_FAILED",
        ] {
            let told = result(&word.parse().unwrap());
            assert_eq!(told["status"], "error");
            let (status, code) = word.split_once(':').unwrap();
            assert_eq!(
                (&told["content"]["delivery"], &told["content"]["errorCode"]),
                (&json!(status), &json!(code))
            );
            assert!(told["content"]["message"].as_str().unwrap().contains("Do not"), "{word}");
        }
    }
}
