//! How the program calls other servers: model endpoints, and (from the command
//! line) its own server. Every HTTP client is made here.

use std::net::IpAddr;
use std::path::Path;

use reqwest::{ClientBuilder, Url};

/// A client for requests to this address. Requests to this machine never go
/// through a proxy, whatever the environment says: a proxy could not reach the
/// same machine, and it must not see what was meant to stay on it.
pub fn client_for(url: &Url) -> ClientBuilder {
    let builder = builder();
    if is_this_machine(url) { builder.no_proxy() } else { builder }
}

/// A client that reaches one socket of this machine, whatever the address of a
/// request says.
pub fn client_by(socket: &Path) -> ClientBuilder {
    builder().unix_socket(socket.to_owned())
}

fn builder() -> ClientBuilder {
    // The one choice of cryptography for every TLS connection of the process.
    // It fails only where one was chosen before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// Whether the address names this machine itself. Only by its form: no name
/// is looked up.
fn is_this_machine(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let name = host.strip_suffix('.').unwrap_or(host);
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        // Connecting to the unspecified address reaches the machine itself, too.
        Ok(ip) => [ip, ip.to_canonical()].iter().any(|ip| ip.is_loopback() || ip.is_unspecified()),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        let own = |text: &str| is_this_machine(&Url::parse(text).unwrap());
        for text in [
            "http://localhost:8080/v1",
            "http://LOCALHOST./",
            "http://models.localhost",
            "http://127.0.0.1",
            "http://127.8.9.1:1",
            "http://127.1/",
            "http://0x7f000001/",
            "http://[::1]:9/",
            "https://[::ffff:127.0.0.1]/",
            "http://0.0.0.0:80",
            "http://[::]",
        ] {
            assert!(own(text), "{text}");
        }
        for text in [
            "https://api.example.com",
            "http://10.0.0.1",
            "http://localhost.example.com",
            "http://notlocalhost",
            "http://[fe80::1]/",
            "http://128.0.0.1",
        ] {
            assert!(!own(text), "{text}");
        }
    }
}
