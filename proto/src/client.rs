//! Adapters that make a service in another process look like one in this process.
//!
//! They are generic over the transport, which is where deadlines, retries and connections live: extensions of the
//! request (the deadline among them) reach the transport untouched.

use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Request, Response, Status, Streaming};

use crate::catalog::v1 as catalog;
use crate::inventory::v1 as inventory;
use crate::ordering::v1 as ordering;

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;

/// What a service sends to a caller who sends a stream: messages up to the first error. The transport tells the far
/// side of a broken stream by itself.
fn until_error<T: Send + 'static>(stream: Streaming<T>) -> impl Stream<Item = T> + Send + 'static {
    stream.take_while(|m| std::future::ready(m.is_ok())).filter_map(|m| std::future::ready(m.ok()))
}

/// Declares the adapter of one service: a line for each method that only passes on.
macro_rules! adapter {
    (
        $(#[$doc:meta])*
        $name:ident for $module:ident :: $server:ident :: $service:ident over $client:ident :: $stub:ident {
            unary { $($method:ident($request:ident) -> $response:ident;)* }
            streams { $($stream:ident($stream_request:ident) -> $stream_response:ident;)* }
            uploads { $($upload:ident($upload_request:ident) -> $upload_response:ident;)* }
            duplex { $($duplex:ident($duplex_request:ident) -> $duplex_response:ident;)* }
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name<T>($module::$client::$stub<T>);

        impl<T> $name<T>
        where
            T: GrpcService<Body>,
            T::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
            T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
            <T::ResponseBody as HttpBody>::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
        {
            /// An adapter over this transport.
            pub fn new(transport: T) -> Self {
                Self($module::$client::$stub::new(transport).max_decoding_message_size(REPLY_LIMIT))
            }
        }

        #[async_trait]
        impl<T> $module::$server::$service for $name<T>
        where
            T: GrpcService<Body> + Clone + Send + Sync + 'static,
            T::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
            T::Future: Send,
            T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
            <T::ResponseBody as HttpBody>::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
        {
            $(async fn $method(
                &self,
                request: Request<$module::$request>,
            ) -> Result<Response<$module::$response>, Status> {
                self.0.clone().$method(request).await
            })*

            $(async fn $stream(
                &self,
                request: Request<$module::$stream_request>,
            ) -> Result<Response<BoxStream<$module::$stream_response>>, Status> {
                let response = self.0.clone().$stream(request).await?;
                Ok(response.map(|stream| Box::pin(stream) as BoxStream<_>))
            })*

            $(async fn $upload(
                &self,
                request: Request<Streaming<$module::$upload_request>>,
            ) -> Result<Response<$module::$upload_response>, Status> {
                self.0.clone().$upload(request.map(until_error)).await
            })*

            $(async fn $duplex(
                &self,
                request: Request<Streaming<$module::$duplex_request>>,
            ) -> Result<Response<BoxStream<$module::$duplex_response>>, Status> {
                let response = self.0.clone().$duplex(request.map(until_error)).await?;
                Ok(response.map(|stream| Box::pin(stream) as BoxStream<_>))
            })*
        }
    };
}

/// Holds the largest reply that the contracts allow, 10,000 reviews of 2,000 characters: 21 MB in ASCII, and up to 85 MB
/// when each character takes four bytes. It only keeps a service that has gone wrong from taking all memory here.
const REPLY_LIMIT: usize = 96 << 20;

adapter! {
    /// Catalog in another process.
    Catalog for catalog::catalog_service_server::CatalogService over catalog_service_client::CatalogServiceClient {
        unary {
            get_book(GetBookRequest) -> GetBookResponse;
            batch_get_books(BatchGetBooksRequest) -> BatchGetBooksResponse;
            list_books(ListBooksRequest) -> ListBooksResponse;
            create_book(CreateBookRequest) -> CreateBookResponse;
            batch_create_books(BatchCreateBooksRequest) -> BatchCreateBooksResponse;
            update_book(UpdateBookRequest) -> UpdateBookResponse;
            delete_book(DeleteBookRequest) -> DeleteBookResponse;
            get_author(GetAuthorRequest) -> GetAuthorResponse;
            batch_get_authors(BatchGetAuthorsRequest) -> BatchGetAuthorsResponse;
            list_authors(ListAuthorsRequest) -> ListAuthorsResponse;
            list_reviews(ListReviewsRequest) -> ListReviewsResponse;
            batch_list_reviews(BatchListReviewsRequest) -> BatchListReviewsResponse;
            add_review(AddReviewRequest) -> AddReviewResponse;
            get_book_detail(GetBookDetailRequest) -> GetBookDetailResponse;
            list_book_details(ListBookDetailsRequest) -> ListBookDetailsResponse;
        }
        streams {
            stream_books(StreamBooksRequest) -> StreamBooksResponse;
        }
        uploads {
            import_books(ImportBooksRequest) -> ImportBooksResponse;
        }
        duplex {
            search_books(SearchBooksRequest) -> SearchBooksResponse;
        }
    }
}

adapter! {
    /// Inventory in another process.
    Inventory for inventory::inventory_service_server::InventoryService
        over inventory_service_client::InventoryServiceClient {
        unary {
            get_stock(GetStockRequest) -> GetStockResponse;
            batch_get_stock(BatchGetStockRequest) -> BatchGetStockResponse;
            register_books(RegisterBooksRequest) -> RegisterBooksResponse;
            adjust_stock(AdjustStockRequest) -> AdjustStockResponse;
            reserve_stock(ReserveStockRequest) -> ReserveStockResponse;
            confirm_reservation(ConfirmReservationRequest) -> ConfirmReservationResponse;
            release_reservation(ReleaseReservationRequest) -> ReleaseReservationResponse;
            get_reservation(GetReservationRequest) -> GetReservationResponse;
            list_reservations(ListReservationsRequest) -> ListReservationsResponse;
        }
        streams {
            watch_stock(WatchStockRequest) -> WatchStockResponse;
        }
        uploads {}
        duplex {}
    }
}

adapter! {
    /// Ordering in another process.
    Ordering for ordering::ordering_service_server::OrderingService
        over ordering_service_client::OrderingServiceClient {
        unary {
            place_order(PlaceOrderRequest) -> PlaceOrderResponse;
            get_order(GetOrderRequest) -> GetOrderResponse;
            list_orders(ListOrdersRequest) -> ListOrdersResponse;
            cancel_order(CancelOrderRequest) -> CancelOrderResponse;
        }
        streams {
            watch_order(WatchOrderRequest) -> WatchOrderResponse;
        }
        uploads {}
        duplex {}
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn the_largest_reply_is_within_the_limit() {
        let longest = |chars| "\u{10ffff}".repeat(chars);
        let created_at = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: i32::MAX });
        let (reviewer, text) = (longest(80), longest(2_000));
        let review =
            catalog::Review { id: i32::MAX, book_id: i32::MAX, rating: 5, reviewer, text, created_at };
        let of_book = catalog::BookReviews { book_id: i32::MAX, reviews: vec![review; 10] };
        let price = Some(crate::common::v1::Money { amount_minor: i64::MAX, currency: "EUR".to_owned() });
        let (sku, title) = (crate::seed::sku(1), longest(300));
        let book = catalog::Book { id: i32::MAX, sku, title, author_id: i32::MAX, price, version: i32::MAX };
        let one =
            catalog::BatchGetBooksResponse { books: vec![book], authors: Vec::new(), reviews: vec![of_book] };
        // Of a message that repeats its parts the size is the sum of theirs.
        let size = 1_000 * one.encoded_len();
        assert!((80 << 20..REPLY_LIMIT).contains(&size), "{size}");
    }
}
