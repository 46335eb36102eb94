//! Validators: what is the same is not sent again, what has changed is not overwritten.

use axum::Router;
use axum::body::Body;
use proto::{Reason, Refusal};

use crate::fakes::{Mood, Shop};
use crate::http::{Reply, edge, get, get_with, request, send};

const BOOK: &str = "/api/v1/books/1";

#[tokio::test]
async fn every_read_has_a_strong_tag_that_stays_the_same() {
    let edge = edge(Shop::default());
    for path in [
        BOOK,
        "/api/v1/books",
        "/api/v1/authors",
        "/api/v1/authors/1",
        "/api/v1/books/1/stock",
        "/api/v1/books/1/reviews?limit=2",
        "/api/v1/reservations/rsv_1",
        "/api/v1/orders",
        "/api/v1/orders/ord_1",
        "/api/v1/screens/book-detail/1",
    ] {
        let reply = get(&edge, path).await;
        let tag = reply.header("etag");
        assert!(tag.len() == 18 && tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag}");
        assert_eq!(reply.header("cache-control"), "no-cache");
        assert_eq!(get(&edge, path).await.header("etag"), tag);

        let same = get_with(&edge, path, &[("if-none-match", tag)]).await;
        assert_eq!(same.status, 304, "{path}");
        assert!(same.body.is_empty());
        assert_eq!((same.header("etag"), same.header("cache-control")), (tag, "no-cache"));
        assert_eq!(same.header("content-type"), "");
    }
    assert_ne!(get(&edge, BOOK).await.header("etag"), get(&edge, "/api/v1/books/2").await.header("etag"));
}

#[tokio::test]
async fn if_none_match_compares_weakly_over_the_whole_list() {
    let edge = edge(Shop::default());
    let tag = get(&edge, BOOK).await.header("etag").to_owned();
    for (headers, status) in [
        (vec![tag.clone()], 304),
        (vec![format!("W/{tag}")], 304),
        (vec![format!("\"x,y\", W/\"z\" ,{tag}")], 304),
        (vec!["\"x\"".to_owned(), tag.clone()], 304),
        (vec!["*".to_owned()], 304),
        (vec!["\"0000000000000000\"".to_owned()], 200),
        (vec![tag.trim_matches('"').to_owned()], 200),
        (vec![format!("w/{tag}")], 200),
        (vec![String::new()], 200),
    ] {
        let headers: Vec<_> = headers.iter().map(|value| ("if-none-match", value.as_str())).collect();
        assert_eq!(get_with(&edge, BOOK, &headers).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_unchanged() {
    let reply = get_with(&edge(Shop::default()), "/api/v1/books/99", &[("if-none-match", "*")]).await;
    reply.assert_problem(404, "BOOK_NOT_FOUND");
}

async fn patch(edge: &Router, path: &str, if_match: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("if-match", if_match)];
    send(edge, request("PATCH", path, &headers, r#"{"title":"Embers"}"#)).await
}

#[tokio::test]
async fn a_change_goes_through_for_the_book_that_is_meant() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let tag = get(&edge, BOOK).await.header("etag").to_owned();
    for given in [tag.clone(), "*".to_owned(), format!("\"other\", {tag}")] {
        let reply = patch(&edge, BOOK, &given).await;
        assert_eq!(reply.status, 200, "{given}");
        assert!(shop.last().contains("expected_version: Some(7)"), "{}", shop.last());
        assert_eq!(reply.header("etag").len(), 18);
        assert_ne!(reply.header("etag"), tag);
    }
    let reply = send(&edge, request("DELETE", BOOK, &[("if-match", &tag)], Body::empty())).await;
    assert_eq!(reply.status, 204);
    assert!(shop.last().contains("expected_version: Some(7)"), "{}", shop.last());
}

#[tokio::test]
async fn a_change_of_another_book_than_the_one_meant_is_refused() {
    let shop = Shop::default();
    let edge = edge(shop.clone());
    let weak = format!("W/{}", get(&edge, BOOK).await.header("etag"));
    for given in ["\"0000000000000000\"", &weak, "nonsense", ""] {
        patch(&edge, BOOK, given).await.assert_problem(412, "VERSION_MISMATCH");
        let reply = send(&edge, request("DELETE", BOOK, &[("if-match", given)], Body::empty())).await;
        reply.assert_problem(412, "VERSION_MISMATCH");
    }
    assert!(!shop.asked.lock().unwrap().iter().any(|m| m.starts_with("Update") || m.starts_with("Delete")));
    patch(&edge, "/api/v1/books/99", "*").await.assert_problem(404, "BOOK_NOT_FOUND");
}

#[tokio::test]
async fn a_change_that_comes_in_between_is_refused_by_the_service() {
    let refused = Refusal::new(Reason::VersionMismatch, "book 1 has version 8").into();
    let edge = edge(Shop { mood: Mood::Refusing(refused), ..Shop::default() });
    patch(&edge, BOOK, "*").await.assert_problem(412, "VERSION_MISMATCH");
}
