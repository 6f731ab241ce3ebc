//! Sinks that HTTP reaches: signed webhooks, and incoming webhooks of Slack and Mattermost.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hmac::{Hmac, Mac as _};
use runfleet_http::header::{ACCEPT, CONTENT_TYPE};
use runfleet_http::{
    Answer, Call, Endpoint, HeaderMap, HeaderName, HeaderValue, HttpError, Method, Reason, Service,
    Url,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use sha2::Sha256;

use super::Letter;
use crate::outcome::Outcome;

/// The id of the message: whoever has seen it has the message.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// When it was signed, in Unix seconds. A receiver refuses what is old.
const TIMESTAMP: HeaderName = HeaderName::from_static("x-runfleet-timestamp");

/// `v1=` and the HMAC-SHA256 of `<timestamp>.<body>` in hexadecimal.
const SIGNATURE: HeaderName = HeaderName::from_static("x-runfleet-signature");

pub(super) async fn webhook(
    service: &Service,
    url: &SecretString,
    key: &SecretString,
    letter: &Letter<'_>,
    within: Duration,
) -> Outcome {
    let body = document(letter).to_string();
    let seconds = letter.now_ms / 1_000;
    let signature = signature(key.expose_secret().as_bytes(), seconds, body.as_bytes());
    let headers = [
        (IDEMPOTENCY_KEY, letter.id.to_owned()),
        (TIMESTAMP, seconds.to_string()),
        (SIGNATURE, format!("v1={signature}")),
    ];
    post(service, url, headers, body, within).await
}

pub(super) async fn slack(
    service: &Service,
    url: &SecretString,
    letter: &Letter<'_>,
    within: Duration,
) -> Outcome {
    // These three have a meaning there; written so, they are shown as they are.
    let text = letter.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    post(service, url, [], incoming(&text, letter).to_string(), within).await
}

pub(super) async fn mattermost(
    service: &Service,
    url: &SecretString,
    letter: &Letter<'_>,
    within: Duration,
) -> Outcome {
    post(service, url, [], incoming(letter.text, letter).to_string(), within).await
}

/// What a webhook gets.
fn document(letter: &Letter<'_>) -> Value {
    json!({
        "type": "chat.message",
        "id": letter.id,
        "workspace": letter.workspace,
        "project": letter.project,
        "agent": {"id": letter.agent, "name": letter.agent_name},
        "person": {"id": letter.person, "reach": letter.reach},
        "conversation": {
            "id": letter.conversation,
            "new": letter.new_conversation,
            "title": letter.title,
        },
        "text": letter.text,
        "sentAt": letter.now_ms,
    })
}

/// What incoming webhooks of Slack and Mattermost both understand. Without a place of the person the message goes where the
/// webhook belongs.
fn incoming(text: &str, letter: &Letter<'_>) -> Value {
    let mut body = json!({"text": text, "username": letter.agent_name});
    if let Some(channel) = letter.reach {
        body["channel"] = json!(channel);
    }
    body
}

fn signature(key: &[u8], seconds: u64, body: &[u8]) -> String {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return String::new() };
    mac.update(seconds.to_string().as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

async fn post<const N: usize>(
    service: &Service,
    url: &SecretString,
    headers: [(HeaderName, String); N],
    body: String,
    within: Duration,
) -> Outcome {
    let Ok(url) = Url::parse(url.expose_secret()) else { return Outcome::Refused };
    let json = HeaderValue::from_static("application/json");
    let mut all = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
    for (name, value) in headers {
        let Ok(value) = HeaderValue::try_from(value) else { return Outcome::Refused };
        all.insert(name, value);
    }
    let (endpoint, body) = (Endpoint::new(url), Bytes::from(body));
    let call = Call { method: Method::POST, endpoint, headers: all, body, within };
    outcome(service.exchange(call).await, SystemTime::now())
}

/// What an answer, or none, says about the message.
fn outcome(answer: Result<Answer, HttpError>, now: SystemTime) -> Outcome {
    match answer {
        Ok(answer) => of_status(answer.status, answer.retry_after(now)),
        Err(error) => of_error(error.reason(), error.maybe_sent()),
    }
}

fn of_status(status: u16, retry_after: Option<Duration>) -> Outcome {
    match status {
        200..=299 => Outcome::Taken,
        // The request was not worked on: it came too slowly, too early, or there were too many.
        408 | 425 | 429 => Outcome::Busy(retry_after),
        // One with the same id is just being worked on.
        409 => Outcome::Unsure(retry_after),
        400..=499 => Outcome::Refused,
        // A server that fails says nothing about how far it came.
        _ => Outcome::Unsure(retry_after),
    }
}

fn of_error(reason: Reason, maybe_sent: bool) -> Outcome {
    match reason {
        Reason::RefusedUrl | Reason::RefusedAddress | Reason::Request | Reason::Redirect => {
            Outcome::Refused
        }
        _ if maybe_sent => Outcome::Unsure(None),
        _ => Outcome::Busy(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whether_the_message_was_surely_not_worked_on() {
        let wait = Some(Duration::from_secs(7));
        for (status, expected) in [
            (200, Outcome::Taken),
            (204, Outcome::Taken),
            (400, Outcome::Refused),
            (401, Outcome::Refused),
            (404, Outcome::Refused),
            (410, Outcome::Refused),
            (408, Outcome::Busy(wait)),
            (429, Outcome::Busy(wait)),
            (409, Outcome::Unsure(wait)),
            (500, Outcome::Unsure(wait)),
            (503, Outcome::Unsure(wait)),
            (999, Outcome::Unsure(wait)),
        ] {
            assert_eq!(of_status(status, wait), expected, "{status}");
        }
    }

    #[test]
    fn what_may_have_reached_a_server_is_unsure_and_what_may_not_be_called_is_refused() {
        for reason in [Reason::Timeout, Reason::Broken, Reason::TooLarge] {
            assert_eq!(of_error(reason, true), Outcome::Unsure(None));
        }
        for reason in [Reason::Dns, Reason::Connect, Reason::Tls, Reason::OpenCircuit] {
            assert_eq!(of_error(reason, false), Outcome::Busy(None));
        }
        for reason in [Reason::RefusedUrl, Reason::RefusedAddress, Reason::Redirect] {
            assert_eq!(of_error(reason, true), Outcome::Refused);
        }
    }

    #[test]
    fn a_signature_is_that_of_time_and_body() {
        // printf '1764468000.{}' | openssl dgst -sha256 -hmac key
        let expected = "bc360be14ad1ab89cda0e10b9c9c6ea93cb989fb3f55e165167cf9be9b7ae7ed";
        assert_eq!(signature(b"key", 1_764_468_000, b"{}"), expected);
    }
}
