//! Streams of books and of answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog::Config;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::{Reason, field_errors};
use tonic::Request;

use crate::{Suite, assert_refused, message, new_book};

fn every_book(limit: i32) -> Request<pb::StreamBooksRequest> {
    Request::new(pb::StreamBooksRequest { delay_ms: 0, limit, batch_size: 0 })
}

fn query(query: &str, limit: i32) -> pb::SearchBooksRequest {
    pb::SearchBooksRequest { query: query.into(), limit }
}

/// The titles that one query finds.
async fn search(suite: &Suite, text: &str, limit: i32) -> Vec<String> {
    let answers = message(suite.client().search_books(stream::iter([query(text, limit)])).await);
    let answers: Vec<_> = answers.try_collect().await.unwrap();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].query, text);
    answers[0].books.iter().map(|book| book.title.clone()).collect()
}

#[tokio::test]
async fn a_stream_gives_every_book_in_order() {
    let suite = Suite::new(&Config { books: 230, ..Config::default() });
    suite.delete(100, None).await.unwrap();
    let expected: Vec<i32> = (1..=230).filter(|id| *id != 100).collect();
    for (limit, count) in [(0, 229), (1, 1), (100, 100), (101, 101), (500, 229)] {
        let books = message(suite.client().stream_books(every_book(limit)).await);
        let ids: Vec<i32> = books.map_ok(|m| m.book.unwrap().id).try_collect().await.unwrap();
        assert_eq!(ids, expected[..count], "limit {limit}");
    }
    assert_eq!(suite.catalog.open_streams(), 0);
}

#[tokio::test]
async fn a_stream_in_batches_gives_the_same_books() {
    let suite = Suite::new(&Config { books: 1_234, ..Config::default() });
    suite.delete(100, None).await.unwrap();
    let expected: Vec<i32> = (1..=1_234).filter(|id| *id != 100).collect();
    for (batch_size, limit) in [(2, 0), (7, 0), (100, 0), (1_000, 0), (10, 25), (1_000, 3)] {
        let request = pb::StreamBooksRequest { delay_ms: 0, limit, batch_size };
        let messages = message(suite.client().stream_books(request).await);
        let messages: Vec<_> = messages.try_collect().await.unwrap();
        let sizes: Vec<_> = messages.iter().map(|m| m.books.len()).collect();
        let (last, others) = sizes.split_last().unwrap();
        let full = batch_size.try_into().unwrap();
        assert!(others.iter().all(|size| *size == full) && (1..=full).contains(last), "{sizes:?}");
        assert!(messages.iter().all(|m| m.book.is_none()));
        let ids: Vec<i32> = messages.iter().flat_map(|m| m.books.iter().map(|book| book.id)).collect();
        let count = if limit == 0 { expected.len() } else { limit.try_into().unwrap() };
        assert_eq!(ids, expected[..count], "{batch_size} {limit}");
    }
    assert_eq!(suite.catalog.open_streams(), 0);
}

#[tokio::test]
async fn a_stream_reads_the_catalog_at_the_pace_of_its_reader() {
    let suite = Suite::new(&Config { books: 230, ..Config::default() });
    let mut books = message(suite.catalog.stream_books(every_book(0)).await);
    books.next().await.unwrap().unwrap();
    // Added and removed while the stream is on its way: it has not read so far yet.
    suite.delete(230, None).await.unwrap();
    let added = suite.create(new_book(900)).await.unwrap();
    let rest: Vec<i32> = books.map_ok(|m| m.book.unwrap().id).try_collect().await.unwrap();
    assert_eq!(rest[rest.len() - 2..], [229, added.id]);
}

#[tokio::test]
async fn a_stream_pauses_between_books_and_not_before_the_first() {
    let suite = Suite::seeded();
    for (delay_ms, waits) in [(0, false), (60_000, true)] {
        let request = pb::StreamBooksRequest { delay_ms, limit: 3, batch_size: 0 };
        let mut books = message(suite.catalog.stream_books(Request::new(request)).await);
        assert!(books.next().now_or_never().is_some());
        assert_eq!(books.next().now_or_never().is_none(), waits, "{delay_ms} ms");
    }
    let request = pb::StreamBooksRequest { delay_ms: 1, limit: 3, batch_size: 0 };
    let books = message(suite.catalog.stream_books(Request::new(request)).await);
    assert_eq!(books.count().await, 3);
}

#[tokio::test]
async fn a_reader_who_leaves_ends_the_stream() {
    let suite = Suite::seeded();
    let mut books = message(suite.client().stream_books(every_book(0)).await);
    books.message().await.unwrap().unwrap();
    assert_eq!(suite.catalog.open_streams(), 1);
    drop(books);
    assert_eq!(suite.catalog.open_streams(), 0);
}

#[tokio::test]
async fn a_search_finds_words_in_titles_and_names_in_any_case() {
    let suite = Suite::seeded();
    assert_eq!(search(&suite, "EMBER", 0).await, ["Ember"]);
    assert_eq!(search(&suite, "lindqvist", 0).await.len(), 5, "all books of the author");
    assert_eq!(search(&suite, " mara  ember ", 0).await, ["Ember"], "one word in the title, one in the name");
    assert_eq!(search(&suite, "TOMÁS", 0).await.len(), 5);
    assert_eq!(search(&suite, "ember nobody", 0).await, [""; 0]);
    assert_eq!(search(&suite, "a", 3).await.len(), 3);
    let many = Suite::new(&Config { books: 2_500, ..Config::default() });
    assert_eq!(search(&many, "ember", 0).await.len(), 20, "the default");
    assert_eq!(search(&many, "ember", 1_000).await.len(), 50, "one for every volume");
    assert_eq!(search(&many, "e", 1_000).await.len(), 100, "the most");
    assert_eq!(search(&many, "haven 50", 0).await, ["Haven 50"], "the very last book");
}

#[tokio::test]
async fn answers_come_in_the_order_of_their_queries() {
    let suite = Suite::seeded();
    let texts = ["salt", "ember", "nothing like it", "tides", "ember"];
    let answers = message(suite.client().search_books(stream::iter(texts.map(|text| query(text, 0)))).await);
    let answers: Vec<_> = answers.try_collect().await.unwrap();
    assert_eq!(answers.iter().map(|a| a.query.as_str()).collect::<Vec<_>>(), texts);
    assert_eq!(answers.iter().map(|a| a.books.len()).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
    assert_eq!(suite.catalog.open_streams(), 0);
}

#[tokio::test]
async fn a_query_that_breaks_a_rule_ends_the_stream() {
    let suite = Suite::seeded();
    for (bad, rule) in [
        (query("", 0), "query: must have 1 to 200 characters, had 0"),
        (query(&"x".repeat(201), 0), "query: must have 1 to 200 characters, had 201"),
        (query(" \t", 0), "query: must have a word"),
        (query("x", -1), "limit: must not be negative, was -1"),
    ] {
        let queries = stream::iter([query("ember", 0), bad, query("salt", 0)]);
        let mut answers = message(suite.client().search_books(queries).await);
        assert_eq!(answers.message().await.unwrap().unwrap().books.len(), 1);
        let status = assert_refused(answers.message().await, Reason::InvalidField);
        let fields = field_errors(&status);
        assert_eq!(format!("{}: {}", fields[0].field, fields[0].rule), rule);
        assert!(answers.message().await.is_ok_and(|more| more.is_none()));
    }
}

#[tokio::test]
async fn queries_are_read_no_faster_than_answers_are_taken() {
    let suite = Suite::seeded();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let endless = stream::repeat_with(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        query("a", 100)
    });
    let mut answers = message(suite.client().search_books(endless).await);
    answers.message().await.unwrap().unwrap();
    let after_one = asked.load(Ordering::Relaxed);
    tokio::task::yield_now().await;
    assert_eq!(asked.load(Ordering::Relaxed), after_one, "nobody works while nobody reads");
    drop(answers);
    assert_eq!(suite.catalog.open_streams(), 0);
    assert_eq!(Arc::strong_count(&asked), 1, "the queries are dropped with the answers");
}

#[tokio::test]
async fn a_search_shares_the_thread_and_ends_with_its_caller() {
    let suite = Suite::new(&Config { books: 10_000, ..Config::default() });
    let mut answers = message(suite.client().search_books(stream::iter([query("no such words", 0)])).await);
    // Ten steps of a thousand books: the first poll must not do them all.
    assert!(answers.next().now_or_never().is_none());
    assert_eq!(suite.catalog.open_streams(), 1);
    drop(answers);
    assert_eq!(suite.catalog.open_streams(), 0);
}
