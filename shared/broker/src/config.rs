//! What a process says about its broker. Values come in from outside; nothing here reads the environment.

use std::time::Duration;

use lapin::uri::AMQPUri;
use runfleet_domain::limits::BODY_BYTES_MAX;
use secrecy::{ExposeSecret, SecretString};

use crate::topology::{Object, Topology};

/// How to reach the broker, and the bounds of everything that waits for it.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// One or more AMQP URLs, separated by commas. They are nodes of one cluster and are tried in turn.
    pub urls: SecretString,
    /// Shown as the name of the connections in the management UI, and sent as `app_id` of every message.
    pub name: String,
    /// Channels that publishes are spread over. At least 1.
    pub publish_channels: usize,
    /// Publishes that may wait for their confirm at a time.
    pub in_flight_max: usize,
    /// Bytes of bodies that may wait for their confirm.
    pub in_flight_bytes_max: usize,
    /// Largest body that is published, in bytes.
    pub body_bytes_max: usize,
    /// Interval of heartbeats, in whole seconds. A silent peer is given up after twice this time.
    pub heartbeat: Duration,
    /// Bound of one attempt to connect, name resolution and handshakes included.
    pub connect_timeout: Duration,
    /// Bound of one question to the broker: open a channel, subscribe, ack.
    pub rpc_timeout: Duration,
    /// Bound of one publish from the call to the confirm, unless the call says otherwise.
    pub confirm_timeout: Duration,
    /// How long without a connection until [`crate::Broker::lost`] resolves.
    pub lost_after: Duration,
    /// How long the broker may refuse to read from a connection before the session is rebuilt.
    pub blocked_after: Duration,
    /// How long a lane may receive nothing from a queue that is not empty before the session is rebuilt.
    pub silence_after: Duration,
    /// Longest first wait between two attempts to connect; the waits double, with full jitter.
    pub backoff_min: Duration,
    /// Longest wait between two attempts to connect.
    pub backoff_max: Duration,
    /// What must exist before a session counts as connected. Publishes to work queues rely on it: they are not
    /// mandatory. All of the fleet's own objects unless the process needs less.
    pub required: Vec<Object>,
}

impl BrokerConfig {
    /// The defaults of the fleet.
    pub fn new(urls: SecretString, name: impl Into<String>) -> Self {
        Self {
            urls,
            name: name.into(),
            publish_channels: 8,
            in_flight_max: 1_024,
            in_flight_bytes_max: 8 * 1_024 * 1_024,
            body_bytes_max: BODY_BYTES_MAX,
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            rpc_timeout: Duration::from_secs(5),
            confirm_timeout: Duration::from_secs(5),
            lost_after: Duration::from_mins(5),
            blocked_after: Duration::from_secs(30),
            silence_after: Duration::from_mins(1),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            required: Topology::standard().objects(),
        }
    }

    pub(crate) fn check(&self) -> Result<Vec<AMQPUri>, ConfigError> {
        let bounds = [
            ("publish_channels", self.publish_channels, 1, 64),
            ("in_flight_max", self.in_flight_max, 1, 1 << 20),
            ("in_flight_bytes_max", self.in_flight_bytes_max, self.body_bytes_max.max(1), 1 << 30),
            ("body_bytes_max", self.body_bytes_max, 1, 1 << 30),
        ];
        for (name, value, min, max) in bounds {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::OutOfBounds { name, min, max });
            }
        }
        endpoints(&self.urls, self.heartbeat)
    }
}

/// A configuration that can never work.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// One of the URLs is not an AMQP URL. The text does not repeat it: it holds a password.
    #[error("AMQP URL number {0} is not of the form amqp[s]://user:password@host:port/vhost")]
    Url(usize),
    /// A number is outside its bounds.
    #[error("`{name}` must be between {min} and {max}")]
    OutOfBounds {
        /// The field.
        name: &'static str,
        /// The smallest value.
        min: usize,
        /// The largest value.
        max: usize,
    },
}

pub(crate) fn endpoints(
    urls: &SecretString,
    heartbeat: Duration,
) -> Result<Vec<AMQPUri>, ConfigError> {
    let texts = urls.expose_secret().split(',').map(str::trim).filter(|url| !url.is_empty());
    let parsed = texts.enumerate().map(|(index, url)| {
        let mut uri: AMQPUri = url.parse().map_err(|_| ConfigError::Url(index + 1))?;
        uri.query.heartbeat = Some(u16::try_from(heartbeat.as_secs()).unwrap_or(u16::MAX).max(1));
        Ok(uri)
    });
    let found: Vec<AMQPUri> = parsed.collect::<Result<_, ConfigError>>()?;
    if found.is_empty() { Err(ConfigError::Url(1)) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(urls: &str) -> BrokerConfig {
        BrokerConfig::new(SecretString::from(urls), "test")
    }

    #[test]
    fn several_urls_are_read_and_get_the_heartbeat() {
        let found = config("amqp://a:b@one/%2f, amqp://a:b@two:5673/x").check().unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].authority.port, 5_673);
        assert!(found.iter().all(|uri| uri.query.heartbeat == Some(10)));
    }

    #[test]
    fn a_wrong_url_is_named_by_its_position_and_never_repeated() {
        for urls in ["", " , ", "s3cret", "amqp://u:s3cret@h/%2f,http://u:s3cret@h"] {
            let error = config(urls).check().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
        assert!(!format!("{:?}", config("amqp://u:s3cret@h/")).contains("s3cret"));
    }

    #[test]
    fn bounds_that_cannot_work_are_refused() {
        let mut config = config("amqp://h/");
        config.in_flight_bytes_max = 10;
        assert!(matches!(
            config.check(),
            Err(ConfigError::OutOfBounds { name: "in_flight_bytes_max", .. })
        ));
    }
}
