//! Bounds on a parsed document: what it selects once its fragments are expanded, and what that costs.
//!
//! Each fragment is measured once and counted wherever it is spread, so that measuring takes time linear in the text
//! however large the expansion is.

use std::collections::{BTreeMap, HashMap};

use async_graphql::parser::types::{Directive, ExecutableDocument, Field, Selection, SelectionSet};
use async_graphql::registry::{MetaType, Registry};
use async_graphql::{Name, Positioned, Variables};
use async_graphql_value::Value as Literal;

use super::super::Limits;

/// What a selection amounts to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured<'a> {
    /// Fields and directives.
    pub(crate) selections: u64,
    /// About one for each value of the reply at its largest, and more for each call.
    pub(crate) cost: u64,
    /// How often each variable's value is used.
    pub(crate) uses: BTreeMap<&'a str, u64>,
    /// Whether the cost depends on variables, in the length of a list.
    pub(crate) depends: bool,
    levels: u32,
    introspection: u32,
}

/// Measures the selection of one operation; with variables where lists are as long as these say. Says what is too much
/// as soon as something is.
pub(crate) fn measure<'a>(
    types: &'a Registry,
    document: &'a ExecutableDocument,
    root: &str,
    selection: &'a SelectionSet,
    variables: Option<&Variables>,
    limits: &Limits,
) -> Result<Measured<'a>, String> {
    let mut measure = Measure { types, document, variables, limits, fragments: HashMap::new() };
    let at = types.types.get(root).map_or(Place::Unknown, Place::Type);
    measure.set(selection, at, Depth::default())
}

/// What selects.
#[derive(Clone, Copy)]
enum Place<'a> {
    Type(&'a MetaType),
    /// The schema about itself.
    Introspection,
    /// A type that doesn't exist: the document will be refused for it.
    Unknown,
}

/// Nesting so far, from the operation down.
#[derive(Clone, Copy, Default)]
struct Depth {
    levels: u32,
    introspection: u32,
}

enum Fragment<'a> {
    /// Being measured: a spread that meets it is a cycle.
    Open,
    Done(Measured<'a>),
}

struct Measure<'a, 'b> {
    types: &'a Registry,
    document: &'a ExecutableDocument,
    variables: Option<&'b Variables>,
    limits: &'b Limits,
    fragments: HashMap<&'a str, Fragment<'a>>,
}

impl<'a> Measure<'a, '_> {
    fn set(&mut self, set: &'a SelectionSet, at: Place<'a>, depth: Depth) -> Result<Measured<'a>, String> {
        let mut sum = Measured::default();
        self.check(&sum, depth)?;
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => self.field(&field.node, at, depth, &mut sum)?,
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref();
                    let at = on.map_or(at, |on| self.place(&on.node.on.node));
                    self.directives(&fragment.node.directives, &mut sum);
                    let deeper = Depth { levels: depth.levels + 1, ..depth };
                    let inside = self.set(&fragment.node.selection_set.node, at, deeper)?;
                    add(&mut sum, &inside, 1, 1);
                }
                Selection::FragmentSpread(spread) => {
                    self.directives(&spread.node.directives, &mut sum);
                    let deeper = Depth { levels: depth.levels + 1, ..depth };
                    let inside = self.spread(&spread.node.fragment_name.node, deeper)?;
                    add(&mut sum, &inside, 1, 1);
                }
            }
            self.check(&sum, depth)?;
        }
        Ok(sum)
    }

    fn field(
        &mut self,
        field: &'a Field,
        at: Place<'a>,
        depth: Depth,
        sum: &mut Measured<'a>,
    ) -> Result<(), String> {
        let name = field.name.node.as_str();
        self.directives(&field.directives, sum);
        let mut own = 1_u64;
        for (_, value) in &field.arguments {
            own = own.saturating_add(literal(&value.node, &mut sum.uses));
        }
        let (inside_at, nests) = match at {
            _ if name == "__schema" || name == "__type" => (Place::Introspection, false),
            Place::Introspection => (
                Place::Introspection,
                // As in graphql-js: through these lists introspection comes back to where it was.
                matches!(name, "fields" | "interfaces" | "possibleTypes" | "inputFields"),
            ),
            Place::Type(ty) => {
                let of = ty.field_by_name(name).and_then(|field| self.types.concrete_type_by_name(&field.ty));
                (of.map_or(Place::Unknown, Place::Type), false)
            }
            Place::Unknown => (Place::Unknown, false),
        };
        let price = self.price(field, at);
        sum.depends |= price.depends;
        sum.selections = sum.selections.saturating_add(1);
        sum.cost = sum.cost.saturating_add(own).saturating_add(price.calls);
        if !field.selection_set.node.items.is_empty() {
            let deeper =
                Depth { levels: depth.levels + 1, introspection: depth.introspection + u32::from(nests) };
            let inside = self.set(&field.selection_set.node, inside_at, deeper)?;
            add(sum, &inside, price.length, 1);
            sum.introspection = sum.introspection.max(inside.introspection + u32::from(nests));
        }
        Ok(())
    }

    fn spread(&mut self, name: &'a Name, depth: Depth) -> Result<Measured<'a>, String> {
        let name = name.as_str();
        match self.fragments.get(name) {
            Some(Fragment::Open) => return Err(format!("the fragment {name} contains itself")),
            Some(Fragment::Done(measured)) => {
                let measured = measured.clone();
                self.check(&measured, depth)?;
                return Ok(measured);
            }
            None => {}
        }
        let Some((_, fragment)) = self.document.fragments.get_key_value(name) else {
            return Ok(Measured::default());
        };
        self.fragments.insert(name, Fragment::Open);
        let at = self.place(&fragment.node.type_condition.node.on.node);
        let mut measured = self.set(&fragment.node.selection_set.node, at, depth)?;
        self.directives(&fragment.node.directives, &mut measured);
        self.fragments.insert(name, Fragment::Done(measured.clone()));
        Ok(measured)
    }

    fn directives(&self, directives: &'a [Positioned<Directive>], sum: &mut Measured<'a>) {
        for directive in directives {
            sum.selections = sum.selections.saturating_add(1);
            sum.cost = sum.cost.saturating_add(1);
            for (_, value) in &directive.node.arguments {
                sum.cost = sum.cost.saturating_add(literal(&value.node, &mut sum.uses));
            }
        }
    }

    fn place(&self, type_name: &str) -> Place<'a> {
        match self.types.types.get(type_name) {
            Some(ty) => Place::Type(ty),
            None if type_name.starts_with("__") => Place::Introspection,
            None => Place::Unknown,
        }
    }

    /// What a field costs beyond its own value, and how often what it selects is made.
    fn price(&self, field: &Field, at: Place<'a>) -> Price {
        let name = field.name.node.as_str();
        let ty = match at {
            Place::Type(ty) => ty.name(),
            // About as many as this schema has, on average.
            Place::Introspection => {
                return Price::list(match name {
                    "types" => 60,
                    "fields" => 6,
                    "directives" => 5,
                    "inputFields" | "enumValues" => 4,
                    "args" | "interfaces" | "possibleTypes" => 2,
                    _ => 1,
                });
            }
            Place::Unknown => return Price::list(1),
        };
        match (ty, name) {
            ("Query", "books" | "authors" | "orders") => {
                Price { calls: CALL, ..self.asked(field, "first", 50, 1_000) }
            }
            // Gathered into one call, however many there are.
            ("Query", "book" | "author") => Price { calls: 10, ..Price::list(1) },
            ("Query" | "Mutation", "__schema" | "__type" | "__typename") => Price::list(1),
            ("Query" | "Mutation" | "Subscription", _) => Price { calls: CALL, ..Price::list(1) },
            ("Book", "reviews") => self.asked(field, "last", 10, 100),
            // As many as the order has; a thousand is rare.
            ("Order", "lines" | "history") => Price { calls: CALL, ..Price::list(100) },
            ("Order", "shipTo") => Price { calls: CALL, ..Price::list(1) },
            _ => Price::list(1),
        }
    }

    /// A list as long as an argument says.
    fn asked(&self, field: &Field, argument: &str, default: u64, most: u64) -> Price {
        let number = |number: &async_graphql::Number| number.as_i64();
        let (length, depends) = match field.get_argument(argument).map(|value| &value.node) {
            Some(Literal::Number(n)) => (number(n), false),
            Some(Literal::Variable(name)) => {
                let value = self.variables.and_then(|variables| variables.get(name.as_str()));
                let length = match value {
                    Some(async_graphql::Value::Number(n)) => number(n),
                    Some(_) => None,
                    // The least that it can be, as long as nobody says.
                    None if self.variables.is_none() => Some(1),
                    None => None,
                };
                (length, true)
            }
            _ => (None, false),
        };
        // Zero stands for the default, as in the contract.
        let length = match length {
            None | Some(0) => default,
            Some(n) => u64::try_from(n).unwrap_or(0).min(most),
        };
        Price { calls: 0, length, depends }
    }

    fn check(&self, sum: &Measured<'_>, depth: Depth) -> Result<(), String> {
        let limits = self.limits;
        if sum.selections > limits.selections {
            Err(format!(
                "the document selects over {} fields once its fragments are expanded",
                limits.selections
            ))
        } else if depth.levels.saturating_add(sum.levels) > limits.levels {
            Err(format!("the document nests selections over {} deep", limits.levels))
        } else if depth.introspection.saturating_add(sum.introspection) > limits.introspection_levels {
            Err(format!("introspection nests lists over {} deep", limits.introspection_levels))
        } else if sum.cost > limits.cost {
            Err(format!("the operation costs over {}; ask for shorter lists or fewer fields", limits.cost))
        } else {
            Ok(())
        }
    }
}

/// What a call counts that isn't gathered with others.
const CALL: u64 = 200;

struct Price {
    calls: u64,
    length: u64,
    depends: bool,
}

impl Price {
    fn list(length: u64) -> Self {
        Self { calls: 0, length, depends: false }
    }
}

/// Adds what is selected inside, which is made `length` times.
fn add<'a>(sum: &mut Measured<'a>, inside: &Measured<'a>, length: u64, levels: u32) {
    sum.selections = sum.selections.saturating_add(inside.selections);
    sum.cost = sum.cost.saturating_add(inside.cost.saturating_mul(length));
    for (name, count) in &inside.uses {
        let uses = sum.uses.entry(name).or_default();
        *uses = uses.saturating_add(*count);
    }
    sum.depends |= inside.depends;
    sum.levels = sum.levels.max(inside.levels.saturating_add(levels));
    sum.introspection = sum.introspection.max(inside.introspection);
}

/// How large a literal is; counts the variables in it.
fn literal<'a>(value: &'a Literal, uses: &mut BTreeMap<&'a str, u64>) -> u64 {
    match value {
        Literal::Variable(name) => {
            let uses = uses.entry(name.as_str()).or_default();
            *uses = uses.saturating_add(1);
            1
        }
        Literal::List(items) => items.iter().fold(1_u64, |n, item| n.saturating_add(literal(item, uses))),
        Literal::Object(fields) => {
            fields.values().fold(1_u64, |n, field| n.saturating_add(literal(field, uses)))
        }
        _ => 1,
    }
}
