//! A request body that remembers whether it was asked for.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

/// The body is asked for only after the head of the request was put on its way, so until then the peer has seen nothing.
pub(crate) struct Watched {
    inner: Full<Bytes>,
    asked: Arc<AtomicBool>,
}

impl Watched {
    /// The body, and what becomes true when it is asked for. An empty one is never asked for.
    pub(crate) fn new(body: Bytes) -> (Self, Arc<AtomicBool>) {
        let asked = Arc::new(AtomicBool::new(body.is_empty()));
        (Self { inner: Full::new(body), asked: Arc::clone(&asked) }, asked)
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.asked.store(true, Ordering::Release);
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
