//! Connections: lists a page at a time, in the form that Relay's cursor specification gave its name to.

use async_graphql::{Object, SimpleObject};

use super::book::{Author, Book};
use super::order::Order;

/// Where a page stands in its list.
#[derive(Debug, Clone, SimpleObject)]
pub(crate) struct PageInfo {
    /// Whether there is a page after this one.
    has_next_page: bool,
    /// Whether this page was asked for with `after`, and so has others before it. Lists go forward only.
    has_previous_page: bool,
    /// Always null: lists go forward only.
    start_cursor: Option<String>,
    /// What to pass as `after` for the next page; null on the last page.
    end_cursor: Option<String>,
}

impl PageInfo {
    pub(crate) fn new(after: Option<String>, next_page_token: String) -> Self {
        let end_cursor = Some(next_page_token).filter(|token| !token.is_empty());
        Self {
            has_next_page: end_cursor.is_some(),
            has_previous_page: after.is_some_and(|token| !token.is_empty()),
            start_cursor: None,
            end_cursor,
        }
    }
}

macro_rules! connection {
    ($(#[$doc:meta])* $connection:ident, $(#[$edge_doc:meta])* $edge:ident of $node:ident) => {
        pub(crate) struct $connection {
            pub(crate) nodes: Vec<$node>,
            pub(crate) page_info: PageInfo,
        }

        $(#[$doc])*
        #[Object]
        impl $connection {
            /// The items of this page.
            async fn nodes(&self) -> &[$node] {
                &self.nodes
            }

            /// The items of this page with their cursors.
            async fn edges(&self) -> Vec<$edge<'_>> {
                let last = self.nodes.len().wrapping_sub(1);
                let cursor = |i| self.page_info.end_cursor.as_deref().filter(|_| i == last);
                self.nodes.iter().enumerate().map(|(i, node)| $edge { node, cursor: cursor(i) }).collect()
            }

            /// Where this page stands in the list.
            async fn page_info(&self) -> &PageInfo {
                &self.page_info
            }
        }

        pub(crate) struct $edge<'a> {
            node: &'a $node,
            cursor: Option<&'a str>,
        }

        $(#[$edge_doc])*
        #[Object]
        impl $edge<'_> {
            /// The item.
            async fn node(&self) -> &$node {
                self.node
            }

            /// Where the list goes on after this item, for `after`. Pages break only where the list says: the last
            /// item of a page has a cursor unless it ends the list, the others have none.
            async fn cursor(&self) -> Option<&str> {
                self.cursor
            }
        }
    };
}

connection!(
    /// A page of books.
    BookConnection,
    /// A book in a page.
    BookEdge of Book
);
connection!(
    /// A page of authors.
    AuthorConnection,
    /// An author in a page.
    AuthorEdge of Author
);
connection!(
    /// A page of orders.
    OrderConnection,
    /// An order in a page.
    OrderEdge of Order
);
