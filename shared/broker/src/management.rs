//! The management HTTP API of RabbitMQ: what AMQP cannot do. For operators and tests; workers do not need it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Bound of one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024;

/// Queues asked for at a time.
const PAGE: usize = 500;

/// Pages at most: far above the number of queues that a virtual host should have.
const PAGES_MAX: usize = 200;

/// Why a call did not work. Never holds the address, which has a password in it.
#[derive(Debug, thiserror::Error)]
pub enum ManagementError {
    /// The address is not a URL with a host.
    #[error("the management URL is not of the form http[s]://user:password@host:port")]
    Url,
    /// No answer.
    #[error("the management API did not answer: {0}")]
    Http(#[source] reqwest::Error),
    /// An answer that says no.
    #[error("the management API answered {status} to {doing}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// What was asked.
        doing: &'static str,
    },
    /// An answer that cannot be read.
    #[error("the answer of the management API to {0} could not be read")]
    Answer(&'static str),
}

/// A client of the management API.
#[derive(Clone)]
pub struct Management {
    base: Url,
    user: String,
    password: SecretString,
    client: Client,
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Management").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// A policy as the broker has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Which queues it applies to.
    pub pattern: String,
    /// Which of several counts.
    pub priority: i32,
    /// What kind of objects it applies to.
    #[serde(rename = "apply-to")]
    pub apply_to: String,
    /// The keys.
    pub definition: BTreeMap<String, Value>,
}

/// A queue as the broker has it. The numbers are some seconds old.
#[derive(Debug, Clone, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// `quorum`, `classic` or `stream`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The policy that applies.
    #[serde(default)]
    pub policy: Option<String>,
    /// Messages that wait.
    #[serde(default)]
    pub messages_ready: u64,
    /// Messages that a consumer holds.
    #[serde(default)]
    pub messages_unacknowledged: u64,
    /// Consumers.
    #[serde(default)]
    pub consumers: u64,
}

/// An exchange as the broker has it.
#[derive(Debug, Clone, Deserialize)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// `direct`, `fanout` and others.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it survives a restart.
    pub durable: bool,
}

/// A binding as the broker has it.
#[derive(Debug, Clone, Deserialize)]
pub struct Binding {
    /// The exchange.
    pub source: String,
    /// The queue.
    pub destination: String,
    /// The key.
    pub routing_key: String,
}

/// A connection as the broker has it.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    /// The broker's own name for it.
    pub name: String,
    /// The virtual host.
    #[serde(default)]
    pub vhost: String,
    /// What the client calls itself.
    #[serde(default)]
    pub user_provided_name: String,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    page_count: usize,
}

impl Management {
    /// A client of the API at `url`, which holds user and password.
    pub fn new(url: &SecretString) -> Result<Self, ManagementError> {
        ensure_tls_provider();
        let mut base: Url = url.expose_secret().parse().map_err(|_| ManagementError::Url)?;
        let user = base.username().to_owned();
        let password = SecretString::from(base.password().unwrap_or_default());
        if !base.has_host() || base.set_password(None).is_err() || base.set_username("").is_err() {
            return Err(ManagementError::Url);
        }
        let client = Client::builder().timeout(CALL_TIMEOUT).connect_timeout(CALL_TIMEOUT).build();
        Ok(Self { base, user, password, client: client.map_err(ManagementError::Http)? })
    }

    /// The user that the client logs in as.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Creates a virtual host, if it is not there, and lets `user` do everything in it.
    pub async fn put_vhost(&self, vhost: &str, user: &str) -> Result<(), ManagementError> {
        let doing = "creating a virtual host";
        self.call(Method::PUT, &["vhosts", vhost], doing, Some(&json!({}))).await?;
        self.put_permissions(vhost, user, [".*", ".*", ".*"]).await
    }

    /// Deletes a virtual host with all that is in it, if it is there.
    pub async fn delete_vhost(&self, vhost: &str) -> Result<(), ManagementError> {
        gone(self.call(Method::DELETE, &["vhosts", vhost], "deleting a virtual host", None).await)
    }

    /// Creates a user without tags, or changes its password.
    pub async fn put_user(
        &self,
        user: &str,
        password: &SecretString,
    ) -> Result<(), ManagementError> {
        let body = json!({ "password": password.expose_secret(), "tags": "" });
        self.call(Method::PUT, &["users", user], "creating a user", Some(&body)).await.map(|_| ())
    }

    /// Deletes a user, if it is there.
    pub async fn delete_user(&self, user: &str) -> Result<(), ManagementError> {
        gone(self.call(Method::DELETE, &["users", user], "deleting a user", None).await)
    }

    /// What `user` may configure, write and read in a virtual host, as patterns in this order.
    pub async fn put_permissions(
        &self,
        vhost: &str,
        user: &str,
        [configure, write, read]: [&str; 3],
    ) -> Result<(), ManagementError> {
        let body = json!({ "configure": configure, "write": write, "read": read });
        let path = ["permissions", vhost, user];
        self.call(Method::PUT, &path, "setting permissions", Some(&body)).await.map(|_| ())
    }

    /// The policies of a virtual host.
    pub async fn policies(&self, vhost: &str) -> Result<Vec<Policy>, ManagementError> {
        self.get(&["policies", vhost], &[], "listing policies").await
    }

    /// Creates or replaces a policy.
    pub async fn put_policy(&self, vhost: &str, policy: &Policy) -> Result<(), ManagementError> {
        let body = json!({
            "pattern": policy.pattern,
            "priority": policy.priority,
            "apply-to": policy.apply_to,
            "definition": policy.definition,
        });
        let path = ["policies", vhost, &policy.name];
        self.call(Method::PUT, &path, "setting a policy", Some(&body)).await.map(|_| ())
    }

    /// Deletes a policy, if it is there.
    pub async fn delete_policy(&self, vhost: &str, name: &str) -> Result<(), ManagementError> {
        gone(self.call(Method::DELETE, &["policies", vhost, name], "deleting a policy", None).await)
    }

    /// The queues of a virtual host.
    pub async fn queues(&self, vhost: &str) -> Result<Vec<Queue>, ManagementError> {
        let columns = "name,type,policy,messages_ready,messages_unacknowledged,consumers";
        self.list_queues(vhost, &[("columns", columns)]).await
    }

    /// The same as they are at this moment, without numbers: the statistics are seconds late, and name a policy only after
    /// some time.
    pub async fn declared_queues(&self, vhost: &str) -> Result<Vec<Queue>, ManagementError> {
        let query = [("columns", "name,type,policy"), ("disable_stats", "true")];
        self.list_queues(vhost, &query).await
    }

    async fn list_queues(
        &self,
        vhost: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<Queue>, ManagementError> {
        let mut found = Vec::new();
        let size = PAGE.to_string();
        for page in 1..=PAGES_MAX {
            let page_text = page.to_string();
            let paging = [("page", page_text.as_str()), ("page_size", size.as_str())];
            let query = [&paging, query].concat();
            let answer: Page<Queue> =
                self.get(&["queues", vhost], &query, "listing queues").await?;
            found.extend(answer.items);
            if page >= answer.page_count {
                break;
            }
        }
        Ok(found)
    }

    /// The exchanges of a virtual host.
    pub async fn exchanges(&self, vhost: &str) -> Result<Vec<Exchange>, ManagementError> {
        let query = [("columns", "name,type,durable")];
        self.get(&["exchanges", vhost], &query, "listing exchanges").await
    }

    /// The bindings whose source is `exchange`.
    pub async fn bindings(
        &self,
        vhost: &str,
        exchange: &str,
    ) -> Result<Vec<Binding>, ManagementError> {
        let query = [("columns", "source,destination,routing_key")];
        let path = ["exchanges", vhost, exchange, "bindings", "source"];
        match self.get(&path, &query, "listing bindings").await {
            Err(ManagementError::Status { status: 404, .. }) => Ok(vec![]),
            answer => answer,
        }
    }

    /// The connections of the whole broker.
    pub async fn connections(&self) -> Result<Vec<Connection>, ManagementError> {
        let query = [("columns", "name,vhost,user_provided_name")];
        self.get(&["connections"], &query, "listing connections").await
    }

    /// Closes a connection by the broker's own name for it, if it is there.
    pub async fn close_connection(&self, name: &str) -> Result<(), ManagementError> {
        gone(self.call(Method::DELETE, &["connections", name], "closing a connection", None).await)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        doing: &'static str,
    ) -> Result<T, ManagementError> {
        let answer = self.send(self.request(Method::GET, path, query)?, doing).await?;
        serde_json::from_slice(&answer).map_err(|_| ManagementError::Answer(doing))
    }

    async fn call(
        &self,
        method: Method,
        path: &[&str],
        doing: &'static str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, ManagementError> {
        let request = self.request(method, path, &[])?;
        self.send(if let Some(body) = body { request.json(body) } else { request }, doing).await
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, ManagementError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| ManagementError::Url)?
            .pop_if_empty()
            .push("api")
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(self
            .client
            .request(method, url)
            .basic_auth(&self.user, Some(self.password.expose_secret())))
    }

    async fn send(
        &self,
        request: RequestBuilder,
        doing: &'static str,
    ) -> Result<Vec<u8>, ManagementError> {
        let http = |error: reqwest::Error| ManagementError::Http(error.without_url());
        let mut response = request.send().await.map_err(http)?;
        let status = response.status();
        if !status.is_success() {
            return Err(ManagementError::Status { status: status.as_u16(), doing });
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(http)? {
            if answer.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(ManagementError::Answer(doing));
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

fn gone(answer: Result<Vec<u8>, ManagementError>) -> Result<(), ManagementError> {
    match answer {
        Err(ManagementError::Status { status, .. }) if status == StatusCode::NOT_FOUND.as_u16() => {
            Ok(())
        }
        answer => answer.map(|_| ()),
    }
}

/// The HTTP client wants a TLS provider even for plain addresses, and none is compiled into it.
fn ensure_tls_provider() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // An error means that the process has installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
