//! The operations that the suite publishes: screens, load scripts and the comparison send these texts and no others.
//!
//! `graphql/operations/` has their only copies. They are compiled in, prepared at start, known by the hash of their
//! text, and one click away in GraphiQL.

/// A published operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The name of the operation and of its file.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! operations {
    ($($name:literal,)*) => {
        /// All published operations, in the order of their files' names.
        pub const OPERATIONS: &[Operation] = &[$(Operation {
            name: $name,
            text: include_str!(concat!("../../../graphql/operations/", $name, ".graphql")),
        },)*];
    };
}

operations![
    "AddReview",
    "AdjustStock",
    "BookDetail",
    "CancelOrder",
    "ConfirmReservation",
    "CreateBook",
    "DeleteBook",
    "GetAuthor",
    "GetOrderFull",
    "GetOrderHistory",
    "GetOrderStatus",
    "GetReservation",
    "ListAuthors",
    "ListBooks",
    "ListOrders",
    "OrderChanged",
    "PlaceOrder",
    "ReleaseReservation",
    "ReserveStock",
    "StockChanged",
    "UpdateBook",
];

/// Variables to try each operation with: a JSON object by the operation's name.
pub(crate) const EXAMPLES: &str = include_str!("../../../graphql/examples.json");
