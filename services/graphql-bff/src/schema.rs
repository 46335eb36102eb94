//! The graph: what it is made of and who resolves it. It asks services and translates what they say.

mod book;
mod mutation;
mod order;
mod page;
mod scalar;
mod stock;
mod subscription;

use std::sync::Arc;

use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute};
use async_graphql::registry::Registry;
use async_graphql::{
    Context, ID, Object, OutputType, Response, SDLExportOptions, SchemaBuilder, SubscriptionType,
};
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use proto::{Reason, Refusal};
use tonic::Status;

use crate::error::{Names, or_null};
use crate::load::Loads;
use crate::schema::book::{Author, Book, BookWants};
use crate::schema::mutation::Mutation;
use crate::schema::order::{Order, view_of};
use crate::schema::page::{AuthorConnection, BookConnection, OrderConnection, PageInfo};
use crate::schema::stock::Reservation;
use crate::schema::subscription::Subscription;

/// A schema of this edge.
pub(crate) type Schema = async_graphql::Schema<Query, Mutation, Subscription>;

/// The schema that runs documents. They have been checked by then ([`checker`]), so it checks again no more than it
/// must; and it has no extensions, because with a single one every field takes the slow path.
pub(crate) fn runner() -> Schema {
    builder().validation_mode(async_graphql::ValidationMode::Fast).finish()
}

/// The schema that checks documents by all rules, and answers with nothing instead of running them.
pub(crate) fn checker() -> Schema {
    builder().extension(CheckOnly).finish()
}

/// The types of the schema, for checks of our own.
pub(crate) fn types() -> Registry {
    let mut registry = Registry {
        query_type: "Query".to_owned(),
        mutation_type: Some("Mutation".to_owned()),
        subscription_type: Some("Subscription".to_owned()),
        ..Registry::default()
    };
    Query::create_type_info(&mut registry);
    Mutation::create_type_info(&mut registry);
    Subscription::create_type_info(&mut registry);
    registry
}

/// The schema as text.
pub(crate) fn sdl() -> String {
    builder().finish().sdl_with_options(SDLExportOptions::new().include_specified_by())
}

fn builder() -> SchemaBuilder<Query, Mutation, Subscription> {
    Schema::build(Query, Mutation, Subscription)
}

struct CheckOnly;

impl ExtensionFactory for CheckOnly {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(CheckOnly)
    }
}

#[async_trait::async_trait]
impl Extension for CheckOnly {
    async fn execute(&self, _: &ExtensionContext<'_>, _: Option<&str>, _: NextExecute<'_>) -> Response {
        Response::default()
    }
}

/// What all resolvers of an operation share.
fn loads<'a>(ctx: &Context<'a>) -> &'a Arc<Loads> {
    ctx.data_unchecked::<Arc<Loads>>()
}

/// A reply that lacks what the contract promises.
fn missing(what: &str) -> Status {
    Status::internal(format!("the reply holds no {what}"))
}

const PAGE: Names = &[("page_size", "first"), ("page_token", "after")];

pub(crate) struct Query;

/// What can be read. A field that could not be read is null, and the reply's errors say why; the other fields are
/// there.
#[Object]
impl Query {
    /// One book. Null with the error BOOK_NOT_FOUND when there is none with this id.
    async fn book(&self, ctx: &Context<'_>, #[graphql(desc = "The book's id.")] id: i32) -> Option<Book> {
        let wants = BookWants::of(&[ctx.look_ahead()]);
        let found = Book::load(loads(ctx), id, wants).await;
        let found = found.and_then(|book| {
            let absent = || Refusal::new(Reason::BookNotFound, format!("no book has id {id}")).into();
            book.ok_or_else(absent)
        });
        or_null(ctx, found, &[("book_id", "id")])
    }

    /// Books in order of id, a page at a time.
    async fn books(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "At most this many: 50 unless said, at most 1,000, never negative.")] first: Option<
            i32,
        >,
        #[graphql(desc = "Continue after this cursor, an `endCursor` of this list.")] after: Option<String>,
    ) -> Option<BookConnection> {
        let loads = loads(ctx);
        let message = catalog::ListBooksRequest {
            page_size: first.unwrap_or_default(),
            page_token: after.clone().unwrap_or_default(),
        };
        let reply = loads.caller.services.catalog.list_books(loads.caller.request(message)).await;
        let reply = or_null(ctx, reply, PAGE)?.into_inner();
        let ahead = ctx.look_ahead();
        let wants = BookWants::of(&[ahead.field("nodes"), ahead.field("edges").field("node")]);
        let books = Book::complete(loads, reply.books, wants).await;
        Some(BookConnection { nodes: books, page_info: PageInfo::new(after, reply.next_page_token) })
    }

    /// One author. Null with the error AUTHOR_NOT_FOUND when there is none with this id.
    async fn author(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The author's id.")] id: i32,
    ) -> Option<Author> {
        let found = loads(ctx).author(id).await.and_then(|author| {
            let absent = || Refusal::new(Reason::AuthorNotFound, format!("no author has id {id}")).into();
            author.map(Author).ok_or_else(absent)
        });
        or_null(ctx, found, &[("author_id", "id")])
    }

    /// Authors in order of id, a page at a time.
    async fn authors(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "At most this many: 50 unless said, at most 1,000, never negative.")] first: Option<
            i32,
        >,
        #[graphql(desc = "Continue after this cursor, an `endCursor` of this list.")] after: Option<String>,
    ) -> Option<AuthorConnection> {
        let loads = loads(ctx);
        let message = catalog::ListAuthorsRequest {
            page_size: first.unwrap_or_default(),
            page_token: after.clone().unwrap_or_default(),
        };
        let reply = loads.caller.services.catalog.list_authors(loads.caller.request(message)).await;
        let reply = or_null(ctx, reply, PAGE)?.into_inner();
        let nodes = reply.authors.into_iter().map(|author| Author(Arc::new(author))).collect();
        Some(AuthorConnection { nodes, page_info: PageInfo::new(after, reply.next_page_token) })
    }

    /// One order, as much of it as the selection needs. Null with the error ORDER_NOT_FOUND when there is none with
    /// this id.
    async fn order(&self, ctx: &Context<'_>, #[graphql(desc = "The order's id.")] id: ID) -> Option<Order> {
        let view = view_of(&ctx.look_ahead());
        let found = loads(ctx).order(id.0, view).await.map(|order| Order::new(order, view));
        or_null(ctx, found, &[("order_id", "id")])
    }

    /// Orders, latest first, a page at a time. Lines, addresses and histories cost a call for each order: ask for few
    /// orders then.
    async fn orders(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "At most this many: 50 unless said, at most 1,000, never negative.")] first: Option<
            i32,
        >,
        #[graphql(desc = "Continue after this cursor, an `endCursor` of this list.")] after: Option<String>,
    ) -> Option<OrderConnection> {
        let loads = loads(ctx);
        let message = ordering::ListOrdersRequest {
            page_size: first.unwrap_or_default(),
            page_token: after.clone().unwrap_or_default(),
        };
        let reply = loads.caller.services.ordering.list_orders(loads.caller.request(message)).await;
        let reply = or_null(ctx, reply, PAGE)?.into_inner();
        let orders = reply.orders.into_iter();
        let nodes = orders.map(|order| Order::new(order, ordering::OrderView::Status)).collect();
        Some(OrderConnection { nodes, page_info: PageInfo::new(after, reply.next_page_token) })
    }

    /// One reservation. Null with the error RESERVATION_NOT_FOUND when there is none with this id, or it is forgotten.
    async fn reservation(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The reservation's id.")] id: ID,
    ) -> Option<Reservation> {
        let loads = loads(ctx);
        let message = inventory::GetReservationRequest { reservation_id: id.0, order_id: String::new() };
        let reply = loads.caller.services.inventory.get_reservation(loads.caller.request(message)).await;
        let found = reply
            .and_then(|reply| reply.into_inner().reservation.ok_or_else(|| missing("reservation")))
            .map(Reservation);
        or_null(ctx, found, &[("reservation_id", "id")])
    }
}
