//! The order of fields in a reply: that of the document (the specification, 7.2.2). async-graphql puts them in the order
//! in which they are resolved, which depends on who answers first.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Field, FragmentDefinition, Selection, SelectionSet};
use async_graphql::{Name, Positioned, Value};

/// Puts the fields of what a selection brought into its order.
pub(crate) fn sort(data: &mut Value, document: &ExecutableDocument, selection: &SelectionSet) {
    set(data, &document.fragments, &[(0, selection)]);
}

type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

/// A selection, beside the place of the field that has it: one field may be selected several times.
type Placed<'a> = (usize, &'a SelectionSet);

fn set(value: &mut Value, fragments: &Fragments, selections: &[Placed<'_>]) {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::List(items) => return items.iter_mut().for_each(|item| set(item, fragments, selections)),
        _ => return,
    };
    let mut inside = Vec::new();
    let mut next = 0;
    for (_, selection) in selections {
        each(selection, fragments, &mut |field| {
            let key = &field.response_key().node;
            // Most often all is in order.
            let in_order = fields.get_index(next).is_some_and(|(name, _)| name == key);
            let Some(at) = (if in_order { Some(next) } else { fields.get_index_of(key) }) else { return };
            let place = at.min(next);
            if at >= next {
                fields.move_index(at, next);
                next += 1;
            }
            if !field.selection_set.node.items.is_empty() {
                inside.push((place, &field.selection_set.node));
            }
        });
    }
    inside.sort_by_key(|(place, _)| *place);
    for selections in inside.chunk_by(|(one, _), (other, _)| one == other) {
        let place = selections.first().map(|(place, _)| *place);
        if let Some((_, value)) = place.and_then(|place| fields.get_index_mut(place)) {
            set(value, fragments, selections);
        }
    }
}

/// All fields, those of fragments where they are spread. That this ends, and soon, is checked before a document runs.
fn each<'a>(selection: &'a SelectionSet, fragments: &'a Fragments, found: &mut impl FnMut(&'a Field)) {
    for item in &selection.items {
        match &item.node {
            Selection::Field(field) => found(&field.node),
            Selection::InlineFragment(fragment) => {
                each(&fragment.node.selection_set.node, fragments, found);
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = fragments.get(&spread.node.fragment_name.node) {
                    each(&fragment.node.selection_set.node, fragments, found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn sorted(document: &str, data: &str) -> String {
        let document = parse_query(document).unwrap();
        let (_, operation) = document.operations.iter().next().unwrap();
        let mut data: Value = serde_json::from_str(data).unwrap();
        sort(&mut data, &document, &operation.node.selection_set.node);
        serde_json::to_string(&data).unwrap()
    }

    #[test]
    fn fields_come_in_the_order_of_the_document() {
        for (document, data, expected) in [
            ("{ a b c }", r#"{"c":3,"a":1,"b":2}"#, r#"{"a":1,"b":2,"c":3}"#),
            ("{ b: a a: b }", r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            ("{ a b c }", r#"{"c":3,"a":1}"#, r#"{"a":1,"c":3}"#),
            ("{ a b }", r#"{"b":null,"a":[]}"#, r#"{"a":[],"b":null}"#),
            (
                "{ b { y x } a { x { q p } } }",
                r#"{"a":{"x":[{"p":1,"q":2},null,{"q":3,"p":4}]},"b":{"x":1,"y":2}}"#,
                r#"{"b":{"y":2,"x":1},"a":{"x":[{"q":2,"p":1},null,{"q":3,"p":4}]}}"#,
            ),
            (
                "{ a { x } b a { z y x } }",
                r#"{"b":1,"a":{"y":1,"z":2,"x":3}}"#,
                r#"{"a":{"x":3,"z":2,"y":1},"b":1}"#,
            ),
            (
                "{ c ...F d } fragment F on Q { b ... on Q { a c } }",
                r#"{"a":1,"b":2,"c":3,"d":4}"#,
                r#"{"c":3,"b":2,"a":1,"d":4}"#,
            ),
            ("{ a }", "null", "null"),
        ] {
            assert_eq!(sorted(document, data), expected, "{document}");
        }
    }
}
