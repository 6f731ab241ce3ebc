//! Reads the one URL that says where Redis is and what kind of Redis it is. Never repeats the URL in an error.

use redis::{ConnectionInfo, IntoConnectionInfo, io::tcp::TcpSettings};

use crate::error::StoreError;

/// What the URL describes.
pub(crate) enum Topology {
    /// One server, or something that looks like one.
    Single(Box<ConnectionInfo>),
    /// A primary that Sentinels know by a name. The login and database are those of the primary.
    Sentinel { sentinels: Vec<ConnectionInfo>, master: String, node: Box<ConnectionInfo> },
    /// A cluster, found through any of these nodes.
    Cluster { nodes: Vec<ConnectionInfo> },
}

const SHAPE: StoreError = StoreError::Config(
    "the redis URL must be redis://, rediss://, redis-sentinel://HOST:PORT,…/DB?master=NAME or redis-cluster://HOST:PORT,…",
);

/// Small commands must not wait for each other's acknowledgement.
pub(crate) fn tcp_settings() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn node(url: &str) -> Result<ConnectionInfo, StoreError> {
    let info = url.into_connection_info().map_err(|_| SHAPE)?;
    Ok(info.set_tcp_settings(tcp_settings()))
}

/// The parts of a URL with several hosts.
struct Parts<'a> {
    login: &'a str,
    hosts: Vec<&'a str>,
    database: &'a str,
    query: &'a str,
}

fn parts(rest: &str) -> Result<Parts<'_>, StoreError> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (login, rest) = match rest.rfind('@') {
        Some(at) => rest.split_at(at + 1),
        None => ("", rest),
    };
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let hosts: Vec<_> = hosts.split(',').collect();
    if hosts.iter().any(|host| host.is_empty()) {
        return Err(SHAPE);
    }
    Ok(Parts { login, hosts, database, query })
}

fn sentinel(rest: &str, scheme: &str) -> Result<Topology, StoreError> {
    let Parts { login, hosts, database, query } = parts(rest)?;
    let value =
        |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let master = value("master")
        .filter(|name| !name.is_empty())
        .ok_or(StoreError::Config("a redis-sentinel:// URL needs `?master=NAME`"))?;
    // Sentinels have a login of their own, most often none.
    let sentinel_login = match value("sentinel-password") {
        Some(password) => format!(":{password}@"),
        None => String::new(),
    };
    let sentinels = hosts
        .iter()
        .map(|host| {
            let port = if host.contains(':') { "" } else { ":26379" };
            node(&format!("{scheme}://{sentinel_login}{host}{port}"))
        })
        .collect::<Result<_, _>>()?;
    // The host is a placeholder: the Sentinels name the real one.
    let node = node(&format!("{scheme}://{login}sentinel/{database}"))?;
    Ok(Topology::Sentinel { sentinels, master: master.to_owned(), node: Box::new(node) })
}

fn cluster(rest: &str, scheme: &str) -> Result<Topology, StoreError> {
    let Parts { login, hosts, database, query } = parts(rest)?;
    if !query.is_empty() || !matches!(database, "" | "0") {
        return Err(StoreError::Config(
            "a redis-cluster:// URL has neither a database nor a query",
        ));
    }
    let nodes = hosts
        .iter()
        .map(|host| node(&format!("{scheme}://{login}{host}")))
        .collect::<Result<_, _>>()?;
    Ok(Topology::Cluster { nodes })
}

/// What `url` describes.
pub(crate) fn parse(url: &str) -> Result<Topology, StoreError> {
    let (scheme, rest) = url.split_once("://").ok_or(SHAPE)?;
    match scheme {
        "redis" | "rediss" => Ok(Topology::Single(Box::new(node(url)?))),
        "redis-sentinel" => sentinel(rest, "redis"),
        "rediss-sentinel" => sentinel(rest, "rediss"),
        "redis-cluster" => cluster(rest, "redis"),
        "rediss-cluster" => cluster(rest, "rediss"),
        _ => Err(SHAPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(nodes: &[ConnectionInfo]) -> Vec<String> {
        nodes.iter().map(|node| node.addr().to_string()).collect()
    }

    #[test]
    fn one_server_is_reached_without_delay_of_small_packets() {
        let Ok(Topology::Single(info)) = parse("redis://:s3cret@127.0.0.1:6400/3") else {
            panic!("not a single server");
        };
        assert_eq!(info.addr().to_string(), "127.0.0.1:6400");
        assert_eq!(info.redis_settings().db(), 3);
        assert_eq!(info.redis_settings().password(), Some("s3cret"));
        assert!(info.tcp_settings().nodelay());
    }

    #[test]
    fn sentinels_have_another_login_than_the_primary() {
        let url = "redis-sentinel://app:p@ss@h1,h2:7000/2?master=main&sentinel-password=guard";
        let Ok(Topology::Sentinel { sentinels, master, node }) = parse(url) else {
            panic!("not sentinels");
        };
        assert_eq!(addresses(&sentinels), ["h1:26379", "h2:7000"]);
        assert_eq!(master, "main");
        assert_eq!(sentinels[0].redis_settings().password(), Some("guard"));
        assert_eq!(node.redis_settings().username(), Some("app"));
        assert_eq!(node.redis_settings().db(), 2);
    }

    #[test]
    fn a_cluster_is_found_through_any_of_its_nodes() {
        let Ok(Topology::Cluster { nodes }) = parse("redis-cluster://:pw@h1:7000,h2:7001") else {
            panic!("not a cluster");
        };
        assert_eq!(addresses(&nodes), ["h1:7000", "h2:7001"]);
        assert!(nodes.iter().all(|node| node.redis_settings().password() == Some("pw")));
        assert!(nodes.iter().all(|node| node.tcp_settings().nodelay()));
    }

    #[test]
    fn a_url_that_cannot_work_is_refused_without_being_repeated() {
        let bad = [
            "",
            "localhost:6379",
            "http://:s3cret@localhost",
            "redis://:s3cret@",
            "redis://:s3cret@h:1/x",
            "redis-sentinel://:s3cret@h1:1",
            "redis-sentinel://:s3cret@h1:1?master=",
            "redis-sentinel://:s3cret@h1,,h2?master=m",
            "redis-cluster://:s3cret@h1:1/4",
            "redis-cluster://",
        ];
        for url in bad {
            match parse(url) {
                Ok(_) => panic!("{url} was taken"),
                Err(error) => assert!(!format!("{error} {error:?}").contains("s3cret")),
            }
        }
    }
}
