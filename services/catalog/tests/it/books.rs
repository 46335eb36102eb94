//! Reading, changing and adding single books.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use catalog::Config;
use chassis::call::Deadline;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::{Reason, Refusal};
use tonic::{Request, Status};

use crate::inventory::Mode;
use crate::{Suite, assert_refused, eur, message, new_book};

fn detail(book_id: i32, review_count: i32) -> Request<pb::GetBookDetailRequest> {
    Request::new(pb::GetBookDetailRequest { book_id, review_count })
}

#[tokio::test]
async fn the_first_book_is_the_seeded_one() {
    let book = Suite::seeded().get(1).await.unwrap();
    let expected = pb::Book {
        id: 1,
        sku: "9790000000018".into(),
        title: "Ember".into(),
        author_id: 1,
        price: Some(eur(2999)),
        version: 1,
    };
    assert_eq!(book, expected);
}

#[tokio::test]
async fn the_detail_screen_comes_in_one_reply() {
    let suite = Suite::seeded();
    let screen = message(suite.catalog.get_book_detail(detail(1, 2)).await);
    assert_eq!(screen.book.unwrap().title, "Ember");
    assert_eq!(screen.author.unwrap().name, "Mara Lindqvist");
    assert_eq!((screen.in_stock, screen.stock_unavailable), (7, false));
    assert_eq!(screen.reviews.iter().map(|r| (r.id, r.book_id)).collect::<Vec<_>>(), [(4, 1), (3, 1)]);
    let screen = message(suite.catalog.get_book_detail(detail(1, 0)).await);
    assert_eq!(screen.reviews, []);
}

#[tokio::test]
async fn the_detail_screen_outlives_an_inventory_outage() {
    let suite = Suite::seeded();
    for status in [
        Status::unavailable("refused"),
        Status::internal("odd"),
        Status::deadline_exceeded("late"),
        Refusal::new(Reason::ShuttingDown, "going down").into(),
    ] {
        suite.inventory.set(Mode::Fail(status));
        let screen = message(suite.catalog.get_book_detail(detail(1, 2)).await);
        assert_eq!((screen.in_stock, screen.stock_unavailable), (0, true));
        assert_eq!((screen.book.unwrap().id, screen.reviews.len()), (1, 2));
    }
}

#[tokio::test]
async fn the_detail_screen_does_not_wait_for_an_inventory_that_hangs() {
    let suite = Suite::seeded();
    suite.inventory.set(Mode::Hang);
    let mut request = detail(1, 2);
    request.extensions_mut().insert(Deadline::after(Duration::from_millis(50)));
    let screen = message(suite.catalog.get_book_detail(request).await);
    assert_eq!((screen.in_stock, screen.stock_unavailable, screen.reviews.len()), (0, true, 2));
}

fn details(page_size: i32, page_token: &str, review_count: i32) -> Request<pb::ListBookDetailsRequest> {
    Request::new(pb::ListBookDetailsRequest { page_size, page_token: page_token.to_owned(), review_count })
}

#[tokio::test]
async fn a_page_of_details_is_what_single_details_are() {
    let suite = Suite::new(&Config { books: 300, ..Config::default() });
    suite.delete(7, None).await.unwrap();
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let page = message(suite.catalog.list_book_details(details(120, &token, 4)).await);
        assert!(!page.stock_unavailable);
        for given in page.details {
            let id = given.book.as_ref().unwrap().id;
            let single = message(suite.catalog.get_book_detail(detail(id, 4)).await);
            let pb::GetBookDetailResponse { book, author, in_stock, reviews, stock_unavailable } = single;
            assert_eq!(given, pb::BookDetail { book, author, in_stock, reviews, stock_unavailable });
            assert_eq!(given.reviews.len(), if id <= 250 { 4 } else { 0 }, "{id}");
            ids.push(id);
        }
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, (1..=300).filter(|id| *id != 7).collect::<Vec<_>>());
    assert_eq!(suite.inventory.batches(), [120, 120, 59], "one call for each page");
}

#[tokio::test]
async fn a_page_of_details_outlives_an_inventory_outage() {
    let suite = Suite::seeded();
    for mode in [Mode::Fail(Status::unavailable("refused")), Mode::Hang] {
        suite.inventory.set(mode);
        let mut request = details(3, "", 1);
        request.extensions_mut().insert(Deadline::after(Duration::from_millis(50)));
        let page = message(suite.catalog.list_book_details(request).await);
        assert!(page.stock_unavailable && page.details.len() == 3);
        assert!(page.details.iter().all(|d| d.stock_unavailable && d.in_stock == 0 && d.reviews.len() == 1));
    }
}

#[tokio::test]
async fn a_book_of_a_page_that_inventory_does_not_know_has_no_stock() {
    let suite = Suite::seeded();
    suite.inventory.forget(2);
    let page = message(suite.catalog.list_book_details(details(3, "", 0)).await);
    let stocks: Vec<_> = page.details.iter().map(|d| (d.in_stock, d.stock_unavailable)).collect();
    assert_eq!(stocks, [(7, false), (0, false), (7, false)]);
}

#[tokio::test]
async fn a_book_that_inventory_does_not_know_has_no_stock() {
    let suite = Suite::seeded();
    suite.inventory.set(Mode::Fail(Refusal::new(Reason::UnknownSku, "unknown").into()));
    let screen = message(suite.catalog.get_book_detail(detail(1, 2)).await);
    assert_eq!((screen.in_stock, screen.stock_unavailable), (0, false));
}

#[tokio::test]
async fn a_batch_answers_each_book_once_in_the_order_asked() {
    let suite = Suite::seeded();
    let request = pb::BatchGetBooksRequest {
        book_ids: vec![12, 99, 2, 12],
        skus: vec![proto::seed::sku(7), proto::seed::sku(2), proto::seed::sku(1_000)],
        include_authors: true,
        review_count: 3,
    };
    let batch = message(suite.catalog.batch_get_books(Request::new(request)).await);
    assert_eq!(batch.books.iter().map(|b| b.id).collect::<Vec<_>>(), [12, 2, 7]);
    assert_eq!(batch.authors.iter().map(|a| a.id).collect::<Vec<_>>(), [2, 7], "12 and 2 share an author");
    assert_eq!(batch.reviews.iter().map(|r| r.book_id).collect::<Vec<_>>(), [12, 2, 7]);
    assert_eq!(batch.reviews[1].reviews.iter().map(|r| r.id).collect::<Vec<_>>(), [8, 7, 6]);

    let plain = pb::BatchGetBooksRequest { book_ids: (1..=1_000).collect(), ..Default::default() };
    let batch = message(suite.catalog.batch_get_books(Request::new(plain)).await);
    assert_eq!((batch.books.len(), batch.authors.len(), batch.reviews.len()), (50, 0, 0));
    let nothing = message(suite.catalog.batch_get_books(Request::new(Default::default())).await);
    assert_eq!(nothing, pb::BatchGetBooksResponse::default());
}

#[tokio::test]
async fn authors_are_read_one_by_one_in_batches_and_in_pages() {
    let suite = Suite::seeded();
    let one = suite.catalog.get_author(Request::new(pb::GetAuthorRequest { author_id: 1 })).await;
    let mara = message(one).author.unwrap();
    assert_eq!((&*mara.name, &*mara.country, mara.born), ("Mara Lindqvist", "SE", 1961));

    let request = pb::BatchGetAuthorsRequest { author_ids: vec![9, 77, 1, 9] };
    let batch = message(suite.catalog.batch_get_authors(Request::new(request)).await).authors;
    assert_eq!(batch.iter().map(|a| a.id).collect::<Vec<_>>(), [9, 1]);

    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListAuthorsRequest { page_size: 3, page_token };
        let page = message(suite.catalog.list_authors(Request::new(request)).await);
        ids.extend(page.authors.iter().map(|a| a.id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, (1..=10).collect::<Vec<_>>());
}

#[tokio::test]
async fn pages_of_any_size_give_every_book_once() {
    let suite = Suite::new(&Config { books: 230, ..Config::default() });
    for hole in [1, 2, 3, 60, 61, 100, 230] {
        suite.delete(hole, None).await.unwrap();
    }
    let expected: Vec<i32> = (1..=230).filter(|id| ![1, 2, 3, 60, 61, 100, 230].contains(id)).collect();
    for size in [1, 7, 223, 224, 1_000] {
        assert_eq!(suite.ids_by_pages_of(size).await, expected, "pages of {size}");
    }
    let first = message(suite.catalog.list_books(Request::new(Default::default())).await);
    assert_eq!(first.books.len(), 50, "the default page");
    let request = pb::ListBooksRequest { page_size: i32::MAX, page_token: String::new() };
    let all = message(suite.catalog.list_books(Request::new(request)).await);
    assert_eq!((all.books.len(), &*all.next_page_token), (223, ""));
}

#[tokio::test]
async fn reviews_come_latest_first_and_each_once() {
    let suite = Suite::seeded();
    let mut added = Vec::new();
    for n in 0..5 {
        let request = pb::AddReviewRequest {
            book_id: 3,
            rating: 1 + n,
            reviewer: "Ada".into(),
            text: format!("thought {n}"),
        };
        let review = message(suite.catalog.add_review(Request::new(request)).await).review.unwrap();
        assert!(review.created_at.is_some_and(|at| at.seconds > 1_700_000_000));
        added.push(review);
    }
    assert_eq!(added[0].id, 201, "after the seeded ones");

    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListReviewsRequest { book_id: 3, page_size: 2, page_token };
        let page = message(suite.catalog.list_reviews(Request::new(request)).await);
        ids.extend(page.reviews.iter().map(|r| r.id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(ids, [205, 204, 203, 202, 201, 12, 11, 10, 9]);

    let request = pb::BatchListReviewsRequest { book_ids: vec![3, 99, 1, 3], review_count: 2 };
    let batch = message(suite.catalog.batch_list_reviews(Request::new(request)).await).books;
    let ids: Vec<(i32, Vec<i32>)> =
        batch.iter().map(|b| (b.book_id, b.reviews.iter().map(|r| r.id).collect())).collect();
    assert_eq!(ids, [(3, vec![205, 204]), (1, vec![4, 3])]);
}

#[tokio::test]
async fn a_created_book_is_known_to_both_services() {
    let suite = Suite::seeded();
    let book = suite.create(new_book(900)).await.unwrap();
    assert_eq!((book.id, book.version, &*book.title), (51, 1, "New 900"));
    assert_eq!(suite.get(51).await.unwrap(), book);
    assert_eq!(suite.by_sku(&book.sku).await, std::slice::from_ref(&book));
    assert_eq!(suite.inventory.id_of(&book.sku), Some(51));
    assert_eq!(message(suite.catalog.get_book_detail(detail(51, 2)).await).in_stock, 7);
}

#[tokio::test]
async fn an_update_changes_what_is_set_and_checks_the_version() {
    let suite = Suite::seeded();
    let before = suite.get(4).await.unwrap();
    let update = |request: pb::UpdateBookRequest| suite.catalog.update_book(Request::new(request));
    let title = |title: &str, expected_version| pb::UpdateBookRequest {
        book_id: 4,
        title: Some(title.into()),
        expected_version,
        ..Default::default()
    };

    let book = message(update(title("Tides II", Some(1))).await).book.unwrap();
    assert_eq!(book, pb::Book { title: "Tides II".into(), version: 2, ..before.clone() });
    let status = assert_refused(update(title("Lost", Some(1))).await, Reason::VersionMismatch);
    assert_eq!(status.message(), "book 4 has version 2, expected was 1");
    assert_eq!(suite.get(4).await.unwrap(), book, "a refusal changes nothing");

    let rest =
        pb::UpdateBookRequest { book_id: 4, author_id: Some(9), price: Some(eur(1)), ..Default::default() };
    let book = message(update(rest).await).book.unwrap();
    assert_eq!(
        book,
        pb::Book {
            title: "Tides II".into(),
            author_id: 9,
            price: Some(eur(1)),
            version: 3,
            ..before.clone()
        }
    );
    assert_eq!(suite.by_sku(&before.sku).await, [book]);
}

#[tokio::test]
async fn a_deleted_book_is_gone_with_its_reviews() {
    let suite = Suite::new(&Config { max_reviews: 200, ..Config::default() });
    assert_refused(suite.delete(5, Some(2)).await, Reason::VersionMismatch);
    suite.delete(5, Some(1)).await.unwrap();
    assert_refused(suite.get(5).await, Reason::BookNotFound);
    assert_refused(suite.delete(5, None).await, Reason::BookNotFound);
    assert_eq!(suite.by_sku(&proto::seed::sku(5)).await, []);
    assert!(!suite.ids_by_pages_of(20).await.contains(&5));
    let request = pb::ListReviewsRequest { book_id: 5, ..Default::default() };
    assert_refused(suite.catalog.list_reviews(Request::new(request)).await, Reason::BookNotFound);

    let review = pb::AddReviewRequest { book_id: 6, rating: 3, reviewer: "Ada".into(), text: "fine".into() };
    for _ in 0..4 {
        message(suite.catalog.add_review(Request::new(review.clone())).await);
    }
    assert_refused(suite.catalog.add_review(Request::new(review)).await, Reason::StoreFull);
}

#[tokio::test]
async fn the_sku_of_a_deleted_book_stays_with_it() {
    let suite = Suite::seeded();
    let added = suite.create(new_book(900)).await.unwrap();
    for (id, n) in [(5, 5), (added.id, 900)] {
        suite.delete(id, None).await.unwrap();
        // However often it is tried, and also when the book is the same.
        for _ in 0..2 {
            assert_refused(suite.create(new_book(n)).await, Reason::SkuTaken);
            assert_eq!(suite.by_sku(&proto::seed::sku(n)).await, []);
        }
        assert_eq!(suite.inventory.id_of(&proto::seed::sku(n)), Some(id), "inventory knows it as it was");
    }
    suite.create(new_book(901)).await.unwrap();
}

#[tokio::test]
async fn a_book_that_inventory_cannot_register_is_not_added() {
    let suite = Suite::new(&Config { max_books: 51, ..Config::default() });
    let sku = new_book(900).sku;
    let own = Refusal::new(Reason::StoreFull, "inventory is full").into();
    for (status, reason) in [
        (Status::unavailable("connection refused"), Reason::UpstreamUnavailable),
        (Status::unimplemented("odd"), Reason::UpstreamUnavailable),
        (Status::internal("odd"), Reason::UpstreamUnavailable),
        (Refusal::new(Reason::ShuttingDown, "going down").into(), Reason::UpstreamUnavailable),
        (Status::deadline_exceeded("late"), Reason::DeadlineExceeded),
        (own, Reason::StoreFull),
    ] {
        suite.inventory.set(Mode::Fail(status));
        assert_refused(suite.create(new_book(900)).await, reason);
        assert_eq!(suite.by_sku(&sku).await, []);
        assert_eq!(suite.ids_by_pages_of(1_000).await.len(), 50);
    }
    // Neither the SKU nor the one free place is lost.
    suite.inventory.set(Mode::Answer);
    suite.create(new_book(900)).await.unwrap();
    assert_refused(suite.create(new_book(901)).await, Reason::StoreFull);
}

#[tokio::test]
async fn a_cancelled_create_leaves_nothing_behind() {
    for mode in [Mode::Hang, Mode::DoAndHang] {
        let suite = Suite::new(&Config { max_books: 51, ..Config::default() });
        let sku = new_book(900).sku;
        suite.inventory.set(mode);
        {
            let mut create = pin!(suite.create(new_book(900)));
            assert!(create.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            // While it waits, the book is not there, but its SKU and its place are taken.
            assert_eq!(suite.by_sku(&sku).await, []);
            assert_refused(suite.get(51).await, Reason::BookNotFound);
            assert_refused(suite.create(new_book(900)).await, Reason::SkuTaken);
            assert_refused(suite.create(new_book(901)).await, Reason::StoreFull);
        }
        assert_eq!(suite.by_sku(&sku).await, []);
        assert_eq!(suite.ids_by_pages_of(1_000).await.len(), 50);

        // Inventory may have registered the book before the caller left: the next try must fit to it.
        suite.inventory.set(Mode::Answer);
        let book = suite.create(new_book(900)).await.unwrap();
        assert_eq!(suite.inventory.id_of(&sku), Some(book.id));
    }
}
