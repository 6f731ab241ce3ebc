//! What the page asks for, as calls over the public path. Bodies are those of the operations.

use hyper::StatusCode;
use runfleet_client::{Client, Error};
use runfleet_contracts::ErrorBody;
use runfleet_contracts::chat::{ChatDecide, ChatList, ChatRead, ChatReply};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::answer::{Answer, json as answer, refused};

/// A call that the page can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    List,
    Read,
    Reply,
    Decide,
}

impl Call {
    /// By its path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/api/list" => Some(Self::List),
            "/api/read" => Some(Self::Read),
            "/api/reply" => Some(Self::Reply),
            "/api/decide" => Some(Self::Decide),
            _ => None,
        }
    }

    /// Makes it, with the options in a body.
    pub(super) async fn make(self, client: &Client, body: &[u8]) -> Answer {
        let Ok(options) = serde_json::from_slice::<Box<RawValue>>(body) else {
            return refused(StatusCode::BAD_REQUEST, "the body is not JSON");
        };
        match self.made(client, &options).await {
            Ok(done) => done,
            Err(error) => trouble(&error),
        }
    }

    async fn made(self, client: &Client, options: &RawValue) -> Result<Answer, Error> {
        let chat = client.chat();
        match self {
            Self::List => {
                let (options, _) = ChatList::parse(options)?;
                Ok(done(&chat.list(options.before, options.limit).await?))
            }
            Self::Read => Ok(done(&chat.read(&ChatRead::parse(options)?.0).await?)),
            Self::Reply => {
                let ChatReply { conversation_id, text } = ChatReply::parse(options)?;
                Ok(done(&chat.reply(conversation_id, text).await?))
            }
            Self::Decide => Ok(done(&chat.decide(&ChatDecide::parse(options)?.0).await?)),
        }
    }
}

fn done(body: &impl Serialize) -> Answer {
    answer(StatusCode::OK, body)
}

/// A call that was refused, or not done in time.
fn trouble(error: &Error) -> Answer {
    let status = match error {
        Error::Validation(_) => StatusCode::BAD_REQUEST,
        Error::PermissionDenied(_) => StatusCode::FORBIDDEN,
        Error::NotFound(_) => StatusCode::NOT_FOUND,
        Error::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
        Error::Retryable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Error::Api(_) => StatusCode::CONFLICT,
        Error::Protocol(_) => StatusCode::BAD_GATEWAY,
    };
    let code = error.body().map(|ErrorBody { code, .. }| code.as_str());
    let body = json!({"code": code, "reason": error.reason(), "message": error.to_string()});
    answer(status, &body)
}
