//! Answers of the page's server: a body at once or piece by piece, and the headers that every one has.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

/// The page runs its own script and nothing else, and speaks to nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// A body.
pub(super) enum Content {
    /// All of it.
    Whole(Full<Bytes>),
    /// Piece by piece, until whoever sends them is gone.
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// An answer.
pub(super) type Answer = Response<Content>;

/// An answer with a body of a kind.
pub(super) fn content(status: StatusCode, kind: &'static str, content: Content) -> Answer {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

/// A text that is part of this program.
pub(super) fn fixed(kind: &'static str, text: &'static str) -> Answer {
    content(StatusCode::OK, kind, Content::Whole(Full::new(Bytes::from_static(text.as_bytes()))))
}

/// JSON.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => content(status, "application/json", Content::Whole(Full::new(body.into()))),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}

/// A refusal that a person can read.
pub(super) fn refused(status: StatusCode, message: &str) -> Answer {
    let body = json!({"message": message}).to_string();
    content(status, "application/json", Content::Whole(Full::new(body.into())))
}
