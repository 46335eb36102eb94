//! Which pages may open a socket.
//!
//! Browsers let a page of any site open a WebSocket to any other, and name the page's origin; asking first, as for
//! HTTP, they don't. So the server looks.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// Whether the caller is no page, or a page of this server, of this machine, or of a listed origin.
pub(crate) fn origin_allowed(headers: &HeaderMap, listed: &[String]) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    if listed.iter().any(|listed| listed.trim_end_matches('/').eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    own.is_some_and(|own| own.eq_ignore_ascii_case(authority)) || is_loopback(authority)
}

fn is_loopback(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<http::uri::Authority>() else { return false };
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_stay_outside() {
        let listed = ["https://shop.example".to_owned()];
        for (origin, allowed) in [
            (None, true),
            (Some("http://books.example:5300"), true),
            (Some("http://localhost:3000"), true),
            (Some("http://127.0.0.1"), true),
            (Some("http://[::1]:8080"), true),
            (Some("https://shop.example"), true),
            (Some("http://shop.example"), false),
            (Some("http://books.example"), false),
            (Some("http://localhost.evil.example"), false),
            (Some("http://127.0.0.1.evil.example"), false),
            (Some("http://user@evil.example"), false),
            (Some("null"), false),
            (Some("https://evil.example"), false),
        ] {
            let mut headers = HeaderMap::from_iter([(HOST, "books.example:5300".parse().unwrap())]);
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(origin_allowed(&headers, &listed), allowed, "{origin:?}");
        }
    }
}
