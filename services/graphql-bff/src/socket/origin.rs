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
    is_own(origin, headers) || chassis::origin::may_call(origin, listed)
}

fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    own.is_some_and(|own| own.eq_ignore_ascii_case(authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(origin: Option<&str>, listed: &str) -> bool {
        let mut headers = HeaderMap::from_iter([(HOST, "books.example:5300".parse().unwrap())]);
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        origin_allowed(&headers, &[listed.to_owned()])
    }

    #[test]
    fn pages_of_other_sites_stay_outside() {
        for (origin, may) in [
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
            assert_eq!(allowed(origin, "https://shop.example"), may, "{origin:?}");
        }
    }

    #[test]
    fn a_star_lets_every_page_in() {
        assert!(allowed(Some("https://evil.example"), "*"));
    }
}
