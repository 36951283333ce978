//! The guard before every route: which Host and which Origin may call at all,
//! and the headers that every answer carries.
//!
//! A page of another origin can make a browser send requests here; by its
//! Origin (and by what the browser says about the site it came from) it is
//! refused before anything is read. A name that an attacker points at this
//! machine is refused by its Host. No browser reaches the socket in the data
//! folder, so requests that come there are not asked.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::listen::BySocket;
use super::{App, Problem};
use crate::config::Origin;

/// Nothing is loaded from elsewhere and nothing inline runs.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Which hosts this server answers to, and the origin that belongs to each.
pub(super) struct Guard {
    origins: HashMap<String, Vec<String>>,
}

impl Guard {
    pub(super) fn new(local: SocketAddr, public: &[Origin]) -> Self {
        let port = local.port();
        let mut hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
        match local.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => hosts.push(format!("{ip}:{port}")),
            IpAddr::V6(ip) => hosts.push(format!("[{ip}]:{port}")),
        }
        let own = hosts.iter().filter_map(|host| Origin::new(false, host));
        let mut origins: HashMap<String, Vec<String>> = HashMap::new();
        for origin in own.chain(public.iter().cloned()) {
            origins.entry(origin.host().to_owned()).or_default().push(origin.to_string());
        }
        Self { origins }
    }

    /// Refuses a request that no page of this server and no program that
    /// addresses this server would send.
    fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
        let host = one(headers, header::HOST)?.ok_or_else(|| forbidden("host_not_allowed", WRONG_HOST))?;
        // The same name with the scheme's own port is the same host.
        let known =
            |host: &str| [false, true].iter().find_map(|secure| self.origins.get(Origin::new(*secure, host)?.host()));
        let allowed = known(host).ok_or_else(|| forbidden("host_not_allowed", WRONG_HOST))?;
        if uri.authority().is_some_and(|authority| known(authority.as_str()).is_none()) {
            return Err(forbidden("host_not_allowed", WRONG_HOST));
        }
        match one(headers, header::ORIGIN)? {
            Some(origin) if !allowed.iter().any(|own| own == origin) => {
                return Err(forbidden("origin_not_allowed", WRONG_ORIGIN));
            }
            _ => {}
        }
        Ok(())
    }
}

const WRONG_HOST: &str = "This server does not answer to this Host. Use the address that it printed at its start, or \
     add yours to server.public_origins.";
const WRONG_ORIGIN: &str = "Pages of other origins may not call this server.";

fn forbidden(code: &str, detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, code, detail)
}

/// The value of a header that may appear once.
fn one(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(&name).iter();
    let value = values.next().map(HeaderValue::to_str).transpose();
    match (value, values.next()) {
        (Ok(value), None) => Ok(value),
        _ => Err(forbidden("header_not_allowed", "Send the Host and Origin headers at most once, in ASCII.")),
    }
}

/// Whether a browser says that a page of another site or origin caused this.
/// Sites are coarser than origins (a cookie of this machine goes to all its
/// ports), so `same-site` is another origin too.
fn caused_elsewhere(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|value| value != "same-origin" && value != "none")
}

/// The guard as a layer around all routes.
pub(super) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = std::time::Instant::now();
    let method = request.method().clone();
    // The pattern of the route, never the path: ids stay out of the log.
    let route = request.extensions().get::<MatchedPath>().map_or("-".to_owned(), |path| path.as_str().to_owned());
    let api = request.uri().path().starts_with("/api/");
    let by_socket = request.extensions().get::<BySocket>().is_some();
    let asked = if by_socket { Ok(()) } else { app.guard.admit(request.headers(), request.uri()) };
    let admitted = asked.and_then(|()| {
        if api && caused_elsewhere(request.headers()) {
            Err(forbidden("origin_not_allowed", WRONG_ORIGIN))
        } else {
            Ok(())
        }
    });
    let mut response = match admitted {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    tracing::debug!(%method, route, status = response.status().as_u16(), elapsed = ?started.elapsed(), "answered");
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(guard: &Guard, uri: &str, pairs: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        guard.admit(&headers, &uri.parse().unwrap()).err().map(|problem| {
            assert_eq!(problem.status, StatusCode::FORBIDDEN);
            problem.code
        })
    }

    #[test]
    fn only_own_hosts_and_their_own_origin() {
        let guard =
            Guard::new("127.0.0.1:8765".parse().unwrap(), &[Origin::parse("https://teams.example.com").unwrap()]);
        let host = Some("host_not_allowed".to_owned());
        let origin = Some("origin_not_allowed".to_owned());
        for good in [
            "127.0.0.1:8765",
            "localhost:8765",
            "LOCALHOST:8765",
            "[::1]:8765",
            "teams.example.com",
            "teams.example.com:443",
        ] {
            assert_eq!(code(&guard, "/", &[("host", good)]), None, "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:8766",
            "127.0.0.1:8765.evil.example",
            "teams.example.com:8765",
        ] {
            assert_eq!(code(&guard, "/", &[("host", bad)]), host, "{bad}");
        }
        assert_eq!(code(&guard, "/", &[]), host);
        assert_eq!(code(&guard, "http://evil.example/", &[("host", "localhost:8765")]), host);
        assert_eq!(
            code(&guard, "/", &[("host", "localhost:8765"), ("host", "evil.example")]),
            Some("header_not_allowed".into())
        );

        assert_eq!(code(&guard, "/", &[("host", "localhost:8765"), ("origin", "http://localhost:8765")]), None);
        assert_eq!(code(&guard, "/", &[("host", "teams.example.com"), ("origin", "https://teams.example.com")]), None);
        for bad in [
            "null",
            "http://evil.example",
            "http://127.0.0.1:8765",
            "https://localhost:8765",
            "http://localhost:3000",
            "https://teams.example.com",
        ] {
            assert_eq!(code(&guard, "/", &[("host", "localhost:8765"), ("origin", bad)]), origin, "{bad}");
        }
    }

    #[test]
    fn an_unspecified_address_adds_no_host() {
        let guard = Guard::new("0.0.0.0:80".parse().unwrap(), &[]);
        assert!(code(&guard, "/", &[("host", "0.0.0.0")]).is_some());
        assert!(code(&guard, "/", &[("host", "localhost")]).is_none());
        let guard = Guard::new("192.0.2.7:9000".parse().unwrap(), &[]);
        assert!(code(&guard, "/", &[("host", "192.0.2.7:9000")]).is_none());
    }
}
