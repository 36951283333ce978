//! Web origins: scheme, host and port, in the one form that browsers send.

/// An origin such as `https://teams.example.com` or `http://127.0.0.1:8765`,
/// lower case, without the scheme's own port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    secure: bool,
    host: String,
}

impl Origin {
    /// Reads an origin: `http` or `https`, a host, perhaps a port, and nothing
    /// after it (one closing slash is forgiven). None: it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (scheme, host) = text.split_once("://")?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        Self::new(secure, host)
    }

    /// From a scheme and a `Host` header's value.
    pub fn new(secure: bool, host: &str) -> Option<Self> {
        let host = host.to_ascii_lowercase();
        let (name, port) = split_port(&host)?;
        let host = match port {
            Some(port) if port != if secure { 443 } else { 80 } => format!("{name}:{port}"),
            _ => name.to_owned(),
        };
        Some(Self { secure, host })
    }

    /// Whether the scheme is `https`.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The value of the `Host` header of a request to this origin.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", if self.secure { "https" } else { "http" }, self.host)
    }
}

/// Splits `name:port`; None: it is neither a name nor an address.
fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let end = rest.find(']')?;
        rest[..end].parse::<std::net::Ipv6Addr>().ok()?;
        let (name, rest) = host.split_at(end + 2);
        (name, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
        if name.is_empty() || !name.chars().all(good) {
            return None;
        }
        (name, port)
    };
    match port {
        None => Some((name, None)),
        Some(port) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            Some((name, Some(port.parse().ok()?)))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn one_form_for_the_same_origin() {
        for (text, form) in [
            ("https://Teams.Example.com", "https://teams.example.com"),
            ("https://teams.example.com:443/", "https://teams.example.com"),
            ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
            ("http://[::1]:8765", "http://[::1]:8765"),
            ("http://localhost:80", "http://localhost"),
        ] {
            assert_eq!(Origin::parse(text).map(|o| o.to_string()).as_deref(), Some(form), "{text}");
        }
    }

    #[test]
    fn whatever_is_not_an_origin_is_none() {
        for text in [
            "",
            "null",
            "teams.example.com",
            "ftp://x",
            "https://",
            "https://a/b",
            "https://a:b",
            "https://a:",
            "https://a:99999",
            "https://user@a",
            "https://a?b",
            "http://[::1",
            "http://[zz]:1",
            "https://a b",
            "https://ä.example",
        ] {
            assert!(Origin::parse(text).is_none(), "{text}");
        }
    }
}
