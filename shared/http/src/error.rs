//! Why a call gave no answer: a closed set of reasons, with nothing in it of what was sent or received.

use std::error::Error;
use std::io;

use crate::guard::NotAllowed;

/// Why a call gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The URL has a scheme, user information or a port that is not allowed.
    RefusedUrl,
    /// The address, or every address of the name, is not allowed.
    RefusedAddress,
    /// The request cannot be written: a header with impossible characters, a body that is too large.
    Request,
    /// The name has no address, or nobody could say.
    Dns,
    /// No connection.
    Connect,
    /// No secure connection, or the wrong peer at its other end.
    Tls,
    /// The time was over.
    Timeout,
    /// The connection broke, or what came is not HTTP.
    Broken,
    /// The answer is a redirect, which is never followed.
    Redirect,
    /// The answer has a status of 4xx, 5xx or none that HTTP knows.
    Status(u16),
    /// The answer has more bytes than allowed.
    TooLarge,
    /// The answer is not what was expected.
    Answer,
    /// The service failed again and again, and is not called for a moment.
    OpenCircuit,
}

impl Reason {
    /// Every word of [`Reason::as_str`].
    pub const WORDS: [&'static str; 14] = [
        "refused_url",
        "refused_address",
        "request",
        "dns",
        "connect",
        "tls",
        "timeout",
        "broken",
        "redirect",
        "status_4xx",
        "status_5xx",
        "too_large",
        "answer",
        "open_circuit",
    ];

    /// The reason as one word of a closed set, for metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RefusedUrl => "refused_url",
            Self::RefusedAddress => "refused_address",
            Self::Request => "request",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::Redirect => "redirect",
            Self::Status(400..=499) => "status_4xx",
            Self::Status(_) => "status_5xx",
            Self::TooLarge => "too_large",
            Self::Answer => "answer",
            Self::OpenCircuit => "open_circuit",
        }
    }
}

/// For what a call waited when its time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The connection: name, TCP and TLS.
    Connect,
    /// The first byte of the answer's body.
    FirstByte,
    /// The next byte of it.
    Idle,
    /// Its end.
    Total,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::FirstByte => "no first byte",
            Self::Idle => "no next byte",
            Self::Total => "not at its end",
        }
    }
}

/// A call gave no answer. Holds no address, no header and no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpError {
    reason: Reason,
    maybe_sent: bool,
    detail: Option<&'static str>,
    phase: Option<Phase>,
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason {
            Reason::Status(status) => write!(f, "the HTTP call failed: status {status}")?,
            reason => write!(f, "the HTTP call failed: {}", reason.as_str())?,
        }
        self.detail.map_or(Ok(()), |detail| write!(f, " ({detail})"))
    }
}

impl Error for HttpError {}

impl HttpError {
    /// Before anything was sent.
    pub(crate) fn unsent(reason: Reason) -> Self {
        Self { reason, maybe_sent: false, detail: None, phase: None }
    }

    /// After the request was on its way, or perhaps was.
    pub(crate) fn maybe_sent_if(maybe_sent: bool, reason: Reason) -> Self {
        Self { reason, maybe_sent, detail: None, phase: None }
    }

    /// The time was over while waiting for what `phase` says.
    pub(crate) fn timed_out(maybe_sent: bool, phase: Phase) -> Self {
        let (reason, detail) = (Reason::Timeout, Some(phase.as_str()));
        Self { reason, maybe_sent, detail, phase: Some(phase) }
    }

    /// An answer that its reader cannot use.
    pub fn answer() -> Self {
        Self::maybe_sent_if(true, Reason::Answer)
    }

    /// An answer that has more in it than its reader takes.
    pub fn too_large() -> Self {
        Self::maybe_sent_if(true, Reason::TooLarge)
    }

    /// Reads an error of the client below. `asked` is whether the body was asked for.
    pub(crate) fn read(error: &reqwest::Error, asked: bool) -> Self {
        if error.is_builder() {
            return Self::unsent(Reason::Request);
        }
        let found = Found::walk(error);
        let timeout = error.is_timeout() || found.io == Some(io::ErrorKind::TimedOut);
        let (reason, detail) = match found {
            Found { refused: true, .. } => (Reason::RefusedAddress, None),
            _ if timeout => (Reason::Timeout, error.is_connect().then_some("connecting")),
            Found { tls: Some(detail), .. } => (Reason::Tls, Some(detail)),
            _ if error.is_dns() => (Reason::Dns, None),
            Found { io, .. } if error.is_connect() => (Reason::Connect, io.and_then(io_word)),
            Found { io, .. } => (Reason::Broken, io.and_then(io_word)),
        };
        let phase = (timeout && error.is_connect()).then_some(Phase::Connect);
        Self { reason, maybe_sent: asked && !error.is_connect(), detail, phase }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// For what the call waited, when the reason is that the time was over.
    pub fn phase(&self) -> Option<Phase> {
        let timeout = self.reason == Reason::Timeout;
        timeout.then(|| self.phase.unwrap_or(Phase::Total))
    }

    /// The status of the answer, when that is the reason.
    pub fn status(&self) -> Option<u16> {
        match self.reason {
            Reason::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the peer may have seen the request, and done what it asks. False is certain.
    pub fn maybe_sent(&self) -> bool {
        self.maybe_sent
    }
}

/// What there is in a chain of errors.
#[derive(Default)]
struct Found {
    refused: bool,
    tls: Option<&'static str>,
    io: Option<io::ErrorKind>,
}

impl Found {
    fn walk(error: &reqwest::Error) -> Self {
        let mut found = Self::default();
        let mut next: Option<&(dyn Error + 'static)> = error.source();
        while let Some(error) = next {
            found.look(error);
            next = error.source();
        }
        found
    }

    fn look(&mut self, error: &(dyn Error + 'static)) {
        self.refused |= error.is::<NotAllowed>();
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            self.tls = Some(tls_word(error));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            self.io.get_or_insert(error.kind());
            // The error inside is not among the sources of the one around it.
            if let Some(inner) = error.get_ref() {
                self.look(inner);
            }
        }
    }
}

fn tls_word(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Certificate::UnknownIssuer => "certificate of an unknown issuer",
            Certificate::Expired | Certificate::ExpiredContext { .. } => "certificate has expired",
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "certificate of another name"
            }
            _ => "certificate not accepted",
        },
        rustls::Error::InvalidMessage(_) => "not the TLS protocol",
        rustls::Error::AlertReceived(_) => "refused by the peer",
        _ => "handshake failed",
    }
}

fn io_word(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some("connection refused"),
        io::ErrorKind::ConnectionReset => Some("connection reset"),
        io::ErrorKind::HostUnreachable => Some("host unreachable"),
        io::ErrorKind::NetworkUnreachable => Some("network unreachable"),
        io::ErrorKind::UnexpectedEof => Some("connection ended early"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_the_closed_set() {
        let reasons = [
            Reason::RefusedUrl,
            Reason::RefusedAddress,
            Reason::Request,
            Reason::Dns,
            Reason::Connect,
            Reason::Tls,
            Reason::Timeout,
            Reason::Broken,
            Reason::Redirect,
            Reason::Status(404),
            Reason::Status(503),
            Reason::TooLarge,
            Reason::Answer,
            Reason::OpenCircuit,
        ];
        assert_eq!(reasons.map(Reason::as_str), Reason::WORDS);
    }
}
