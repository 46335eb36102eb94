//! Values from outside against the types that the schema gives them.
//!
//! async-graphql checks values where they are used; by then a wrong variable is an error in the middle of the data, or
//! stays unnoticed inside an object. Here each value is checked as a whole, before anything runs, and every broken rule
//! is told with its path, as the services do.

use async_graphql::indexmap::IndexMap;
use async_graphql::parser::types::{OperationDefinition, VariableDefinition};
use async_graphql::registry::{MetaInputValue, MetaType, MetaTypeName, Registry};
use async_graphql::{Name, Positioned, Value, Variables};
use proto::FieldError;

/// At most this many broken rules are told, as in the services.
const MAX_ERRORS: usize = 20;

/// Checks the variables of an operation. Those that it doesn't define are dropped, as the GraphQL specification says.
pub(crate) fn check_variables(
    types: &Registry,
    operation: &OperationDefinition,
    variables: &mut Variables,
) -> Result<(), Vec<FieldError>> {
    let definitions = &operation.variable_definitions;
    variables.retain(|name, _| definitions.iter().any(|d| d.node.name.node == *name));
    let mut check = Check { types, path: String::new(), errors: Vec::new() };
    for Positioned { node: VariableDefinition { name, var_type, default_value, .. }, .. } in definitions {
        let ty = var_type.node.to_string();
        let name = name.node.as_str();
        match variables.get(name) {
            Some(value) => check.root(name, &ty, value),
            None if default_value.is_none() && !var_type.node.nullable => {
                check.path.clear();
                check.path.push_str(name);
                check.refuse("is required".to_owned());
            }
            None => {}
        }
    }
    if check.errors.is_empty() { Ok(()) } else { Err(check.errors) }
}

/// Checks the value of an argument named `name`. In the paths of what is wrong an input object has no name of its own:
/// they are relative to it, as in the services.
pub(crate) fn check_argument(types: &Registry, name: &str, ty: &str, value: &Value) -> Vec<FieldError> {
    let mut check = Check { types, path: String::new(), errors: Vec::new() };
    check.root(name, ty, value);
    check.errors
}

/// Any value of this type, to stand for a variable where only its type is known.
pub(crate) fn sample(types: &Registry, ty: &str) -> Value {
    match MetaTypeName::create(ty) {
        MetaTypeName::NonNull(ty) => sample(types, ty),
        MetaTypeName::List(_) => Value::List(Vec::new()),
        MetaTypeName::Named(name) => match types.types.get(name) {
            Some(MetaType::InputObject { input_fields, .. }) => {
                let required = input_fields.values().filter(|field| is_required(field));
                Value::Object(
                    required.map(|field| (Name::new(&field.name), sample(types, &field.ty))).collect(),
                )
            }
            Some(MetaType::Enum { enum_values, .. }) => {
                enum_values.keys().next().map_or(Value::Null, |name| Value::Enum(Name::new(name)))
            }
            _ => match name {
                "Boolean" => Value::Boolean(false),
                "Int" | "Int64" | "Float" => Value::Number(0.into()),
                _ => Value::String(String::new()),
            },
        },
    }
}

/// How large a value is: its parts, and its text by the 32 bytes.
pub(crate) fn size(value: &Value) -> u64 {
    match value {
        Value::List(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 32,
        _ => 1,
    }
}

fn is_required(field: &MetaInputValue) -> bool {
    field.default_value.is_none() && MetaTypeName::create(&field.ty).is_non_null()
}

struct Check<'a> {
    types: &'a Registry,
    path: String,
    errors: Vec<FieldError>,
}

impl Check<'_> {
    fn root(&mut self, name: &str, ty: &str, value: &Value) {
        self.path.clear();
        if !matches!(value, Value::Object(_)) {
            self.path.push_str(name);
        }
        self.value(ty, value);
    }

    fn value(&mut self, ty: &str, value: &Value) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        match MetaTypeName::create(ty) {
            MetaTypeName::NonNull(ty) if *value != Value::Null => self.value(ty, value),
            MetaTypeName::NonNull(_) => self.refuse("must not be null".to_owned()),
            _ if *value == Value::Null => {}
            MetaTypeName::List(ty) => match value {
                Value::List(items) => {
                    for (i, item) in items.iter().enumerate() {
                        self.at(&format!("[{i}]"), |check| check.value(ty, item));
                    }
                }
                // The specification lets one item stand for a list of it.
                item => self.value(ty, item),
            },
            MetaTypeName::Named(name) => self.named(name, value),
        }
    }

    fn named(&mut self, name: &str, value: &Value) {
        match self.types.types.get(name) {
            Some(MetaType::InputObject { input_fields, .. }) => match value {
                Value::Object(fields) => self.object(name, input_fields, fields),
                other => self.refuse(format!("must be an object, was {}", shown(other))),
            },
            Some(MetaType::Enum { enum_values, .. }) => match value {
                Value::Enum(of) if enum_values.contains_key(of.as_str()) => {}
                Value::String(of) if enum_values.contains_key(of) => {}
                other => self.refuse(format!("must be a {name}, was {}", shown(other))),
            },
            Some(MetaType::Scalar { is_valid, .. }) => {
                let integer = || match value {
                    Value::Number(number) => number.as_i64(),
                    _ => None,
                };
                let (good, what) = match name {
                    "Int" => (integer().is_some_and(|n| i32::try_from(n).is_ok()), "a 32-bit integer"),
                    "Int64" => (integer().is_some(), "a 64-bit integer"),
                    "String" => (matches!(value, Value::String(_)), "a string"),
                    "ID" => (matches!(value, Value::String(_)) || integer().is_some(), "a string"),
                    "Boolean" => (matches!(value, Value::Boolean(_)), "true or false"),
                    _ => (is_valid.as_ref().is_none_or(|is_valid| is_valid(value)), "a value of its type"),
                };
                if !good {
                    self.refuse(format!("must be {what}, was {}", shown(value)));
                }
            }
            // Documents that name other types were refused when they were checked.
            _ => self.refuse(format!("has the unknown type {name}")),
        }
    }

    fn object(
        &mut self,
        name: &str,
        input_fields: &IndexMap<String, MetaInputValue>,
        fields: &IndexMap<Name, Value>,
    ) {
        for (key, value) in fields {
            match input_fields.get(key.as_str()) {
                Some(field) => self.at(&format!(".{key}"), |check| check.value(&field.ty, value)),
                None => self.at(&format!(".{key}"), |check| check.refuse(format!("is no field of {name}"))),
            }
        }
        for field in input_fields.values().filter(|field| is_required(field)) {
            if !fields.contains_key(field.name.as_str()) {
                self.at(&format!(".{}", field.name), |check| check.refuse("is required".to_owned()));
            }
        }
    }

    fn at(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // A path doesn't begin with the dot that joins its steps.
        self.path.push_str(if self.path.is_empty() { step.trim_start_matches('.') } else { step });
        check(self);
        self.path.truncate(length);
    }

    fn refuse(&mut self, rule: String) {
        if self.errors.len() < MAX_ERRORS {
            let field: String = self.path.chars().take(200).collect();
            self.errors.push(FieldError { field, rule });
        }
    }
}

/// A value in a message: short, whatever was sent.
fn shown(value: &Value) -> String {
    match value {
        Value::List(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => {
            format!("{:?}", format!("{}…", text.chars().take(40).collect::<String>()))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::value;

    use super::*;
    use crate::schema;

    fn check(ty: &str, value: Value) -> Vec<String> {
        let errors = check_argument(&schema::types(), "input", ty, &value);
        errors.into_iter().map(|e| format!("{}: {}", e.field, e.rule)).collect()
    }

    #[test]
    fn values_that_fit_pass() {
        for (ty, value) in [
            ("Int!", value!(7)),
            ("Int", value!(null)),
            ("ID!", value!(7)),
            ("[Int!]", value!([1, 2])),
            ("[Int!]", value!(1)),
            ("ReserveStockInput!", value!({"orderId": "o", "lines": [{"sku": "s", "quantity": 0}]})),
            ("PlaceOrderInput!", value!({"requestId": "r", "lines": [], "shipTo": {"city": "Bern"}})),
            ("MoneyInput!", value!({"amountMinor": 9_007_199_254_740_993_i64, "currency": "EUR"})),
        ] {
            assert_eq!(check(ty, value), Vec::<String>::new(), "{ty}");
        }
    }

    #[test]
    fn every_broken_rule_is_named_with_its_path() {
        let input = value!({
            "orderId": null,
            "lines": [{"sku": 5, "quantity": 99_999_999_999_i64}, {"sku": "s"}],
            "extra": 1,
        });
        assert_eq!(
            check("ReserveStockInput!", input),
            [
                "orderId: must not be null",
                "lines[0].sku: must be a string, was 5",
                "lines[0].quantity: must be a 32-bit integer, was 99999999999",
                "lines[1].quantity: is required",
                "extra: is no field of ReserveStockInput",
            ]
        );
        assert_eq!(check("Int!", value!("x".repeat(500))).len(), 1);
        assert!(check("Int!", value!("x".repeat(500))).iter().all(|error| error.len() < 100));
        assert_eq!(check("Int", value!(1.5)), ["input: must be a 32-bit integer, was 1.5"]);
        assert_eq!(check("[Int!]", value!(vec![value!("x"); 500])).len(), MAX_ERRORS);
    }

    #[test]
    fn a_sample_fits_its_type() {
        for ty in
            ["Int!", "ID", "[String!]!", "ReserveStockInput!", "PlaceOrderInput", "Boolean!", "OrderState"]
        {
            assert_eq!(check(ty, sample(&schema::types(), ty)), Vec::<String>::new(), "{ty}");
        }
    }
}
