//! Keeps documents small before anything walks them.
//!
//! A GraphQL document can be tiny and cost the world: brackets that recurse a parser out of its stack, fragments that
//! double at each step, aliases by the thousand, lists in lists, introspection that goes round in circles. Libraries
//! bound these after they have walked them, some in exponential time. So a text is bounded before it is parsed
//! ([`scan()`]), and a parsed document before anything else looks at it ([`measure()`]); both take time linear in the text.

mod measure;
mod scan;

pub(crate) use measure::measure;
pub(crate) use scan::scan;
