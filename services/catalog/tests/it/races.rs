//! Calls from several threads at once.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Barrier;
use std::thread;

use catalog::Config;
use proto::Reason;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use tonic::Request;

use crate::{Suite, new_book};

const THREADS: i32 = 4;

fn block_on<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(call)
}

/// Runs the work on every thread at the same time.
fn at_once<T: Send>(work: impl Fn(i32) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        let run = |n| {
            barrier.wait();
            work(n)
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || run(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn one_of_many_gets_the_sku() {
    let suite = Suite::seeded();
    for n in 900..930 {
        let results = at_once(|_| block_on(suite.create(new_book(n))));
        let refused: Vec<Reason> = results.iter().filter_map(|r| r.as_ref().err()).map(Reason::of).collect();
        assert_eq!(refused, [Reason::SkuTaken; 3]);
    }
    assert_eq!(block_on(suite.ids_by_pages_of(1_000)).len(), 80);
}

#[test]
fn the_last_places_are_given_out_once() {
    let suite = Suite::new(&Config { max_books: 60, ..Config::default() });
    let added = at_once(|thread| {
        let books = (0..10).map(|n| new_book(900 + 100 * thread + n));
        books.filter(|book| block_on(suite.create(book.clone())).is_ok()).count()
    });
    assert_eq!(added.iter().sum::<usize>(), 10);
    assert_eq!(block_on(suite.ids_by_pages_of(1_000)).len(), 60);
}

#[test]
fn versions_count_every_change_and_reviews_stay_in_order() {
    let suite = Suite::new(&Config { books: 1_050, ..Config::default() });
    for (id, reviews) in [(1, 204), (1_050, 200)] {
        changes_of_one_book_are_in_order(&suite, id, reviews);
    }
}

fn changes_of_one_book_are_in_order(suite: &Suite, book_id: i32, expected_reviews: usize) {
    let ids = at_once(|thread| {
        let mut ids = Vec::new();
        for n in 0..50 {
            let update =
                pb::UpdateBookRequest { book_id, title: Some(format!("{thread} {n}")), ..Default::default() };
            block_on(suite.catalog.update_book(Request::new(update))).unwrap();
            let review = pb::AddReviewRequest { book_id, rating: 1, reviewer: "A".into(), text: "b".into() };
            let added = block_on(suite.catalog.add_review(Request::new(review))).unwrap();
            ids.push(added.into_inner().review.unwrap().id);
        }
        ids
    });
    assert_eq!(block_on(suite.get(book_id)).unwrap().version, 201);
    assert_eq!(ids.concat().into_iter().collect::<HashSet<_>>().len(), 200);
    let list = pb::ListReviewsRequest { book_id, page_size: 1_000, page_token: String::new() };
    let reviews = block_on(suite.catalog.list_reviews(Request::new(list))).unwrap().into_inner().reviews;
    assert_eq!(reviews.len(), expected_reviews);
    assert!(reviews.is_sorted_by(|a, b| a.id > b.id));
}

#[test]
fn a_book_deleted_while_it_is_read_is_whole_or_gone() {
    let suite = Suite::new(&Config { books: 1_050, ..Config::default() });
    at_once(|thread| {
        for id in (1..=50).chain(1_001..=1_050) {
            if thread == 0 {
                block_on(suite.delete(id, None)).unwrap();
            } else {
                let detail = pb::GetBookDetailRequest { book_id: id, review_count: 4 };
                match block_on(suite.catalog.get_book_detail(Request::new(detail))) {
                    Ok(screen) => assert_eq!(screen.into_inner().reviews.len(), if id <= 50 { 4 } else { 0 }),
                    Err(status) => assert_eq!(Reason::of(&status), Reason::BookNotFound),
                }
            }
        }
    });
    assert_eq!(block_on(suite.ids_by_pages_of(1_000)), (51..=1_000).collect::<Vec<_>>());
}

#[test]
fn a_book_that_is_made_when_asked_for_is_deleted_once() {
    let suite = Suite::new(&Config { books: 1_050, max_books: 1_050, ..Config::default() });
    for id in 1_001..=1_050 {
        let results = at_once(|_| block_on(suite.delete(id, None)));
        let refused: Vec<Reason> = results.iter().filter_map(|r| r.as_ref().err()).map(Reason::of).collect();
        assert_eq!(refused, [Reason::BookNotFound; 3]);
    }
    // So many places were given back, and no more.
    let added = (2_001..2_100).filter(|n| block_on(suite.create(new_book(*n))).is_ok()).count();
    assert_eq!(added, 50);
}
