//! Books, authors, reviews.

use std::sync::Arc;

use async_graphql::{Context, Lookahead, Object, SelectionField, Value};
use futures_util::future::{join_all, join3};
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use tonic::Status;

use super::loads;
use super::scalar::{DateTime, Money};
use super::stock::Stock;
use crate::error::{SAME_NAMES, or_null};
use crate::load::{BookKey, Loads, Reviews};

/// How many reviews a book shows unless it is told another number.
const REVIEWS: i32 = 10;

/// The contract's bound on reviews of one book in a batch.
const MAX_REVIEWS: i32 = 100;

/// Something that was asked for ahead; none when it was not.
type Ahead<T> = Option<Result<T, Status>>;

/// A book with what was asked for along with it.
pub(crate) struct Book {
    book: catalog::Book,
    author: Ahead<Option<Arc<catalog::Author>>>,
    stock: Ahead<Option<inventory::Stock>>,
    /// With how many were asked for.
    reviews: Option<(i32, Result<Reviews, Status>)>,
}

/// What a selection of book fields needs beyond the book.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BookWants {
    author: bool,
    stock: bool,
    /// How many reviews, when all selections agree on a number; zero for none.
    reviews: i32,
}

impl BookWants {
    /// Looks ahead into selections of book fields.
    pub(crate) fn of(selections: &[Lookahead<'_>]) -> Self {
        let mut counts = selections
            .iter()
            .flat_map(|books| books.field("reviews").selection_fields())
            .map(|field| review_count(&field));
        let reviews = counts.next().unwrap_or(0);
        let agreed = counts.all(|other| other == reviews) && (1..=MAX_REVIEWS).contains(&reviews);
        Self {
            author: selections.iter().any(|books| books.field("author").exists()),
            stock: selections.iter().any(|books| books.field("stock").exists()),
            // Anything else is for the field itself to ask, and for catalog to judge.
            reviews: if agreed { reviews } else { 0 },
        }
    }
}

fn review_count(field: &SelectionField<'_>) -> i32 {
    let arguments = field.arguments().unwrap_or_default();
    match arguments.iter().find(|(name, _)| name == "last").map(|(_, value)| value) {
        None => REVIEWS,
        Some(Value::Number(last)) => last.as_i64().and_then(|last| last.try_into().ok()).unwrap_or(0),
        Some(_) => 0,
    }
}

impl Book {
    /// A book of which nothing was asked for ahead.
    pub(crate) fn alone(book: catalog::Book) -> Self {
        Self { book, author: None, stock: None, reviews: None }
    }

    /// The book and what is wanted of it, in one round.
    pub(crate) async fn load(loads: &Loads, id: i32, wants: BookWants) -> Result<Option<Self>, Status> {
        let key = BookKey { id, author: wants.author, reviews: wants.reviews };
        let (found, stock) = if wants.stock && id > 0 {
            let (found, stock) = futures_util::future::join(loads.book(key), loads.stock(id)).await;
            (found, Some(stock))
        } else {
            (loads.book(key).await, None)
        };
        Ok(found?.map(|found| Self {
            book: found.book,
            author: found.author.map(|author| Ok(Some(author))),
            stock,
            reviews: found.reviews.map(|(count, reviews)| (count, Ok(reviews))),
        }))
    }

    /// The books with what is wanted of them, in one round.
    pub(crate) async fn complete(loads: &Loads, books: Vec<catalog::Book>, wants: BookWants) -> Vec<Self> {
        join_all(books.into_iter().map(|book| async move {
            let (author, stock, reviews) = join3(
                when(wants.author, loads.author(book.author_id)),
                when(wants.stock, loads.stock(book.id)),
                when(wants.reviews > 0, loads.reviews(book.id, wants.reviews)),
            )
            .await;
            Self { book, author, stock, reviews: reviews.map(|reviews| (wants.reviews, reviews)) }
        }))
        .await
    }
}

async fn when<T>(wanted: bool, work: impl Future<Output = T>) -> Option<T> {
    if wanted { Some(work.await) } else { None }
}

/// A book.
#[Object]
impl Book {
    /// Positive, never reused.
    async fn id(&self) -> i32 {
        self.book.id
    }

    /// The ISBN-13, 13 digits without dashes. Stock and orders know the book by it.
    async fn sku(&self) -> &str {
        &self.book.sku
    }

    /// 1 to 300 characters.
    async fn title(&self) -> &str {
        &self.book.title
    }

    /// What one copy costs now. An order keeps the price it was placed at.
    async fn price(&self) -> Money {
        Money::of(self.book.price.as_ref())
    }

    /// Starts at 1 and goes up with every change.
    async fn version(&self) -> i32 {
        self.book.version
    }

    /// Who wrote it. Null only with an error.
    async fn author(&self, ctx: &Context<'_>) -> Option<Author> {
        let author = match &self.author {
            Some(ahead) => ahead.clone(),
            None => loads(ctx).author(self.book.author_id).await,
        };
        or_null(ctx, author, SAME_NAMES)?.map(Author)
    }

    /// Its stock. Null only with an error, when inventory can't answer; a book that inventory doesn't know has none in
    /// stock.
    async fn stock(&self, ctx: &Context<'_>) -> Option<Stock> {
        let stock = match &self.stock {
            Some(ahead) => ahead.clone(),
            None => loads(ctx).stock(self.book.id).await,
        };
        let unknown = || inventory::Stock {
            book_id: self.book.id,
            sku: self.book.sku.clone(),
            ..inventory::Stock::default()
        };
        Some(Stock(or_null(ctx, stock, SAME_NAMES)?.unwrap_or_else(unknown)))
    }

    /// Its latest reviews, latest first. Null only with an error.
    async fn reviews(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "At most this many: 1 to 100.", default = 10)] last: i32,
    ) -> Option<Vec<Review>> {
        let reviews = match &self.reviews {
            Some((count, ahead)) if *count == last => ahead.clone(),
            _ => loads(ctx).reviews(self.book.id, last).await,
        };
        let reviews = or_null(ctx, reviews, &[("review_count", "last")])?;
        Some((0..reviews.len()).map(|at| Review { of: Arc::clone(&reviews), at }).collect())
    }
}

pub(crate) struct Author(pub(crate) Arc<catalog::Author>);

/// An author.
#[Object]
impl Author {
    /// Positive, never reused.
    async fn id(&self) -> i32 {
        self.0.id
    }

    /// The name as printed on the cover.
    async fn name(&self) -> &str {
        &self.0.name
    }

    /// ISO 3166-1 alpha-2 code of the country.
    async fn country(&self) -> &str {
        &self.0.country
    }

    /// Year of birth.
    async fn born(&self) -> i32 {
        self.0.born
    }
}

pub(crate) struct Review {
    /// The list that it stands in: reviews are shared, not copied.
    of: Reviews,
    at: usize,
}

impl Review {
    pub(crate) fn alone(review: catalog::Review) -> Self {
        Self { of: Reviews::from([review]), at: 0 }
    }

    fn get<T>(&self, part: impl FnOnce(&catalog::Review) -> T) -> Option<T> {
        self.of.get(self.at).map(part)
    }
}

/// What a reader wrote about a book.
#[Object]
impl Review {
    /// Positive, never reused.
    async fn id(&self) -> i32 {
        self.get(|review| review.id).unwrap_or_default()
    }

    /// 1 (worst) to 5 (best).
    async fn rating(&self) -> i32 {
        self.get(|review| review.rating).unwrap_or_default()
    }

    /// Who wrote it: 1 to 80 characters.
    async fn reviewer(&self) -> String {
        self.get(|review| review.reviewer.clone()).unwrap_or_default()
    }

    /// 1 to 2,000 characters.
    async fn text(&self) -> String {
        self.get(|review| review.text.clone()).unwrap_or_default()
    }

    /// When it was added.
    async fn created_at(&self) -> DateTime {
        DateTime::of(self.get(|review| review.created_at).flatten())
    }
}
