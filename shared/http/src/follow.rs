//! An answer that is handed on while it comes, with a bound for its first byte, for each pause, and for everything.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::call::{Answer, Call};
use crate::client::{Client, Prepared, next};
use crate::error::{HttpError, Phase, Reason};

/// Most bytes of the body of an answer that says no.
const NO_BYTES_MAX: usize = 64 * 1_024;

/// How long an answer may keep its reader waiting. The bound of the call counts as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From the start of the call to the first byte of the answer's body, the connection included.
    pub first_byte: Duration,
    /// From one byte to the next.
    pub idle: Duration,
}

/// Takes the body of an answer, piece by piece.
pub trait Sink: Send {
    /// Takes the next piece. `Break` when nothing more is wanted: the rest is not read, and the call has gone well. An error
    /// is the call's.
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, HttpError>;
}

/// The bounds of a call that has begun.
struct Clock {
    first: Instant,
    end: Instant,
    idle: Duration,
    last: Option<Instant>,
}

impl Clock {
    fn start(within: Duration, pace: Pace) -> Self {
        let now = Instant::now();
        Self { first: now + pace.first_byte, end: now + within, idle: pace.idle, last: None }
    }

    /// Until when the next byte must be there, and what it would be called if it is not.
    fn next(&self) -> (Instant, Phase) {
        let (at, phase) = match self.last {
            None => (self.first, Phase::FirstByte),
            Some(last) => (last + self.idle, Phase::Idle),
        };
        if at < self.end { (at, phase) } else { (self.end, Phase::Total) }
    }
}

impl Client {
    /// Makes one call, and hands the body of an answer of 2xx to `sink`.
    pub(crate) async fn follow(
        &self,
        call: Call,
        pace: Pace,
        sink: &mut (dyn Sink + '_),
    ) -> Result<Answer, HttpError> {
        let bytes_max = call.endpoint.answer_bytes_max;
        let Prepared { request, asked, within } = self.prepare(call)?;
        let mut clock = Clock::start(within, pace);
        let (until, phase) = clock.next();
        let response = timeout_at(until, request.send()).await.map_err(|_| {
            let asked = asked.load(Ordering::Acquire);
            HttpError::timed_out(asked, if asked { phase } else { Phase::Connect })
        })?;
        let mut response =
            response.map_err(|error| HttpError::read(&error, asked.load(Ordering::Acquire)))?;
        let status = response.status();
        if status.is_redirection() {
            return Err(HttpError::maybe_sent_if(true, Reason::Redirect));
        }
        let headers = std::mem::take(response.headers_mut());
        let body = if status.is_success() {
            hand_on(&mut response, bytes_max, &mut clock, sink).await?;
            Bytes::new()
        } else {
            let mut no = No(BytesMut::new());
            // The status is what counts: it is told also when the rest cannot be had.
            let read = hand_on(&mut response, bytes_max.min(NO_BYTES_MAX), &mut clock, &mut no);
            read.await.map(|()| no.0.freeze()).unwrap_or_default()
        };
        Ok(Answer { status: status.as_u16(), headers, body })
    }
}

/// The body of an answer that says no.
struct No(BytesMut);

impl Sink for No {
    fn take(&mut self, piece: &[u8]) -> Result<ControlFlow<()>, HttpError> {
        self.0.extend_from_slice(piece);
        Ok(ControlFlow::Continue(()))
    }
}

async fn hand_on(
    response: &mut Response,
    bytes_max: usize,
    clock: &mut Clock,
    sink: &mut (dyn Sink + '_),
) -> Result<(), HttpError> {
    let announced = response.content_length().unwrap_or_default();
    if usize::try_from(announced).map_or(true, |announced| announced > bytes_max) {
        return Err(HttpError::too_large());
    }
    let mut left = bytes_max;
    loop {
        let (until, phase) = clock.next();
        let piece = timeout_at(until, next(response)).await;
        let Some(piece) = piece.map_err(|_| HttpError::timed_out(true, phase))?? else {
            return Ok(());
        };
        if piece.is_empty() {
            continue;
        }
        clock.last = Some(Instant::now());
        left = left.checked_sub(piece.len()).ok_or_else(HttpError::too_large)?;
        if sink.take(&piece)?.is_break() {
            return Ok(());
        }
        if Instant::now() >= clock.end {
            return Err(HttpError::timed_out(true, Phase::Total));
        }
    }
}
