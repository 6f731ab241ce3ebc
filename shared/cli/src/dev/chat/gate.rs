//! Who may: requests of the page itself, from a browser that was given a code. Pure, but for the random numbers.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode};

/// Browsers that are in at once; one more puts the oldest out.
const BROWSERS_MAX: usize = 8;

/// Says whether a request comes from the page itself.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What opens the page.
pub(super) struct Gate {
    port: u16,
    keys: Mutex<Keys>,
}

struct Keys {
    /// Opens once.
    code: String,
    /// Cookies of those who are in, oldest first.
    browsers: Vec<String>,
}

/// Somebody who is let in: the cookie to be set, and the code for the next one.
pub(super) struct LetIn {
    pub(super) cookie: String,
    pub(super) next: String,
}

impl Gate {
    /// A gate for the page at a port, and the first code.
    pub(super) fn new(port: u16) -> Result<(Self, String)> {
        let code = random()?;
        let keys = Keys { code: code.clone(), browsers: Vec::new() };
        Ok((Self { port, keys: Mutex::new(keys) }, code))
    }

    /// Whether a request is addressed to this page and sent by it, or by a person who opens it. A name that points here from
    /// elsewhere is not ours, and neither is a page of another origin.
    pub(super) fn admits(&self, method: &Method, headers: &HeaderMap) -> Result<(), StatusCode> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(&HOST).filter(|_| headers.get_all(HOST).iter().count() == 1);
        let ours = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let Some(host) = host.filter(|host| ours.iter().any(|name| name == host)) else {
            return Err(StatusCode::MISDIRECTED_REQUEST);
        };
        let origin_fits = match text(&ORIGIN) {
            Some(origin) => origin.strip_prefix("http://") == Some(host),
            None => !headers.contains_key(ORIGIN) && *method == Method::GET,
        };
        let site_fits = text(&FETCH_SITE)
            .is_none_or(|site| site == "same-origin" || (site == "none" && *method == Method::GET));
        if !origin_fits || !site_fits {
            return Err(StatusCode::FORBIDDEN);
        }
        if *method == Method::POST && text(&CONTENT_TYPE) != Some("application/json") {
            return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        Ok(())
    }

    /// Whether the browser is in.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let name = format!("{}=", self.cookie_name());
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut given = cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().strip_prefix(&name));
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        given.any(|cookie| keys.browsers.iter().any(|known| same(known, cookie)))
    }

    /// Lets a browser in that has the code. The code is used up by that.
    pub(super) fn open(&self, code: &str) -> Result<Option<LetIn>> {
        let (browser, next) = (random()?, random()?);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !same(&keys.code, code.trim()) {
            return Ok(None);
        }
        keys.code.clone_from(&next);
        if keys.browsers.len() == BROWSERS_MAX {
            keys.browsers.remove(0);
        }
        let name = self.cookie_name();
        let cookie = format!("{name}={browser}; Path=/; HttpOnly; SameSite=Strict");
        keys.browsers.push(browser);
        Ok(Some(LetIn { cookie, next }))
    }

    /// Cookies do not know ports, so their names do.
    fn cookie_name(&self) -> String {
        format!("runfleet_chat_{}", self.port)
    }
}

/// 128 bits as text.
fn random() -> Result<String> {
    let mut bytes = [0; 16];
    rand::TryRngCore::try_fill_bytes(&mut rand::rngs::OsRng, &mut bytes)
        .map_err(|_| anyhow!("the operating system gave no randomness"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Compares in a time that does not tell where the texts differ.
fn same(known: &str, given: &str) -> bool {
    let pairs = known.bytes().zip(given.bytes());
    known.len() == given.len() && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_requests_of_the_page_itself_are_admitted() {
        let (gate, _) = Gate::new(8123).unwrap();
        let (host, json) = (("host", "127.0.0.1:8123"), ("content-type", "application/json"));
        let origin = ("origin", "http://127.0.0.1:8123");
        let refused = |method: &Method, given: &[(&'static str, &str)]| {
            gate.admits(method, &headers(given)).err().map(|status| status.as_u16())
        };
        let (get, post) = (&Method::GET, &Method::POST);
        assert_eq!(refused(get, &[host]), None);
        assert_eq!(refused(get, &[("host", "localhost:8123")]), None);
        assert_eq!(refused(get, &[host, ("sec-fetch-site", "none")]), None);
        assert_eq!(refused(post, &[host, origin, json]), None);
        assert_eq!(refused(post, &[host, origin, json, ("sec-fetch-site", "same-origin")]), None);
        for wrong in ["127.0.0.1", "evil.example:8123", "127.0.0.1:8124", "127.0.0.1:8123.evil"] {
            assert_eq!(refused(get, &[("host", wrong)]), Some(421), "{wrong}");
        }
        assert_eq!(refused(get, &[]), Some(421));
        assert_eq!(refused(get, &[host, host]), Some(421));
        for site in ["cross-site", "same-site"] {
            assert_eq!(refused(get, &[host, ("sec-fetch-site", site)]), Some(403), "{site}");
        }
        assert_eq!(refused(post, &[host, json]), Some(403), "no origin");
        for wrong in
            ["null", "http://evil.example", "http://localhost:8123", "https://127.0.0.1:8123"]
        {
            assert_eq!(refused(post, &[host, json, ("origin", wrong)]), Some(403), "{wrong}");
            assert_eq!(refused(get, &[host, ("origin", wrong)]), Some(403), "{wrong}");
        }
        assert_eq!(refused(post, &[host, origin, json, ("sec-fetch-site", "none")]), Some(403));
        assert_eq!(refused(post, &[host, origin]), Some(415));
        assert_eq!(refused(post, &[host, origin, ("content-type", "text/plain")]), Some(415));
    }

    #[test]
    fn a_code_lets_one_browser_in_and_only_so_many_are_in_at_once() {
        let (gate, code) = Gate::new(8123).unwrap();
        assert!(gate.open("").unwrap().is_none());
        assert!(gate.open(&"0".repeat(code.len())).unwrap().is_none());
        let first = gate.open(&code).unwrap().unwrap();
        assert!(gate.open(&code).unwrap().is_none(), "the code is used up");
        let cookie = |let_in: &LetIn| let_in.cookie.split(';').next().unwrap().to_owned();
        assert!(first.cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"));
        let known = |cookie: &str| gate.knows(&headers(&[("cookie", cookie)]));
        assert!(known(&cookie(&first)) && known(&format!("other=1; {}", cookie(&first))));
        assert!(!known("runfleet_chat_8123=") && !known(&format!("{}0", cookie(&first))));
        assert!(!gate.knows(&headers(&[])));
        let mut next = first.next.clone();
        for _ in 0..BROWSERS_MAX {
            assert!(known(&cookie(&first)));
            next = gate.open(&next).unwrap().unwrap().next;
        }
        assert!(!known(&cookie(&first)), "the oldest is put out");
    }
}
