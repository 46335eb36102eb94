//! Between JSON and the messages of the contract, which the descriptors alone describe.

use std::sync::LazyLock;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    ReflectMessage as _, Value as Pb,
};
use serde_json::{Map, Value as Json};

/// The contracts.
pub(crate) static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(proto::DESCRIPTOR_SET).unwrap());

/// The method with this name, whichever service has it.
pub(super) fn method(name: &str) -> MethodDescriptor {
    let methods = POOL.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.into_iter().find(|method| method.name() == name).unwrap_or_else(|| panic!("no method {name}"))
}

/// The message with the fields of this object, spelled as in the contract; none when a value has no place in it.
pub(super) fn from_json(kind: &MessageDescriptor, object: &Json) -> Option<DynamicMessage> {
    let mut message = DynamicMessage::new(kind.clone());
    for (name, value) in object.as_object()? {
        let field = kind.get_field_by_name(name)?;
        message.set_field(&field, field_from_json(&field, value)?);
    }
    Some(message)
}

fn field_from_json(field: &FieldDescriptor, value: &Json) -> Option<Pb> {
    if field.is_list() {
        let items = value.as_array()?.iter().map(|item| one_from_json(&field.kind(), item));
        return Some(Pb::List(items.collect::<Option<_>>()?));
    }
    one_from_json(&field.kind(), value)
}

fn one_from_json(kind: &Kind, value: &Json) -> Option<Pb> {
    Some(match kind {
        Kind::Bool => Pb::Bool(value.as_bool()?),
        Kind::Int32 => Pb::I32(value.as_i64()?.try_into().ok()?),
        Kind::Int64 => Pb::I64(value.as_i64()?),
        Kind::String => Pb::String(value.as_str()?.to_owned()),
        Kind::Enum(kind) => Pb::EnumNumber(kind.get_value_by_name(value.as_str()?)?.number()),
        Kind::Message(kind) => Pb::Message(from_json(kind, value)?),
        other => panic!("no contract has a field of {other:?}"),
    })
}

/// All fields of the message as JSON spells them. What is not set is left out.
pub(super) fn to_json(message: &DynamicMessage) -> Json {
    if message.descriptor().full_name() == "google.protobuf.Timestamp" {
        let time: prost_types::Timestamp = message.transcode_to().unwrap();
        return Json::from(time.to_string());
    }
    let fields = message.descriptor();
    let fields = fields.fields().filter(|field| !field.supports_presence() || message.has_field(field));
    Json::Object(
        fields
            .map(|field| {
                (field.json_name().to_owned(), value_to_json(&field.kind(), &message.get_field(&field)))
            })
            .collect::<Map<_, _>>(),
    )
}

fn value_to_json(kind: &Kind, value: &Pb) -> Json {
    match (value, kind) {
        (Pb::Bool(value), _) => Json::from(*value),
        (Pb::I32(value), _) => Json::from(*value),
        (Pb::I64(value), _) => Json::from(*value),
        (Pb::String(value), _) => Json::from(value.as_str()),
        (Pb::Message(message), _) => to_json(message),
        (Pb::List(items), kind) => items.iter().map(|item| value_to_json(kind, item)).collect(),
        (Pb::EnumNumber(number), Kind::Enum(kind)) => {
            let value = kind.get_value(*number).unwrap();
            // `ORDER_STATE_PLACED` of `OrderState` is PLACED where names have a scope.
            Json::from(
                value.name().trim_start_matches("ORDER_STATE_").trim_start_matches("RESERVATION_STATE_"),
            )
        }
        (other, _) => panic!("no contract has a field of {other:?}"),
    }
}
