//! Makes calls: judge the URL, connect to a judged address only, read the answer up to a bound, all within one time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prometheus::Registry;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Body, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};

use crate::allow::AllowList;
use crate::body::Watched;
use crate::breaker::BreakerConfig;
use crate::call::{Answer, Call};
use crate::error::{HttpError, Reason};
use crate::guard::{Ground, Guard, NotAllowed};
use crate::metrics::Metrics;
use crate::resolve::{Judged, Lookup, SystemLookup};
use crate::service::Service;

/// Largest request body, in bytes.
const REQUEST_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Longest time for one call, whatever the caller says.
const WITHIN_MAX: Duration = Duration::from_mins(15);

/// How long a connection is kept that nobody uses. Shorter than the five seconds after which some servers close theirs: a call
/// on a connection that is just being closed fails.
const IDLE: Duration = Duration::from_secs(4);

/// Connections to one host that are kept without use.
const IDLE_MAX: usize = 32;

/// What a client may do.
#[derive(Debug, Clone)]
pub struct Config {
    /// What may be called although it is not public.
    pub allow: AllowList,
    /// Bound of a new connection: name, TCP and TLS. The bound of the call counts as well.
    pub connect_within: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { allow: AllowList::default(), connect_within: Duration::from_secs(5) }
    }
}

/// A client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The machine has no certificates that anything could be trusted by.
    #[error("preparing TLS")]
    Tls(#[source] reqwest::Error),
    /// There is a client in this registry already.
    #[error("registering metrics")]
    Metrics(#[source] prometheus::Error),
}

/// Makes calls. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    guard: Arc<Guard>,
    /// One for each [`Ground`], since a resolver is told a name and not why the URL was let through. Their connections are
    /// never mixed.
    clients: [(Ground, reqwest::Client); 3],
    metrics: Metrics,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("guard", &self.inner.guard).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that asks the resolver of the system. One for each registry.
    pub fn new(config: Config, registry: &Registry) -> Result<Self, ClientError> {
        let lookup: Arc<dyn Lookup> = Arc::new(SystemLookup::new());
        Self::with_lookup(config, registry, &lookup)
    }

    /// A client that asks somebody else for addresses, which are judged in the same way.
    pub fn with_lookup(
        config: Config,
        registry: &Registry,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Self, ClientError> {
        let metrics = Metrics::new(registry).map_err(ClientError::Metrics)?;
        Self::with_metrics(config, metrics, lookup)
    }

    fn with_metrics(
        config: Config,
        metrics: Metrics,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Self, ClientError> {
        ensure_tls_provider();
        let guard = Arc::new(Guard::new(config.allow));
        let client = |ground| {
            let judged = Judged { guard: Arc::clone(&guard), ground, lookup: Arc::clone(lookup) };
            build(judged, config.connect_within)
                .map(|client| (ground, client))
                .map_err(ClientError::Tls)
        };
        let [one, two, three] = Ground::ALL;
        let clients = [client(one)?, client(two)?, client(three)?];
        Ok(Self { inner: Arc::new(Inner { guard, clients, metrics }) })
    }

    /// A client for other purposes that may call something else, counted in the same metrics.
    pub fn beside(&self, config: Config) -> Result<Self, ClientError> {
        let lookup: Arc<dyn Lookup> = Arc::new(SystemLookup::new());
        Self::with_metrics(config, self.inner.metrics.clone(), &lookup)
    }

    /// Something that is called for one purpose: a word of a closed set, for metrics and logs. With a breaker it is left alone
    /// for a while when it fails again and again.
    pub fn service(&self, purpose: &'static str, breaker: Option<BreakerConfig>) -> Service {
        Service::new(self.clone(), purpose, breaker, &self.inner.metrics)
    }

    /// Makes one call, whose answer must have a status of 2xx.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, HttpError> {
        self.exchange(call, Statuses::Success).await
    }

    /// Makes one call, whose answer may have any status but 3xx.
    pub(crate) async fn call_for_any(&self, call: Call) -> Result<Answer, HttpError> {
        self.exchange(call, Statuses::Any).await
    }

    async fn exchange(&self, call: Call, statuses: Statuses) -> Result<Answer, HttpError> {
        let bytes_max = call.endpoint.answer_bytes_max;
        let Prepared { request, asked, within } = self.prepare(call)?;
        let exchange = async {
            let response = request.send().await;
            let response =
                response.map_err(|error| HttpError::read(&error, asked.load(Ordering::Acquire)))?;
            read(response, bytes_max, statuses).await
        };
        let in_time = tokio::time::timeout(within, exchange).await;
        in_time.unwrap_or_else(|_| {
            let asked = asked.load(Ordering::Acquire);
            Err(HttpError::maybe_sent_if(asked, Reason::Timeout))
        })
    }

    /// Judges a call, and writes its request for the client that its ground has.
    pub(crate) fn prepare(&self, call: Call) -> Result<Prepared, HttpError> {
        let ground = self.inner.guard.admit(&call.endpoint.url).map_err(|refused| {
            HttpError::unsent(match refused {
                NotAllowed::Url => Reason::RefusedUrl,
                NotAllowed::Address => Reason::RefusedAddress,
            })
        })?;
        if call.body.len() > REQUEST_BYTES_MAX {
            return Err(HttpError::unsent(Reason::Request));
        }
        let within = call.within.min(WITHIN_MAX);
        let (body, asked) = Watched::new(call.body);
        let request = self.client(ground).request(call.method, call.endpoint.url);
        let request = request.headers(call.headers).headers(bearer(call.endpoint.bearer)?);
        Ok(Prepared { request: request.body(Body::wrap(body)), asked, within })
    }

    fn client(&self, ground: Ground) -> &reqwest::Client {
        let [one, two, three] = &self.inner.clients;
        match ground {
            Ground::Public => &one.1,
            Ground::Listed => &two.1,
            Ground::Named => &three.1,
        }
    }
}

/// A request that may be sent.
pub(crate) struct Prepared {
    pub(crate) request: RequestBuilder,
    /// Whether its body was asked for.
    pub(crate) asked: Arc<AtomicBool>,
    /// Bound of everything.
    pub(crate) within: Duration,
}

fn build(judged: Judged, connect_within: Duration) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .dns_resolver(judged)
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .connect_timeout(connect_within)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_MAX)
        .user_agent(concat!("runfleet/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The header with a token in it, marked so that nothing below prints it.
fn bearer(token: Option<SecretString>) -> Result<reqwest::header::HeaderMap, HttpError> {
    let Some(token) = token else { return Ok(reqwest::header::HeaderMap::new()) };
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
        .map_err(|_| HttpError::unsent(Reason::Request))?;
    value.set_sensitive(true);
    Ok([(AUTHORIZATION, value)].into_iter().collect())
}

/// Which answers are answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statuses {
    /// 2xx.
    Success,
    /// All but 3xx.
    Any,
}

/// Reads an answer to its end. The body of one that says no and is not wanted is not read: its connection is closed.
async fn read(
    mut response: Response,
    bytes_max: usize,
    statuses: Statuses,
) -> Result<Answer, HttpError> {
    let failed = |reason| HttpError::maybe_sent_if(true, reason);
    let status = response.status();
    if status.is_redirection() {
        return Err(failed(Reason::Redirect));
    }
    if !status.is_success() && statuses == Statuses::Success {
        return Err(failed(Reason::Status(status.as_u16())));
    }
    let announced = response.content_length().unwrap_or_default();
    let headers = std::mem::take(response.headers_mut());
    let body = if usize::try_from(announced).map_or(true, |announced| announced > bytes_max) {
        Err(failed(Reason::TooLarge))
    } else {
        read_body(&mut response, bytes_max).await
    };
    let body = match body {
        // Of an answer that says no, the status is what counts: it is told also when the rest cannot be had.
        Err(_) if !status.is_success() => Bytes::new(),
        body => body?,
    };
    Ok(Answer { status: status.as_u16(), headers, body })
}

async fn read_body(response: &mut Response, bytes_max: usize) -> Result<Bytes, HttpError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = next(response).await? {
        if body.len() + chunk.len() > bytes_max {
            return Err(HttpError::maybe_sent_if(true, Reason::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

pub(crate) async fn next(response: &mut Response) -> Result<Option<Bytes>, HttpError> {
    response.chunk().await.map_err(|error| HttpError::read(&error, true))
}

/// The client below wants a TLS provider even for plain addresses, and none is compiled into it.
fn ensure_tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // An error means that the process has installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
