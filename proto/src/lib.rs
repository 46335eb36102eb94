//! The contracts of the bookstore: what the services say to each other and to the outside.
//!
//! The server traits that tonic generates are the service interface. An edge holds `Arc<dyn CatalogService>`: in one
//! process that is the service itself, so that a call is a function call; across processes it is a [`client`] adapter.
//! Messages and [`tonic::Status`] are the same in both, so where a service runs is wiring, not code.
//!
//! What the methods promise is written in the `.proto` files beside this crate. [`Reason`] is the closed list of
//! refusals that every API style shares.

pub mod client;
pub mod codec;
mod error;
pub mod seed;
mod upload;

use std::sync::Arc;

pub use error::{DOMAIN, FieldError, Reason, Refusal, facts, field_errors, out_of_stock};
pub use upload::upload;

/// The encoded `FileDescriptorSet` of all contracts with what they import, for server reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptor.bin"));

/// The gRPC limit on one received message, in bytes. HTTP bodies have the same limit.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

// The generated code is documented in the `.proto` files, and its lints are tonic's business.
macro_rules! package {
    ($(#[$doc:meta])* $module:ident, $name:literal) => {
        $(#[$doc])*
        #[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
        pub mod $module {
            /// Version 1.
            pub mod v1 {
                include!(concat!(env!("OUT_DIR"), "/bookstore.", $name, ".v1.rs"));
            }
        }
    };
}

package!(
    /// Messages that more than one service uses.
    common, "common"
);
package!(
    /// Books, authors, reviews.
    catalog, "catalog"
);
package!(
    /// Stock and reservations.
    inventory, "inventory"
);
package!(
    /// Orders.
    ordering, "ordering"
);

/// What an edge needs: the three services, wherever they run.
#[derive(Clone)]
pub struct Services {
    /// Books, authors, reviews.
    pub catalog: Arc<dyn catalog::v1::catalog_service_server::CatalogService>,
    /// Stock and reservations.
    pub inventory: Arc<dyn inventory::v1::inventory_service_server::InventoryService>,
    /// Orders.
    pub ordering: Arc<dyn ordering::v1::ordering_service_server::OrderingService>,
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;
    use prost_types::method_options::IdempotencyLevel::{self, Idempotent, NoSideEffects};

    use super::*;

    /// What a method's name says about calling it twice.
    fn level(name: &str) -> IdempotencyLevel {
        let reads = ["Get", "List", "BatchGet", "BatchList", "Search", "Stream", "Watch"];
        let repeats = [
            "RegisterBooks",
            "ReserveStock",
            "ConfirmReservation",
            "ReleaseReservation",
            "PlaceOrder",
            "CancelOrder",
        ];
        if reads.iter().any(|read| name.starts_with(read)) {
            NoSideEffects
        } else if repeats.contains(&name) {
            Idempotent
        } else {
            IdempotencyLevel::IdempotencyUnknown
        }
    }

    #[test]
    fn the_contracts_say_which_calls_can_be_repeated() {
        let set = FileDescriptorSet::decode(DESCRIPTOR_SET).unwrap();
        for method in set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method) {
            let said = method.options.as_ref().map(|options| options.idempotency_level());
            assert_eq!(said.unwrap_or_default(), level(method.name()), "{}", method.name());
        }
    }
}
