//! Stock and the books it is of.

use proto::seed::STOCK;

use super::*;

async fn get(shop: &Shop, book_id: i32, sku: &str) -> Result<pb::Stock, Status> {
    let request = Request::new(pb::GetStockRequest { book_id, sku: sku.to_owned() });
    Ok(shop.0.get_stock(request).await?.into_inner().stock.unwrap())
}

async fn batch(shop: &Shop, book_ids: Vec<i32>, skus: Vec<String>) -> Result<Vec<i32>, Status> {
    let request = Request::new(pb::BatchGetStockRequest { book_ids, skus });
    let stocks = shop.0.batch_get_stock(request).await?.into_inner().stocks;
    Ok(stocks.into_iter().map(|s| s.book_id).collect())
}

async fn register(shop: &Shop, books: &[(i32, String)]) -> Result<(), Status> {
    let books =
        books.iter().map(|(book_id, sku)| pb::BookKey { book_id: *book_id, sku: sku.clone() }).collect();
    shop.0.register_books(Request::new(pb::RegisterBooksRequest { books })).await.map(|_| ())
}

#[tokio::test]
async fn seeded_books_have_their_stock_under_both_names() {
    let shop = shop();
    for id in [1, 7, 50] {
        let expected = pb::Stock { book_id: id, sku: sku(id), in_stock: STOCK, reserved: 0, sold: 0 };
        assert_eq!(get(&shop, id, "").await.unwrap(), expected);
        assert_eq!(get(&shop, 0, &sku(id)).await.unwrap(), expected);
    }
    let unknown = get(&shop, 51, "").await;
    assert_eq!(metadata(&unknown, "bookId"), "51");
    assert_eq!(reason(unknown), Reason::UnknownSku);
    let unknown = get(&shop, 0, &sku(51)).await;
    assert_eq!(metadata(&unknown, "sku"), sku(51));
    assert_eq!(reason(unknown), Reason::UnknownSku);
}

#[tokio::test]
async fn as_many_books_are_seeded_as_asked() {
    for books in [0, 1, 1_000] {
        let shop = shop_with(|c| c.books = books);
        assert!(books == 0 || get(&shop, books, "").await.is_ok());
        assert_eq!(reason(get(&shop, books + 1, "").await), Reason::UnknownSku);
    }
}

#[tokio::test]
async fn a_book_is_asked_by_exactly_one_name() {
    let shop = shop();
    let (neither, both) = ("must be set", "must not be set beside sku");
    for (id, sku, rule) in [(0, "", neither), (1, sku(1).as_str(), both), (-1, "x", both)] {
        assert_eq!(fields(get(&shop, id, sku).await), [("book_id".to_owned(), rule.to_owned())]);
    }
    let negative = fields(get(&shop, -1, "").await);
    assert_eq!(negative, [("book_id".to_owned(), "must be positive, was -1".to_owned())]);
    let malformed = fields(get(&shop, 0, "9790000000019").await);
    assert_eq!(malformed, [("sku".to_owned(), "must be 13 digits with a right check digit".to_owned())]);
}

#[tokio::test]
async fn a_batch_answers_known_books_once_in_the_order_asked() {
    let shop = shop();
    let answered = batch(&shop, vec![9, 3, 999, 9], vec![sku(4), sku(3), sku(998), sku(4), sku(1)]).await;
    assert_eq!(answered.unwrap(), [9, 3, 4, 1]);
    assert!(batch(&shop, vec![], vec![]).await.unwrap().is_empty());
    assert_eq!(batch(&shop, (1..=1_000).collect(), vec![]).await.unwrap().len(), 50);
}

#[tokio::test]
async fn a_batch_names_every_broken_field() {
    let shop = shop();
    let broken = batch(&shop, vec![1, 0, -5], vec![sku(1), "x".to_owned()]).await;
    assert_eq!(names(broken), ["book_ids[1]", "book_ids[2]", "skus[1]"]);
    let rule = "must have 0 to 1000 books together with skus, had 1001".to_owned();
    let too_many = batch(&shop, (1..=1_000).collect(), vec![sku(1)]).await;
    assert_eq!(fields(too_many), [("book_ids".to_owned(), rule)]);
    assert_eq!(names(batch(&shop, vec![0; 1_000], vec![]).await).len(), 20);
}

#[tokio::test]
async fn registering_can_be_repeated_and_starts_with_nothing() {
    let shop = shop();
    let books = [(51, sku(51)), (1, sku(1)), (52, sku(52)), (51, sku(51))];
    register(&shop, &books).await.unwrap();
    assert_eq!(shop.stock(51).await, (0, 0, 0));
    assert_eq!(shop.stock(1).await, (STOCK, 0, 0));
    shop.adjust(51, 5).await.unwrap();
    register(&shop, &books).await.unwrap();
    assert_eq!(shop.stock(51).await, (5, 0, 0));
}

#[tokio::test]
async fn names_that_are_taken_change_nothing() {
    let shop = shop();
    for taken in [
        vec![(51, sku(51)), (52, sku(1))],
        vec![(51, sku(51)), (1, sku(52))],
        vec![(51, sku(51)), (1, sku(2))],
        vec![(51, sku(51)), (51, sku(52))],
        vec![(51, sku(51)), (52, sku(51))],
        vec![(51, sku(51)), (52, sku(52)), (51, sku(52))],
    ] {
        let refused = register(&shop, &taken).await;
        let (id, sku) = taken.last().unwrap();
        assert_eq!(metadata(&refused, "bookId"), id.to_string());
        assert_eq!(metadata(&refused, "sku"), *sku);
        assert_eq!(reason(refused), Reason::SkuTaken);
        assert_eq!(reason(get(&shop, 51, "").await), Reason::UnknownSku);
    }
}

#[tokio::test]
async fn registering_names_every_broken_field() {
    let shop = shop();
    let broken = register(&shop, &[(51, sku(51)), (0, "978".to_owned()), (-1, sku(53))]).await;
    assert_eq!(names(broken), ["books[1].book_id", "books[1].sku", "books[2].book_id"]);
    assert_eq!(names(register(&shop, &[]).await), ["books"]);
    let many: Vec<_> = (1..=1_001).map(|id| (id, sku(id))).collect();
    assert_eq!(names(register(&shop, &many).await), ["books"]);
    register(&shop, &many[..1_000]).await.unwrap();
    assert_eq!(shop.stock(1_000).await, (0, 0, 0));
}

#[tokio::test]
async fn no_more_books_are_registered_than_fit() {
    let shop = shop_with(|c| c.max_items = 52);
    let three = [(51, sku(51)), (52, sku(52)), (53, sku(53))];
    assert_eq!(reason(register(&shop, &three).await), Reason::StoreFull);
    assert_eq!(reason(get(&shop, 51, "").await), Reason::UnknownSku);
    register(&shop, &three[..2]).await.unwrap();
    assert_eq!(reason(register(&shop, &three).await), Reason::StoreFull);
    register(&shop, &three[..2]).await.unwrap();
    // Seeded books are never refused, but count.
    let shop = shop_with(|c| c.max_items = 1);
    assert_eq!(shop.stock(50).await, (STOCK, 0, 0));
    assert_eq!(reason(register(&shop, &three).await), Reason::StoreFull);
}

#[tokio::test]
async fn deliveries_and_losses_change_what_is_in_stock() {
    let shop = shop();
    assert_eq!(shop.adjust(1, 5).await.unwrap(), (STOCK + 5, 0, 0));
    assert_eq!(shop.adjust(1, -1_000_000).await.unwrap(), (5, 0, 0));
    let refused = shop.adjust(1, -6).await;
    assert_eq!(metadata(&refused, "wanted"), "6");
    assert_eq!(metadata(&refused, "inStock"), "5");
    assert_eq!(reason(refused), Reason::OutOfStock);
    assert_eq!(shop.stock(1).await, (5, 0, 0));
    assert_eq!(reason(shop.adjust(51, 1).await), Reason::UnknownSku);
}

#[tokio::test]
async fn a_loss_takes_no_reserved_units() {
    let shop = shop();
    shop.leave(1, 3).await;
    shop.reserve("a", &[(1, 2)]).await.unwrap();
    assert_eq!(reason(shop.adjust(1, -2).await), Reason::OutOfStock);
    assert_eq!(shop.adjust(1, -1).await.unwrap(), (0, 2, 0));
}

#[tokio::test]
async fn an_adjustment_has_bounds() {
    let shop = shop();
    for bad in [0, 1_000_001, -1_000_001, i32::MIN, i32::MAX] {
        let rule = format!("must be from -1000000 to 1000000 and not 0, was {bad}");
        assert_eq!(fields(shop.adjust(1, bad).await), [("delta".to_owned(), rule)]);
    }
    let request = pb::AdjustStockRequest { sku: "x".to_owned(), delta: 0 };
    assert_eq!(names(shop.0.adjust_stock(Request::new(request)).await), ["sku", "delta"]);
    for _ in 1..1_000 {
        shop.adjust(1, 1_000_000).await.unwrap();
    }
    shop.reserve("a", &[(1, 1_000_000)]).await.unwrap();
    shop.confirm("a").await.unwrap();
    let rule = "must leave at most 1000000000 units, would leave 1000000001".to_owned();
    assert_eq!(fields(shop.adjust(1, 1).await), [("delta".to_owned(), rule)]);
    shop.release("a").await.unwrap();
    assert_eq!(shop.stock(1).await, (1_000_000_000, 0, 0));
}
