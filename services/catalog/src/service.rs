//! The service interface: decode, ask the store, encode.

mod books;
mod details;
mod import;
mod search;
mod wire;

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use chassis::call::child;
use proto::catalog::v1 as pb;
use proto::catalog::v1::catalog_service_server::CatalogService;
use proto::inventory::v1 as inventory;
use proto::inventory::v1::inventory_service_server::InventoryService;
use proto::{Reason, Refusal};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::domain::{AuthorId, BookId, Fields, Refused, ReviewId};
use crate::store::Store;
use crate::{Config, seed};

/// The catalog. What its methods promise is written in `catalog.proto`.
pub struct Catalog {
    store: Arc<Store>,
    inventory: Arc<dyn InventoryService>,
    /// Every stream holds a clone for as long as it lives.
    streams: Arc<()>,
}

impl Catalog {
    /// A catalog with the seeded contents. `inventory` is taken to know the seeded books.
    pub fn new(config: &Config, inventory: Arc<dyn InventoryService>) -> Self {
        let store = Store::new(seed::contents(config.books), config.max_books, config.max_reviews);
        tracing::debug!(books = config.books, "catalog seeded");
        Self { store: Arc::new(store), inventory, streams: Arc::new(()) }
    }

    /// How many streams of books and of searches are being served now. One that its reader has left is none.
    pub fn open_streams(&self) -> usize {
        Arc::strong_count(&self.streams) - 1
    }
}

#[async_trait]
impl CatalogService for Catalog {
    async fn get_book(
        &self,
        request: Request<pb::GetBookRequest>,
    ) -> Result<Response<pb::GetBookResponse>, Status> {
        let book = self.store.book(book_id(request.get_ref().book_id)?)?;
        Ok(Response::new(pb::GetBookResponse { book: Some(wire::book(&book)) }))
    }

    async fn batch_get_books(
        &self,
        request: Request<pb::BatchGetBooksRequest>,
    ) -> Result<Response<pb::BatchGetBooksResponse>, Status> {
        Ok(Response::new(books::batch(&self.store, request.get_ref())?))
    }

    async fn list_books(
        &self,
        request: Request<pb::ListBooksRequest>,
    ) -> Result<Response<pb::ListBooksResponse>, Status> {
        let pb::ListBooksRequest { page_size, page_token } = request.into_inner();
        let page = Page::parse("books", page_size, &page_token, BookId::new)?;
        let books = self.store.books_after(page.last, page.size + 1);
        let (books, next_page_token) = page.cut(books, |book| book.id.get());
        let books = books.iter().map(|book| wire::book(book)).collect();
        Ok(Response::new(pb::ListBooksResponse { books, next_page_token }))
    }

    async fn create_book(
        &self,
        request: Request<pb::CreateBookRequest>,
    ) -> Result<Response<pb::CreateBookResponse>, Status> {
        let (_, extensions, message) = request.into_parts();
        let mut reservation = self.store.reserve(wire::book_draft(message)?)?;
        let (id, sku) = reservation.ask();
        let books = vec![inventory::BookKey { book_id: id.get(), sku }];
        let register = child(&extensions, inventory::RegisterBooksRequest { books });
        // Dropped here, by a caller who leaves or a deadline, the reservation takes the book back.
        if let Err(status) = self.inventory.register_books(register).await {
            let status = upstream(status);
            if settles(&status) {
                reservation.refused();
            }
            return Err(status);
        }
        let book = reservation.publish().map(|book| wire::book(&book));
        Ok(Response::new(pb::CreateBookResponse { book }))
    }

    async fn batch_create_books(
        &self,
        request: Request<pb::BatchCreateBooksRequest>,
    ) -> Result<Response<pb::BatchCreateBooksResponse>, Status> {
        let (_, extensions, message) = request.into_parts();
        let import = import::Import::new(&self.store, &*self.inventory, &extensions);
        Ok(Response::new(import.batch(message).await?))
    }

    async fn update_book(
        &self,
        request: Request<pb::UpdateBookRequest>,
    ) -> Result<Response<pb::UpdateBookResponse>, Status> {
        let pb::UpdateBookRequest { book_id, title, author_id, price, expected_version } =
            request.into_inner();
        let price = price.as_ref().map(|price| (price.amount_minor, price.currency.as_str()));
        let (id, change) = Fields::default().book_change(book_id, title, author_id, price)?;
        let book = self.store.update(id, change, expected_version)?;
        Ok(Response::new(pb::UpdateBookResponse { book: Some(wire::book(&book)) }))
    }

    async fn delete_book(
        &self,
        request: Request<pb::DeleteBookRequest>,
    ) -> Result<Response<pb::DeleteBookResponse>, Status> {
        let pb::DeleteBookRequest { book_id: id, expected_version } = request.into_inner();
        self.store.delete(book_id(id)?, expected_version)?;
        Ok(Response::new(pb::DeleteBookResponse {}))
    }

    async fn get_author(
        &self,
        request: Request<pb::GetAuthorRequest>,
    ) -> Result<Response<pb::GetAuthorResponse>, Status> {
        let mut fields = Fields::default();
        let Some(id) = fields.author_id("author_id", request.get_ref().author_id) else {
            return Err(Refused::from(fields).into());
        };
        let author = Some(wire::author(self.store.author(id)?));
        Ok(Response::new(pb::GetAuthorResponse { author }))
    }

    async fn batch_get_authors(
        &self,
        request: Request<pb::BatchGetAuthorsRequest>,
    ) -> Result<Response<pb::BatchGetAuthorsResponse>, Status> {
        let ids = &request.get_ref().author_ids;
        let mut fields = Fields::default();
        let mut ids =
            fields.batch("author_ids", ids, ids.len(), |fields, place, &id| fields.author_id(place, id));
        fields.finish()?;
        books::once(&mut ids);
        let authors = ids.into_iter().filter_map(|id| self.store.author(id).ok());
        let authors = authors.map(|author| wire::author(author)).collect();
        Ok(Response::new(pb::BatchGetAuthorsResponse { authors }))
    }

    async fn list_authors(
        &self,
        request: Request<pb::ListAuthorsRequest>,
    ) -> Result<Response<pb::ListAuthorsResponse>, Status> {
        let pb::ListAuthorsRequest { page_size, page_token } = request.into_inner();
        let page = Page::parse("authors", page_size, &page_token, AuthorId::new)?;
        let authors = self.store.authors_after(page.last, page.size + 1);
        let (authors, next_page_token) = page.cut(authors, |author| author.id.get());
        let authors = authors.iter().map(|author| wire::author(author)).collect();
        Ok(Response::new(pb::ListAuthorsResponse { authors, next_page_token }))
    }

    async fn list_reviews(
        &self,
        request: Request<pb::ListReviewsRequest>,
    ) -> Result<Response<pb::ListReviewsResponse>, Status> {
        let pb::ListReviewsRequest { book_id, page_size, page_token } = request.into_inner();
        let mut fields = Fields::default();
        let (Some(id), Some(_)) = (fields.book_id("book_id", book_id), fields.page_size(page_size)) else {
            return Err(Refused::from(fields).into());
        };
        let list = format!("books/{id}/reviews");
        let page = Page::parse(&list, page_size, &page_token, ReviewId::new)?;
        let reviews = self.store.reviews_before(id, page.last, page.size + 1)?;
        let (reviews, next_page_token) = page.cut(reviews, |review| review.id.get());
        Ok(Response::new(pb::ListReviewsResponse { reviews: wire::reviews(&reviews), next_page_token }))
    }

    async fn batch_list_reviews(
        &self,
        request: Request<pb::BatchListReviewsRequest>,
    ) -> Result<Response<pb::BatchListReviewsResponse>, Status> {
        Ok(Response::new(books::batch_reviews(&self.store, request.get_ref())?))
    }

    async fn add_review(
        &self,
        request: Request<pb::AddReviewRequest>,
    ) -> Result<Response<pb::AddReviewResponse>, Status> {
        let pb::AddReviewRequest { book_id, rating, reviewer, text } = request.into_inner();
        let (id, draft) = Fields::default().review_draft(book_id, rating, reviewer, text)?;
        let review = self.store.add_review(id, draft, SystemTime::now())?;
        Ok(Response::new(pb::AddReviewResponse { review: Some(wire::review(&review)) }))
    }

    async fn get_book_detail(
        &self,
        request: Request<pb::GetBookDetailRequest>,
    ) -> Result<Response<pb::GetBookDetailResponse>, Status> {
        let details = details::Details::new(&self.store, &*self.inventory, request.extensions());
        Ok(Response::new(details.one(*request.get_ref()).await?))
    }

    async fn list_book_details(
        &self,
        request: Request<pb::ListBookDetailsRequest>,
    ) -> Result<Response<pb::ListBookDetailsResponse>, Status> {
        let details = details::Details::new(&self.store, &*self.inventory, request.extensions());
        Ok(Response::new(details.page(request.get_ref()).await?))
    }

    async fn stream_books(
        &self,
        request: Request<pb::StreamBooksRequest>,
    ) -> Result<Response<BoxStream<pb::StreamBooksResponse>>, Status> {
        let stream = books::stream(&self.store, self.streams.clone(), request.get_ref())?;
        Ok(Response::new(Box::pin(stream)))
    }

    async fn import_books(
        &self,
        request: Request<Streaming<pb::ImportBooksRequest>>,
    ) -> Result<Response<pb::ImportBooksResponse>, Status> {
        let (_, extensions, stream) = request.into_parts();
        let import = import::Import::new(&self.store, &*self.inventory, &extensions);
        Ok(Response::new(import.run(stream).await?))
    }

    async fn search_books(
        &self,
        request: Request<Streaming<pb::SearchBooksRequest>>,
    ) -> Result<Response<BoxStream<pb::SearchBooksResponse>>, Status> {
        let queries = request.into_inner();
        Ok(Response::new(Box::pin(search::answers(self.store.clone(), self.streams.clone(), queries))))
    }
}

/// Where a list goes on, and for how long.
struct Page<'a, I> {
    list: &'a str,
    last: Option<I>,
    size: usize,
}

impl<'a, I> Page<'a, I> {
    fn parse(list: &'a str, size: i32, token: &str, id: impl Fn(i32) -> Option<I>) -> Result<Self, Refused> {
        let mut fields = Fields::default();
        let Some(size) = fields.page_size(size) else {
            return Err(fields.into());
        };
        let last = if token.is_empty() {
            None
        } else {
            let last = chassis::page::decode(list, token).and_then(|last| i32::try_from(last).ok());
            Some(last.and_then(id).ok_or(Refused::PageToken)?)
        };
        Ok(Self { list, last, size })
    }

    /// The items of this page and the token of the next one. `items` has one more than the page if there is a next.
    fn cut<T>(&self, mut items: Vec<T>, id: impl Fn(&T) -> i32) -> (Vec<T>, String) {
        let more = items.len() > self.size;
        items.truncate(self.size);
        let last = items.last().filter(|_| more).and_then(|item| u64::try_from(id(item)).ok());
        let token = last.map_or_else(String::new, |last| chassis::page::encode(self.list, last));
        (items, token)
    }
}

fn book_id(id: i32) -> Result<BookId, Refused> {
    let mut fields = Fields::default();
    fields.book_id("book_id", id).ok_or(fields.into())
}

/// What a caller is told when inventory doesn't do what it was asked.
fn upstream(status: Status) -> Status {
    match Reason::of(&status) {
        Reason::DeadlineExceeded => Refusal::new(Reason::DeadlineExceeded, status.message()).into(),
        // Inventory is going down; this service is not.
        Reason::ShuttingDown => unavailable(&status),
        _ if status.details().is_empty() => unavailable(&status),
        _ => status,
    }
}

fn unavailable(status: &Status) -> Status {
    tracing::warn!(code = ?status.code(), message = status.message(), "inventory can't be reached");
    Refusal::new(Reason::UpstreamUnavailable, "inventory can't be reached").into()
}

/// Whether a failed registration says for certain that inventory doesn't know the books now.
fn settles(status: &Status) -> bool {
    let unsure = [Reason::DeadlineExceeded, Reason::UpstreamUnavailable, Reason::Cancelled, Reason::Internal];
    !unsure.contains(&Reason::of(status))
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let plain = Refusal::new(refused.reason(), refused.to_string());
        let refusal = match refused {
            Refused::Fields(fields) => Refusal::fields(fields),
            Refused::SkuTaken(sku) => plain.with("sku", sku),
            Refused::VersionMismatch { expected, current, .. } => {
                plain.with("expectedVersion", expected).with("currentVersion", current)
            }
            _ => plain,
        };
        refusal.into()
    }
}
