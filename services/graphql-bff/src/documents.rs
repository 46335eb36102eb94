//! Documents that have been checked, and are kept so that the next request with the same text, or with its hash, need
//! not be parsed and checked again: that is most of what a small operation costs.

mod generations;
mod typenames;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, OperationDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql::registry::{MetaType, Registry};
use async_graphql::{Name, Positioned, Request, Response, Value, Variables};
use chassis::metrics::Series;
use futures_util::FutureExt;
use proto::Reason;
use sha2::{Digest, Sha256};

use self::generations::Generations;
use crate::counts::{Counts, Outcome};
use crate::error::{Rejection, all_because};
use crate::schema::Schema;
use crate::{Limits, OPERATIONS, guard, inputs, order, schema};

/// A document is checked once for each of its operations, so they must be few.
const MAX_OPERATIONS: usize = 10;

/// The rules follow fragments into each other by recursion.
const MAX_FRAGMENTS: usize = 200;

/// Variables are looked up in a list.
const MAX_VARIABLES: usize = 100;

/// How many documents are kept of those that callers send, and how many bytes of text. A parsed document takes about
/// 20 times its text.
const KEPT: usize = 500;
const KEPT_BYTES: usize = 512 << 10;

/// The SHA-256 of a document's text.
pub(crate) type Hash = [u8; 32];

/// A document that passed all checks that don't depend on variables.
pub(crate) struct Document {
    pub(crate) parsed: ExecutableDocument,
    /// By name; an operation without a name is alone in its document.
    operations: BTreeMap<Option<Name>, Operation>,
    /// The length of its text.
    bytes: usize,
}

/// What is known of an operation before it has variables.
pub(crate) struct Operation {
    pub(crate) name: Option<Name>,
    pub(crate) ty: OperationType,
    /// Its cost without its variables; none when that depends on them.
    cost: Option<u64>,
    /// How often the value of each variable is used.
    uses: Vec<(Name, u64)>,
    /// What counts it.
    pub(crate) counts: Arc<Series<Outcome>>,
}

impl Document {
    /// The operation to run.
    pub(crate) fn operation(&self, name: Option<&str>) -> Result<&Operation, Rejection> {
        let refuse = |message: String| Rejection::because(Reason::InvalidQuery, message);
        match name {
            Some(name) => self
                .operations
                .get(&Some(Name::new(name)))
                .ok_or_else(|| refuse(format!("the document has no operation {}", short(name)))),
            None => match self.operations.values().next() {
                Some(only) if self.operations.len() == 1 => Ok(only),
                _ => {
                    Err(refuse("the document has several operations; say which by operationName".to_owned()))
                }
            },
        }
    }

    /// Puts what the operation with this name brought into the order that it asks for.
    pub(crate) fn sort(&self, name: Option<&Name>, data: &mut Value) {
        if let Some(definition) = self.definition(name) {
            order::sort(data, &self.parsed, &definition.node.selection_set.node);
        }
    }

    fn definition(&self, name: Option<&Name>) -> Option<&Positioned<OperationDefinition>> {
        match (&self.parsed.operations, name) {
            (DocumentOperations::Single(only), _) => Some(only),
            (DocumentOperations::Multiple(all), Some(name)) => all.get(name),
            (DocumentOperations::Multiple(_), None) => None,
        }
    }
}

/// Checks documents and keeps them.
pub(crate) struct Documents {
    types: Registry,
    checker: Schema,
    limits: Limits,
    counts: Arc<Counts>,
    /// Those of `graphql/operations`, by their text and by its hash: prepared at start, never dropped.
    known: HashMap<&'static str, Arc<Document>>,
    known_hashes: HashMap<Hash, Arc<Document>>,
    /// Those that callers sent, by their text.
    checked: RwLock<Generations<Box<str>, Arc<Document>>>,
    /// Those that callers registered, by the hash of their text.
    registered: RwLock<Generations<Hash, Arc<Document>>>,
}

impl Documents {
    pub(crate) fn new(limits: Limits, counts: Arc<Counts>) -> Self {
        let mut documents = Self {
            types: schema::types(),
            checker: schema::checker(),
            limits,
            counts,
            known: HashMap::new(),
            known_hashes: HashMap::new(),
            checked: RwLock::new(Generations::new(KEPT, KEPT_BYTES)),
            registered: RwLock::new(Generations::new(KEPT, KEPT_BYTES)),
        };
        for operation in OPERATIONS {
            match documents.check(operation.text) {
                Ok(document) => {
                    let document = Arc::new(document);
                    documents.known.insert(operation.text, Arc::clone(&document));
                    documents.known_hashes.insert(hash(operation.text), document);
                }
                Err(rejection) => {
                    tracing::error!(operation = operation.name, errors = ?rejection.errors, "bad operation");
                }
            }
        }
        documents
    }

    /// The document with this text.
    pub(crate) fn by_text(&self, text: &str) -> Result<Arc<Document>, Rejection> {
        if let Some(known) = self.known.get(text) {
            return Ok(Arc::clone(known));
        }
        if let Some(checked) = find(&self.checked, text) {
            return Ok(checked);
        }
        let document = Arc::new(self.check(text)?);
        let mut checked = self.checked.write().unwrap_or_else(PoisonError::into_inner);
        checked.insert(text.into(), Arc::clone(&document), document.bytes);
        Ok(document)
    }

    /// The document whose text has this hash.
    pub(crate) fn by_hash(&self, hash: &Hash) -> Option<Arc<Document>> {
        self.known_hashes.get(hash).cloned().or_else(|| find(&self.registered, hash))
    }

    /// Lets callers name the document by its hash from now on.
    pub(crate) fn register(&self, hash: Hash, document: &Arc<Document>) {
        if !self.known_hashes.contains_key(&hash) && find(&self.registered, &hash).is_none() {
            let mut registered = self.registered.write().unwrap_or_else(PoisonError::into_inner);
            registered.insert(hash, Arc::clone(document), document.bytes);
        }
    }

    /// The checks that depend on variables: that they have the types that the operation says, and what the operation
    /// costs with them.
    pub(crate) fn check_variables(
        &self,
        document: &Document,
        operation: &Operation,
        variables: &mut Variables,
    ) -> Result<(), Rejection> {
        let Some(definition) = document.definition(operation.name.as_ref()) else { return Ok(()) };
        inputs::check_variables(&self.types, &definition.node, variables).map_err(Rejection::fields)?;
        let cost = match operation.cost {
            Some(cost) => cost,
            None => {
                let mut all = variables.clone();
                for variable in &definition.node.variable_definitions {
                    if let Some(default) = &variable.node.default_value {
                        all.entry(variable.node.name.node.clone()).or_insert_with(|| default.node.clone());
                    }
                }
                guard::measure(
                    &self.types,
                    &document.parsed,
                    root(definition.node.ty),
                    &definition.node.selection_set.node,
                    Some(&all),
                    &self.limits,
                )
                .map_err(too_complex)?
                .cost
            }
        };
        let values = operation.uses.iter().fold(0_u64, |sum, (name, uses)| {
            sum.saturating_add(variables.get(name).map_or(0, inputs::size).saturating_mul(*uses))
        });
        if cost.saturating_add(values) > self.limits.cost {
            let most = self.limits.cost;
            return Err(too_complex(format!("the operation and its variables cost over {most}")));
        }
        Ok(())
    }

    fn check(&self, text: &str) -> Result<Document, Rejection> {
        guard::scan(text, &self.limits)?;
        let parsed = async_graphql::parser::parse_query(text)
            .map_err(|error| Rejection::graphql(all_because(vec![error.into()], Reason::MalformedRequest)))?;
        if parsed.operations.iter().len() > MAX_OPERATIONS {
            return Err(too_complex(format!("the document has over {MAX_OPERATIONS} operations")));
        }
        if parsed.fragments.len() > MAX_FRAGMENTS {
            return Err(too_complex(format!("the document has over {MAX_FRAGMENTS} fragments")));
        }
        let operations = self.measure(&parsed)?;
        let checkable = typenames::checkable(&parsed)
            .map_err(|errors| Rejection::graphql(all_because(errors, Reason::InvalidQuery)))?;
        for (name, operation) in parsed.operations.iter() {
            self.check_operation(&parsed, &checkable, name, &operation.node)?;
        }
        Ok(Document { operations, parsed, bytes: text.len() })
    }

    /// Bounds the document, before anything else looks at it.
    fn measure(&self, parsed: &ExecutableDocument) -> Result<BTreeMap<Option<Name>, Operation>, Rejection> {
        let mut operations = BTreeMap::new();
        let mut selections = 0_u64;
        for (name, operation) in parsed.operations.iter() {
            let node = &operation.node;
            if node.variable_definitions.len() > MAX_VARIABLES {
                return Err(too_complex(format!("an operation has over {MAX_VARIABLES} variables")));
            }
            let measured = guard::measure(
                &self.types,
                parsed,
                root(node.ty),
                &node.selection_set.node,
                None,
                &self.limits,
            )
            .map_err(too_complex)?;
            selections = selections.saturating_add(measured.selections);
            operations.insert(
                name.cloned(),
                Operation {
                    name: name.cloned(),
                    ty: node.ty,
                    cost: (!measured.depends).then_some(measured.cost),
                    uses: measured.uses.into_iter().map(|(name, uses)| (Name::new(name), uses)).collect(),
                    counts: self.counts.of(name.map(Name::as_str), node.ty),
                },
            );
        }
        if selections > self.limits.selections {
            let most = self.limits.selections;
            return Err(too_complex(format!("the operations of the document select over {most} fields")));
        }
        Ok(operations)
    }

    /// The rules of GraphQL, with a sample for each variable so that what stands beside it is checked too.
    fn check_operation(
        &self,
        parsed: &ExecutableDocument,
        checkable: &ExecutableDocument,
        name: Option<&Name>,
        operation: &OperationDefinition,
    ) -> Result<(), Rejection> {
        let mut samples = Variables::default();
        for variable in &operation.variable_definitions {
            let sample = inputs::sample(&self.types, &variable.node.var_type.node.to_string());
            samples.insert(variable.node.name.node.clone(), sample);
        }
        let mut request = Request::new(String::new()).variables(samples.clone());
        request.operation_name = name.map(ToString::to_string);
        request.set_parsed_query(checkable.clone());
        // Nothing waits in it: it stops before it runs.
        let Response { errors, .. } = self.checker.execute(request).now_or_never().unwrap_or_default();
        if !errors.is_empty() {
            return Err(Rejection::graphql(all_because(errors, Reason::InvalidQuery)));
        }
        if operation.ty == OperationType::Subscription {
            let items = &operation.selection_set.node.items;
            if !matches!(items.as_slice(), [only] if matches!(only.node, Selection::Field(_))) {
                let message = "a subscription selects exactly one field, and not by a fragment";
                return Err(Rejection::because(Reason::InvalidQuery, message));
            }
        }
        let mut errors = Vec::new();
        let root = self.types.types.get(root(operation.ty));
        let walk = Literals { types: &self.types, document: parsed, samples: &samples };
        walk.set(&operation.selection_set.node, root, &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(Rejection::fields(errors)) }
    }
}

/// Looks for literals that have the right type and yet don't fit it: `Int` has 32 bits, which the rules leave to the
/// moment when the value is used.
struct Literals<'a> {
    types: &'a Registry,
    document: &'a ExecutableDocument,
    samples: &'a Variables,
}

impl Literals<'_> {
    fn set(&self, set: &SelectionSet, at: Option<&MetaType>, errors: &mut Vec<proto::FieldError>) {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => self.field(&field.node, at, errors),
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref();
                    let at = on.map_or(at, |on| self.types.types.get(on.node.on.node.as_str()));
                    self.set(&fragment.node.selection_set.node, at, errors);
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.document.fragments.get(&spread.node.fragment_name.node) {
                        let at = self.types.types.get(fragment.node.type_condition.node.on.node.as_str());
                        self.set(&fragment.node.selection_set.node, at, errors);
                    }
                }
            }
        }
    }

    fn field(&self, field: &Field, at: Option<&MetaType>, errors: &mut Vec<proto::FieldError>) {
        let Some(meta) = at.and_then(|ty| ty.field_by_name(&field.name.node)) else { return };
        for (name, value) in &field.arguments {
            let Some(argument) = meta.args.get(name.node.as_str()) else { continue };
            let value = value.node.clone().into_const_with(|name| self.samples.get(&name).cloned().ok_or(()));
            if let Ok(value) = value {
                errors.extend(inputs::check_argument(self.types, &name.node, &argument.ty, &value));
            }
        }
        self.set(&field.selection_set.node, self.types.concrete_type_by_name(&meta.ty), errors);
    }
}

fn find<K, Q>(kept: &RwLock<Generations<K, Arc<Document>>>, key: &Q) -> Option<Arc<Document>>
where
    K: Eq + std::hash::Hash + std::borrow::Borrow<Q>,
    Q: Eq + std::hash::Hash + ?Sized,
{
    let kept_now = kept.read().unwrap_or_else(PoisonError::into_inner);
    let (found, stale) = kept_now.get(key)?;
    let found = Arc::clone(found);
    drop(kept_now);
    if stale {
        kept.write().unwrap_or_else(PoisonError::into_inner).renew(key);
    }
    Some(found)
}

/// The SHA-256 of a text.
pub(crate) fn hash(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

fn root(ty: OperationType) -> &'static str {
    match ty {
        OperationType::Query => "Query",
        OperationType::Mutation => "Mutation",
        OperationType::Subscription => "Subscription",
    }
}

fn too_complex(message: String) -> Rejection {
    Rejection::because(Reason::QueryTooComplex, message)
}

fn short(name: &str) -> String {
    name.chars().take(100).collect()
}
