//! Network errors in words that name the cause. They contain no path, no query and no token.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::CertificateError;
use url::Url;

/// The time limit for opening a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Whether the host is unknown, or refuses connections.
pub fn is_unreachable(error: &reqwest::Error) -> bool {
    let is_refused = || find::<io::Error>(error).is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    find::<rustls::Error>(error).is_none() && (error.is_dns() || (error.is_connect() && is_refused()))
}

/// `origin` is scheme, host and port.
pub fn describe(error: &reqwest::Error, origin: &str, deadline: Duration) -> String {
    if let Some(tls) = find::<rustls::Error>(error) {
        return format!("no secure connection to {origin}: {}", tls_cause(tls, cfg!(target_os = "macos")));
    }
    let origin = &reached(origin);
    if error.is_dns() {
        return format!("the host of {origin} cannot be found: {}", root(error));
    }
    if error.is_connect() {
        let kind = find::<io::Error>(error).map(io::Error::kind);
        return match kind {
            Some(io::ErrorKind::ConnectionRefused) => format!("{origin} refused the connection: nothing listens there"),
            Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) if origin.starts_with("https:") => {
                format!(
                    "no secure connection to {origin}: the server ended the connection in the handshake: check that it speaks TLS"
                )
            }
            _ if error.is_timeout() => format!("no connection to {origin} within {CONNECT_TIMEOUT:?}"),
            _ => format!("no connection to {origin}: {}", root(error)),
        };
    }
    if error.is_timeout() {
        return format!("no whole answer from {origin} within {deadline:?}");
    }
    if error.is_body() || error.is_decode() {
        return format!("the answer from {origin} broke off or cannot be decoded: {}", root(error));
    }
    format!("the connection to {origin} broke: {}", root(error))
}

/// `origin`, and the proxy that the environment may put before it: either can fail. Annals asks its own machine without a proxy.
fn reached(origin: &str) -> String {
    if Url::parse(origin).is_ok_and(|url| is_loopback(&url)) {
        return origin.to_owned();
    }
    let of_scheme =
        if origin.starts_with("https:") { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match of_scheme.into_iter().chain(["ALL_PROXY", "all_proxy"]).find(is_set) {
        Some(variable) => format!("{origin}, or the proxy of {variable},"),
        None => origin.to_owned(),
    }
}

pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The fault of a certificate, and the remedy; for other causes the library's own words. On macOS the keychain alone says which
/// authorities are trusted.
fn tls_cause(error: &rustls::Error, is_macos: bool) -> String {
    let rustls::Error::InvalidCertificate(why) = error else { return error.to_string() };
    let words = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: ask the service's operator to renew it, or check this machine's clock"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: check this machine's clock"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host: check the address"
        }
        CertificateError::UnknownIssuer if is_macos => {
            "its certificate is signed by an authority that this machine does not trust: add that authority's \
             certificate to the System keychain, and set it to be trusted there"
        }
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an authority that this machine does not trust: install that authority's \
             certificate, or name its file in SSL_CERT_FILE"
        }
        _ => return error.to_string(),
    };
    words.to_owned()
}

/// The last error of type `E` in the chain, which names the cause. An io error hides its cause one level deeper.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let (mut next, mut found) = (Some(error), None);
    while let Some(error) = next {
        found = error.downcast_ref::<E>().or(found);
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    found
}

/// The last error of the chain: the outer errors only say that something failed.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_authority_is_reported_with_the_place_where_this_system_keeps_authorities() {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        for (is_macos, place, other) in [(true, "keychain", "SSL_CERT_FILE"), (false, "SSL_CERT_FILE", "keychain")] {
            let said = tls_cause(&unknown, is_macos);
            assert!(said.starts_with("its certificate is signed by an authority that this machine does not trust: "));
            assert!(said.contains(place) && !said.contains(other), "{said}");
        }
    }
}
