//! The order of fields in a reply: that of the document (the specification, 7.2.2). async-graphql puts them in the order
//! in which they are resolved, which depends on who answers first.

use std::collections::HashMap;

use async_graphql::parser::types::{ExecutableDocument, Field, FragmentDefinition, Selection, SelectionSet};
use async_graphql::{Name, Positioned, Value};

/// Puts the fields of what a selection brought into its order.
pub(crate) fn sort(data: &mut Value, document: &ExecutableDocument, selection: &SelectionSet) {
    // Most often all is in order, and to see that costs less than to sort it.
    if !in_order(data, &document.fragments, selection) {
        set(data, &document.fragments, &[(0, selection)]);
    }
}

type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

/// Whether there is nothing to do. A field that was skipped, or selected twice, is left to [`set`].
fn in_order(value: &Value, fragments: &Fragments, selection: &SelectionSet) -> bool {
    match value {
        Value::Object(fields) => {
            let mut fields = fields.iter();
            follows(&mut fields, fragments, selection) && fields.next().is_none()
        }
        Value::List(items) => items.iter().all(|item| in_order(item, fragments, selection)),
        _ => true,
    }
}

/// Whether the selected fields come next.
fn follows<'a>(
    fields: &mut impl Iterator<Item = (&'a Name, &'a Value)>,
    fragments: &Fragments,
    selection: &SelectionSet,
) -> bool {
    selection.items.iter().all(|item| match &item.node {
        Selection::Field(field) => fields.next().is_some_and(|(name, value)| {
            let inside = &field.node.selection_set.node;
            *name == field.node.response_key().node
                && (inside.items.is_empty() || in_order(value, fragments, inside))
        }),
        Selection::InlineFragment(fragment) => follows(fields, fragments, &fragment.node.selection_set.node),
        Selection::FragmentSpread(spread) => {
            let fragment = fragments.get(&spread.node.fragment_name.node);
            fragment.is_none_or(|fragment| follows(fields, fragments, &fragment.node.selection_set.node))
        }
    })
}

/// A selection, beside the place of the field that has it: one field may be selected several times.
type Placed<'a> = (usize, &'a SelectionSet);

fn set(value: &mut Value, fragments: &Fragments, selections: &[Placed<'_>]) {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::List(items) => return items.iter_mut().for_each(|item| set(item, fragments, selections)),
        _ => return,
    };
    let mut left = std::mem::take(fields);
    fields.reserve(left.len());
    let mut inside = Vec::new();
    for (_, selection) in selections {
        each(selection, fragments, &mut |field| {
            let key = &field.response_key().node;
            let place = match left.swap_remove_entry(key) {
                Some((name, value)) => Some(fields.insert_full(name, value).0),
                None => fields.get_index_of(key),
            };
            if let Some(place) = place
                && !field.selection_set.node.items.is_empty()
            {
                inside.push((place, &field.selection_set.node));
            }
        });
    }
    fields.extend(left);
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
            ("{ a b c }", r#"{"a":1,"c":3}"#, r#"{"a":1,"c":3}"#),
            ("{ a { x } a { y } }", r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"x":1,"y":2}}"#),
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
