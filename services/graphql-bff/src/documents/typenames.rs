//! `__typename` for the rules of GraphQL: async-graphql's check nothing of it, neither its directives nor the variables
//! in them, so that wrong ones pass and right ones are refused as variables that nothing uses.

use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, InlineFragment, Selection, SelectionSet,
};
use async_graphql::{Positioned, ServerError};

/// A document to be checked in the place of this one: the directives of a `__typename` stand at an inline fragment around
/// it, where they mean the same and are checked.
pub(super) fn checkable(document: &ExecutableDocument) -> Result<ExecutableDocument, Vec<ServerError>> {
    let mut document = document.clone();
    let mut errors = Vec::new();
    for fragment in document.fragments.values_mut() {
        set(&mut fragment.node.selection_set.node, &mut errors);
    }
    match &mut document.operations {
        DocumentOperations::Single(only) => {
            set(&mut only.node.selection_set.node, &mut errors);
        }
        DocumentOperations::Multiple(all) => {
            all.values_mut().for_each(|one| set(&mut one.node.selection_set.node, &mut errors));
        }
    }
    if errors.is_empty() { Ok(document) } else { Err(errors) }
}

fn set(selection: &mut SelectionSet, errors: &mut Vec<ServerError>) {
    for item in &mut selection.items {
        match &mut item.node {
            Selection::Field(field) if field.node.name.node == "__typename" => {
                if let Some(fragment) = typename(field, errors) {
                    item.node = Selection::InlineFragment(fragment);
                }
            }
            Selection::Field(field) => set(&mut field.node.selection_set.node, errors),
            Selection::InlineFragment(fragment) => set(&mut fragment.node.selection_set.node, errors),
            Selection::FragmentSpread(_) => {}
        }
    }
}

fn typename(
    field: &mut Positioned<Field>,
    errors: &mut Vec<ServerError>,
) -> Option<Positioned<InlineFragment>> {
    let at = field.pos;
    if let Some((argument, _)) = field.node.arguments.first() {
        errors.push(ServerError::new("__typename takes no arguments", Some(argument.pos)));
    }
    if !field.node.selection_set.node.items.is_empty() {
        errors.push(ServerError::new("__typename is a String, of which nothing can be selected", Some(at)));
    }
    let directives = std::mem::take(&mut field.node.directives);
    (!directives.is_empty()).then(|| {
        let items = vec![Positioned::new(Selection::Field(field.clone()), at)];
        let selection_set = Positioned::new(SelectionSet { items }, at);
        Positioned::new(InlineFragment { type_condition: None, directives, selection_set }, at)
    })
}
