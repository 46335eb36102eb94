//! Uploads of books.

use std::sync::Arc;

use catalog::Config;
use futures_util::stream;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::{Reason, Refusal, field_errors};
use tokio::sync::Notify;
use tonic::{Request, Status};

use crate::inventory::Mode;
use crate::{Suite, assert_refused, message, new_book};

fn upload(book: pb::CreateBookRequest) -> pb::ImportBooksRequest {
    pb::ImportBooksRequest { book: Some(book), ..Default::default() }
}

async fn import(
    suite: &Suite,
    books: Vec<pb::ImportBooksRequest>,
) -> Result<pb::ImportBooksResponse, Status> {
    Ok(suite.client().import_books(stream::iter(books)).await?.into_inner())
}

/// Index and reason of each refusal.
fn reasons(response: &pb::ImportBooksResponse) -> Vec<(i32, &str)> {
    response.refusals.iter().map(|r| (r.index, r.reason.as_str())).collect()
}

#[tokio::test]
async fn a_long_upload_is_registered_by_chunks() {
    let suite = Suite::seeded();
    let response = import(&suite, (101..=2_600).map(|n| upload(new_book(n))).collect()).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (2_500, 0));
    assert_eq!(suite.inventory.registrations(), [1_000, 1_000, 500]);
    assert_eq!(suite.ids_by_pages_of(1_000).await, (1..=2_550).collect::<Vec<_>>());
    assert_eq!(import(&suite, Vec::new()).await.unwrap(), pb::ImportBooksResponse::default());
}

#[tokio::test]
async fn refused_books_are_reported_and_do_not_stop_the_rest() {
    let suite = Suite::seeded();
    // Known to inventory under an id of which catalog knows nothing: only inventory can refuse these.
    suite.inventory.know(7_001, &proto::seed::sku(203));
    suite.inventory.know(7_002, &proto::seed::sku(206));
    let books = vec![
        upload(new_book(201)),
        upload(new_book(1)),
        upload(pb::CreateBookRequest { title: String::new(), ..new_book(202) }),
        upload(new_book(203)),
        upload(pb::CreateBookRequest { author_id: 11, ..new_book(204) }),
        pb::ImportBooksRequest::default(),
        upload(new_book(205)),
        upload(new_book(201)),
        upload(new_book(206)),
        upload(new_book(207)),
    ];
    let response = import(&suite, books).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (3, 7));
    assert_eq!(
        reasons(&response),
        [
            (1, "SKU_TAKEN"),
            (2, "INVALID_FIELD"),
            (3, "SKU_TAKEN"),
            (4, "AUTHOR_NOT_FOUND"),
            (5, "INVALID_FIELD"),
            (7, "SKU_TAKEN"),
            (8, "SKU_TAKEN"),
        ]
    );
    assert_eq!(response.refusals[1].message, "title: must have 1 to 300 characters, had 0");
    assert_eq!(response.refusals[4].message, "book: must be set");
    for n in [201, 205, 207] {
        assert_eq!(suite.by_sku(&proto::seed::sku(n)).await.len(), 1, "{n}");
    }
    for n in [202, 203, 204, 206] {
        assert_eq!(suite.by_sku(&proto::seed::sku(n)).await, [], "{n}");
    }
}

#[tokio::test]
async fn the_first_hundred_refusals_are_named_and_all_are_counted() {
    let suite = Suite::seeded();
    let books =
        (0..3_000).map(|n| upload(new_book(if n % 2 == 0 { 1 + n % 50 } else { 1_000 + n }))).collect();
    let response = import(&suite, books).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (1_500, 1_500));
    let indices: Vec<i32> = response.refusals.iter().map(|r| r.index).collect();
    assert_eq!(indices, (0..100).map(|n| 2 * n).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_outage_refuses_the_chunk_and_not_the_upload() {
    let suite = Suite::seeded();
    suite.inventory.set(Mode::Fail(Status::unavailable("connection refused")));
    let books = || (101..=105).map(|n| upload(new_book(n))).collect::<Vec<_>>();
    let response = import(&suite, books()).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (0, 5));
    assert!(response.refusals.iter().all(|r| r.reason == "UPSTREAM_UNAVAILABLE"));
    assert_eq!(suite.inventory.registrations(), [5], "halving would not help");

    suite.inventory.set(Mode::Fail(Refusal::new(Reason::DeadlineExceeded, "late").into()));
    assert_refused(import(&suite, books()).await, Reason::DeadlineExceeded);
    suite.inventory.set(Mode::Answer);
    assert_eq!(import(&suite, books()).await.unwrap().imported_count, 5, "nothing was left behind");
}

#[tokio::test]
async fn an_upload_stops_at_the_room_that_is_left() {
    let suite = Suite::new(&Config { max_books: 53, ..Config::default() });
    let response = import(&suite, (101..=105).map(|n| upload(new_book(n))).collect()).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (3, 2));
    assert_eq!(reasons(&response), [(3, "STORE_FULL"), (4, "STORE_FULL")]);
}

#[tokio::test]
async fn a_broken_off_upload_keeps_the_chunks_before() {
    let suite = Suite::new(&Config { max_books: 1_060, ..Config::default() });
    let read = Arc::new(Notify::new());
    let told = read.clone();
    // The stream stops within the second chunk and says when it is asked for more.
    let books = stream::unfold(101, move |n| {
        let told = told.clone();
        async move {
            if n == 1_106 {
                told.notify_one();
                std::future::pending::<()>().await;
            }
            Some((upload(new_book(n)), n + 1))
        }
    });
    let mut client = suite.client();
    let call = tokio::spawn(async move { client.import_books(books).await });
    read.notified().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(suite.ids_by_pages_of(1_000).await.len(), 1_050);
    // Those in hand took five of the ten places that were left, and gave them back.
    for n in 1_101..1_111 {
        suite.create(new_book(n)).await.unwrap();
    }
}

fn batch(books: Vec<pb::CreateBookRequest>, validate_only: bool) -> Request<pb::BatchCreateBooksRequest> {
    Request::new(pb::BatchCreateBooksRequest { books, validate_only })
}

#[tokio::test]
async fn a_batch_is_an_upload_in_one_message() {
    let suite = Suite::seeded();
    let books = vec![
        new_book(201),
        new_book(1),
        pb::CreateBookRequest { author_id: 11, ..new_book(202) },
        new_book(201),
        new_book(203),
    ];
    let reply = message(suite.catalog.batch_create_books(batch(books, false)).await);
    assert_eq!((reply.imported_count, reply.refused_count), (2, 3));
    let told: Vec<_> = reply.refusals.iter().map(|r| (r.index, r.reason.as_str())).collect();
    assert_eq!(told, [(1, "SKU_TAKEN"), (2, "AUTHOR_NOT_FOUND"), (3, "SKU_TAKEN")]);
    assert_eq!(suite.inventory.registrations(), [2]);
    assert_eq!(suite.by_sku(&proto::seed::sku(203)).await.len(), 1);

    let many = |count| (1_000..1_000 + count).map(new_book).collect::<Vec<_>>();
    let refused = suite.catalog.batch_create_books(batch(many(1_001), false)).await;
    let status = assert_refused(refused, Reason::InvalidField);
    assert_eq!(field_errors(&status)[0].rule, "must have at most 1000 items, had 1001");
    let reply = message(suite.catalog.batch_create_books(batch(many(1_000), false)).await);
    assert_eq!(reply.imported_count, 1_000);
    let reply = message(suite.catalog.batch_create_books(batch(Vec::new(), false)).await);
    assert_eq!(reply, pb::BatchCreateBooksResponse::default());
}

#[tokio::test]
async fn what_is_only_checked_is_not_added() {
    let suite = Suite::new(&Config { max_books: 51, ..Config::default() });
    suite.inventory.set(Mode::Fail(Status::unavailable("nobody is asked")));
    let books = vec![
        new_book(201),
        new_book(50),
        pb::CreateBookRequest { author_id: 11, ..new_book(202) },
        pb::CreateBookRequest { title: String::new(), ..new_book(203) },
        new_book(201),
    ];
    let reply = message(suite.catalog.batch_create_books(batch(books.clone(), true)).await);
    assert_eq!((reply.imported_count, reply.refused_count), (2, 3));
    let reasons: Vec<_> = reply.refusals.iter().map(|r| (r.index, r.reason.as_str())).collect();
    assert_eq!(reasons, [(1, "SKU_TAKEN"), (2, "AUTHOR_NOT_FOUND"), (3, "INVALID_FIELD")]);
    let upload = pb::ImportBooksRequest { book: None, books, validate_only: true };
    let streamed = import(&suite, vec![upload]).await.unwrap();
    assert_eq!((streamed.imported_count, streamed.refusals), (reply.imported_count, reply.refusals));
    assert_eq!(suite.by_sku(&proto::seed::sku(201)).await, []);
    assert_eq!(suite.inventory.registrations(), [0; 0]);

    suite.inventory.set(Mode::Answer);
    suite.create(new_book(201)).await.unwrap();
    let reply = message(suite.catalog.batch_create_books(batch(vec![new_book(204)], true)).await);
    assert_eq!(reply.refusals[0].reason, "STORE_FULL");
}

#[tokio::test]
async fn messages_of_an_upload_hold_any_number_of_books() {
    let suite = Suite::seeded();
    let many = |from: i32, count: i32| (from..from + count).map(new_book).collect::<Vec<_>>();
    let message = |book, books| pb::ImportBooksRequest { book, books, validate_only: false };
    let messages = vec![
        message(Some(new_book(101)), many(102, 99)),
        message(None, Vec::new()),
        message(None, many(201, 1_000)),
        message(Some(new_book(1)), vec![new_book(2), new_book(1_201)]),
    ];
    let response = import(&suite, messages).await.unwrap();
    assert_eq!((response.imported_count, response.refused_count), (1_101, 3));
    assert_eq!(reasons(&response), [(100, "INVALID_FIELD"), (1_101, "SKU_TAKEN"), (1_102, "SKU_TAKEN")]);
    assert_eq!(suite.inventory.registrations(), [999, 102]);

    let too_many = vec![message(Some(new_book(3_000)), Vec::new()), message(None, many(4_000, 1_001))];
    assert_refused(import(&suite, too_many).await, Reason::InvalidField);
    assert_eq!(suite.by_sku(&proto::seed::sku(4_000)).await, []);
}
