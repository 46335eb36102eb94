//! As much of JSON Schema as the document uses.

use std::sync::LazyLock;

use serde_json::Value;

/// The OpenAPI document.
pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&rest_facade::openapi()).unwrap());

/// A schema of the document.
pub(crate) fn named(name: &str) -> Value {
    DOCUMENT["components"]["schemas"][name].clone()
}

/// What a `$ref` of the document stands for; anything else is itself.
pub(crate) fn resolve(value: &Value) -> &Value {
    match value["$ref"].as_str() {
        Some(target) => {
            DOCUMENT.pointer(target.trim_start_matches('#')).unwrap_or_else(|| panic!("no {target}"))
        }
        None => value,
    }
}

/// Asserts that a value has the form that the schema gives, and nothing beside it.
#[track_caller]
pub(crate) fn assert_fits(schema: &Value, value: &Value) {
    if let Err(why) = fits(schema, value, "$") {
        panic!("{why}\n{value:#}");
    }
}

fn fits(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let schema = resolve(schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| fits(choice, value, at).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{at}: fits {fitting} of {schema}")) };
    }
    let kinds: Vec<_> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().collect(),
        kind => vec![kind],
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_i64() || n.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !kinds.iter().any(|k| *k == kind) {
        return Err(format!("{at}: is {kind}, not {}", schema["type"]));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return Err(format!("{at}: {value} is none of {choices:?}"));
    }
    if let Some(items) = value.as_array() {
        for (i, item) in items.iter().enumerate() {
            fits(&schema["items"], item, &format!("{at}[{i}]"))?;
        }
    }
    if let Some(fields) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                return Err(format!("{at}: lacks {name}"));
            }
        }
        for (name, field) in fields {
            let property = &schema["properties"][name];
            if property.is_null() {
                return Err(format!("{at}: {name} is not in the schema"));
            }
            fits(property, field, &format!("{at}.{name}"))?;
        }
    }
    Ok(())
}
