//! The routes, one module for each kind of thing: what it looks like as JSON, and its handlers.

mod authors;
mod books;
mod bulk;
mod orders;
mod reservations;
mod reviews;
mod screens;
mod stock;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;

/// All of them, with what they say of themselves.
pub(crate) fn all() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(books::list_books, books::create_book))
        .routes(routes!(books::get_book, books::update_book, books::delete_book))
        .routes(routes!(bulk::export_books))
        .routes(routes!(bulk::import_books))
        .routes(routes!(stock::get_stock))
        .routes(routes!(stock::watch_stock))
        .routes(routes!(stock::adjust_stock))
        .routes(routes!(reviews::list_reviews, reviews::add_review))
        .routes(routes!(authors::list_authors))
        .routes(routes!(authors::get_author))
        .routes(routes!(reservations::reserve_stock))
        .routes(routes!(reservations::get_reservation))
        .routes(routes!(reservations::confirm_reservation))
        .routes(routes!(reservations::release_reservation))
        .routes(routes!(orders::list_orders, orders::place_order))
        .routes(routes!(orders::get_order))
        .routes(routes!(orders::cancel_order))
        .routes(routes!(orders::watch_order))
        .routes(routes!(screens::book_detail))
        .routes(routes!(screens::catalog))
}
