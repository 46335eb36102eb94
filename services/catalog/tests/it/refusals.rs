//! Every refusal, by its reason and its fields.

use catalog::Config;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::{Reason, field_errors};
use tonic::{Request, Status};

use crate::{Suite, assert_refused, eur, new_book};

/// Asserts that exactly these fields were refused, with these rules.
#[track_caller]
fn check<T>(result: Result<T, Status>, fields: &[&str]) {
    let status = assert_refused(result, Reason::InvalidField);
    let named: Vec<String> =
        field_errors(&status).into_iter().map(|f| format!("{}: {}", f.field, f.rule)).collect();
    assert_eq!(named, fields);
}

#[tokio::test]
async fn ids_must_be_positive() {
    let catalog = Suite::seeded().catalog;
    for id in [0, -1, i32::MIN] {
        let rule = format!("book_id: must be positive, was {id}");
        check(catalog.get_book(Request::new(pb::GetBookRequest { book_id: id })).await, &[&rule]);
        let delete = pb::DeleteBookRequest { book_id: id, expected_version: None };
        check(catalog.delete_book(Request::new(delete)).await, &[&rule]);
        let update = pb::UpdateBookRequest { book_id: id, ..Default::default() };
        check(catalog.update_book(Request::new(update)).await, &[&rule]);
        let rule = format!("author_id: must be positive, was {id}");
        check(catalog.get_author(Request::new(pb::GetAuthorRequest { author_id: id })).await, &[&rule]);
    }
}

#[tokio::test]
async fn all_broken_fields_are_named() {
    let catalog = Suite::seeded().catalog;
    let detail = pb::GetBookDetailRequest { book_id: 0, review_count: 101 };
    check(
        catalog.get_book_detail(Request::new(detail)).await,
        &["book_id: must be positive, was 0", "review_count: must be from 0 to 100, was 101"],
    );
    let list = pb::ListReviewsRequest { book_id: -1, page_size: -5, page_token: String::new() };
    check(
        catalog.list_reviews(Request::new(list)).await,
        &["book_id: must be positive, was -1", "page_size: must not be negative, was -5"],
    );
    let batch = pb::BatchGetBooksRequest {
        book_ids: vec![1, 0],
        skus: vec!["9790000000018".into(), "9790000000019".into()],
        include_authors: false,
        review_count: -1,
    };
    check(
        catalog.batch_get_books(Request::new(batch)).await,
        &[
            "book_ids[1]: must be positive, was 0",
            "skus[1]: must be 13 digits with a right check digit",
            "review_count: must be from 0 to 100, was -1",
        ],
    );
    let stream = pb::StreamBooksRequest { delay_ms: 60_001, limit: -1, batch_size: 1_001 };
    check(
        catalog.stream_books(Request::new(stream)).await,
        &[
            "delay_ms: must be from 0 to 60000, was 60001",
            "limit: must not be negative, was -1",
            "batch_size: must be from 0 to 1000, was 1001",
        ],
    );
    let details = pb::ListBookDetailsRequest { page_size: 1_000, review_count: 11, ..Default::default() };
    check(
        catalog.list_book_details(Request::new(details)).await,
        &["review_count: must be at most 10 for 1000 books, was 11"],
    );
    let details = pb::ListBookDetailsRequest { page_size: -1, review_count: 101, ..Default::default() };
    check(
        catalog.list_book_details(Request::new(details)).await,
        &["page_size: must not be negative, was -1", "review_count: must be from 0 to 100, was 101"],
    );
    check(
        catalog.create_book(Request::new(Default::default())).await,
        &[
            "sku: must be 13 digits with a right check digit",
            "title: must have 1 to 300 characters, had 0",
            "author_id: must be positive, was 0",
            "price: must be set",
        ],
    );
    let usd = proto::common::v1::Money { amount_minor: 100_000_001, currency: "U".repeat(100) };
    check(
        catalog.create_book(Request::new(pb::CreateBookRequest { price: Some(usd), ..new_book(900) })).await,
        &[
            "price.currency: must be EUR, was \"UUUUUUUUUU\"",
            "price.amount_minor: must be from 0 to 100000000, was 100000001",
        ],
    );
    let update = pb::UpdateBookRequest {
        book_id: 1,
        title: Some("x".repeat(301)),
        author_id: Some(0),
        price: Some(eur(-1)),
        expected_version: None,
    };
    check(
        catalog.update_book(Request::new(update)).await,
        &[
            "title: must have 1 to 300 characters, had 301",
            "author_id: must be positive, was 0",
            "price.amount_minor: must be from 0 to 100000000, was -1",
        ],
    );
    check(
        catalog.add_review(Request::new(Default::default())).await,
        &[
            "book_id: must be positive, was 0",
            "rating: must be from 1 to 5, was 0",
            "reviewer: must have 1 to 80 characters, had 0",
            "text: must have 1 to 2000 characters, had 0",
        ],
    );
}

#[tokio::test]
async fn a_batch_names_a_thousand_at_most() {
    let catalog = Suite::seeded().catalog;
    let ids: Vec<i32> = (1..=1_001).collect();
    let rule = "must have at most 1000 items, had 1001";
    let batch = pb::BatchGetBooksRequest { book_ids: ids.clone(), ..Default::default() };
    check(catalog.batch_get_books(Request::new(batch)).await, &[&format!("book_ids: {rule}")]);
    let both = pb::BatchGetBooksRequest {
        book_ids: ids[..1_000].to_vec(),
        skus: vec![proto::seed::sku(1)],
        ..Default::default()
    };
    check(
        catalog.batch_get_books(Request::new(both)).await,
        &[&format!("book_ids: {rule}"), &format!("skus: {rule}")],
    );
    let batch = pb::BatchGetAuthorsRequest { author_ids: ids.clone() };
    check(catalog.batch_get_authors(Request::new(batch)).await, &[&format!("author_ids: {rule}")]);
    let batch = pb::BatchListReviewsRequest { book_ids: ids, review_count: 0 };
    check(
        catalog.batch_list_reviews(Request::new(batch)).await,
        &[&format!("book_ids: {rule}"), "review_count: must be from 1 to 100, was 0"],
    );
}

#[tokio::test]
async fn a_batch_has_ten_thousand_reviews_at_most() {
    let catalog = Suite::seeded().catalog;
    let reviews = |book_ids: Vec<i32>, review_count| {
        catalog.batch_list_reviews(Request::new(pb::BatchListReviewsRequest { book_ids, review_count }))
    };
    let most = "review_count: must be at most 99 for 101 books, was 100";
    check(reviews((1..=101).collect(), 100).await, &[most]);
    check(
        reviews((1..=1_000).collect(), 11).await,
        &["review_count: must be at most 10 for 1000 books, was 11"],
    );
    for (books, count) in [(100, 100), (101, 99), (1_000, 10)] {
        assert!(reviews((1..=books).collect(), count).await.is_ok());
    }
    // A repeated id is one book.
    assert!(reviews([1, 2].repeat(500), 100).await.is_ok());

    let books = |book_ids: Vec<i32>, skus: Vec<String>, review_count| {
        let request = pb::BatchGetBooksRequest { book_ids, skus, include_authors: false, review_count };
        catalog.batch_get_books(Request::new(request))
    };
    let skus = |first: i32, last: i32| (first..=last).map(proto::seed::sku).collect::<Vec<_>>();
    check(books((1..=60).collect(), skus(61, 101), 100).await, &[most]);
    assert!(books((1..=60).collect(), skus(61, 100), 100).await.is_ok());
    assert!(books(vec![1; 500], vec![proto::seed::sku(2); 500], 100).await.is_ok());
    assert!(books((1..=1_000).collect(), Vec::new(), 0).await.is_ok());
}

#[tokio::test]
async fn a_page_token_of_another_list_is_refused() {
    let catalog = Suite::seeded().catalog;
    let books = catalog.list_books(Request::new(pb::ListBooksRequest { page_size: 3, ..Default::default() }));
    let of_books = books.await.unwrap().into_inner().next_page_token;
    let reviews = pb::ListReviewsRequest { book_id: 1, page_size: 2, page_token: String::new() };
    let of_reviews = catalog.list_reviews(Request::new(reviews)).await.unwrap().into_inner().next_page_token;
    assert!(!of_reviews.is_empty());

    for page_token in ["x", "0", &of_reviews, &of_books.to_uppercase(), &"0".repeat(24), &"f".repeat(10_000)]
    {
        let request = pb::ListBooksRequest { page_size: 3, page_token: page_token.to_owned() };
        if page_token != of_books {
            assert_refused(catalog.list_books(Request::new(request)).await, Reason::InvalidPageToken);
        }
        let request = pb::ListAuthorsRequest { page_size: 3, page_token: page_token.to_owned() };
        assert_refused(catalog.list_authors(Request::new(request)).await, Reason::InvalidPageToken);
        let request = pb::ListReviewsRequest { book_id: 2, page_size: 3, page_token: page_token.to_owned() };
        assert_refused(catalog.list_reviews(Request::new(request)).await, Reason::InvalidPageToken);
    }
    let list = pb::ListBooksRequest { page_size: -1, page_token: String::new() };
    check(catalog.list_books(Request::new(list)).await, &["page_size: must not be negative, was -1"]);
    let list = pb::ListAuthorsRequest { page_size: -1, page_token: String::new() };
    check(catalog.list_authors(Request::new(list)).await, &["page_size: must not be negative, was -1"]);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let suite = Suite::seeded();
    let catalog = &suite.catalog;
    assert_refused(suite.get(51).await, Reason::BookNotFound);
    assert_refused(suite.delete(i32::MAX, None).await, Reason::BookNotFound);
    let detail = pb::GetBookDetailRequest { book_id: 51, review_count: 2 };
    assert_refused(catalog.get_book_detail(Request::new(detail)).await, Reason::BookNotFound);
    let review = pb::AddReviewRequest { book_id: 51, rating: 1, reviewer: "A".into(), text: "b".into() };
    assert_refused(catalog.add_review(Request::new(review)).await, Reason::BookNotFound);
    let author = pb::GetAuthorRequest { author_id: 11 };
    assert_refused(catalog.get_author(Request::new(author)).await, Reason::AuthorNotFound);
    for (book_id, reason) in [(51, Reason::BookNotFound), (1, Reason::AuthorNotFound)] {
        let update = pb::UpdateBookRequest { book_id, author_id: Some(11), ..Default::default() };
        assert_refused(catalog.update_book(Request::new(update)).await, reason);
    }
    assert_refused(
        suite.create(pb::CreateBookRequest { author_id: 11, ..new_book(900) }).await,
        Reason::AuthorNotFound,
    );
    assert!(suite.inventory.registrations().is_empty());
}

#[tokio::test]
async fn a_sku_belongs_to_one_book() {
    let suite = Suite::seeded();
    let status = assert_refused(suite.create(new_book(1)).await, Reason::SkuTaken);
    assert_eq!(status.message(), "another book has sku 9790000000018");
    suite.create(new_book(900)).await.unwrap();
    assert_refused(suite.create(new_book(900)).await, Reason::SkuTaken);
    assert_eq!(suite.inventory.registrations(), [1], "inventory isn't asked for what is refused here");
}

#[tokio::test]
async fn a_full_store_takes_no_more_until_something_goes() {
    let suite = Suite::new(&Config { max_books: 51, max_reviews: 201, ..Config::default() });
    suite.create(new_book(900)).await.unwrap();
    assert_refused(suite.create(new_book(901)).await, Reason::StoreFull);
    suite.delete(1, None).await.unwrap();
    let book = suite.create(new_book(901)).await.unwrap();
    assert_eq!(book.id, 52, "ids are never reused");
    let small = Suite::new(&Config { max_books: 3, ..Config::default() });
    assert_eq!(small.ids_by_pages_of(1_000).await.len(), 50, "seeded books are kept whatever the limit");
    assert_refused(small.create(new_book(901)).await, Reason::StoreFull);
}
