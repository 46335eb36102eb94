//! Whose web pages may call.

use std::net::IpAddr;

use http::uri::Authority;

/// Whether a page of this origin may call: one from loopback, or one of the listed, `scheme://host[:port]`, where `*`
/// stands for all.
pub fn may_call(origin: &str, listed: &[String]) -> bool {
    all(listed)
        || listed.iter().any(|listed| listed.trim_end_matches('/').eq_ignore_ascii_case(origin))
        || is_loopback(origin)
}

/// Whether pages of any origin may call.
pub(crate) fn all(listed: &[String]) -> bool {
    listed.iter().any(|listed| listed == "*")
}

fn is_loopback(origin: &str) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_loopback_and_of_listed_origins_may_call() {
        let listed = ["https://shop.example".to_owned(), "https://desk.example:8443/".to_owned()];
        for (origin, may) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1:5300", true),
            ("http://[::1]:5300", true),
            ("https://shop.example", true),
            ("https://SHOP.example", true),
            ("https://desk.example:8443", true),
            ("http://shop.example", false),
            ("https://shop.example:8443", false),
            ("https://shop.example.evil.example", false),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example:80", false),
            ("http://localhost@evil.example", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(may_call(origin, &listed), may, "{origin}");
            assert!(may_call(origin, &["*".to_owned()]), "{origin}");
        }
    }
}
