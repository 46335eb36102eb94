//! One business, whatever the style: a table of cases ([`cases`]), each told in REST, GraphQL, gRPC and gRPC-Web, with
//! the suite in one process and apart. All must do the same, or refuse for the same reason and name the same fields.

mod cases;
pub(crate) mod graphql;
pub(crate) mod grpc;
pub(crate) mod message;
pub(crate) mod rest;
mod sequences;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use self::cases::Case;
use crate::harness::{Shape, Suite, until};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Style {
    Rest,
    GraphQl,
    Grpc,
    GrpcWeb,
}

const STYLES: [Style; 4] = [Style::Grpc, Style::GrpcWeb, Style::Rest, Style::GraphQl];

/// Why a call was refused, in the contract's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// The fields that break a rule, and the rules.
    pub(crate) fields: Vec<(String, String)>,
    /// The facts that go with the reason.
    pub(crate) facts: Value,
}

/// What a call came to, in words that all styles share.
#[derive(Debug, Clone)]
enum Answer {
    Done {
        value: Value,
        /// As it came.
        bytes: Bytes,
    },
    Refused(Refusal),
}

/// What a step of a case must come to.
#[derive(Debug, Clone)]
enum Expect {
    /// Done; the value holds all of this.
    Is(Value),
    /// Done, byte for byte like the step with this number.
    Same(usize),
    /// Refused for this reason.
    Refused(&'static str),
    /// Refused for this reason, with exactly these facts.
    RefusedWith(&'static str, Value),
    /// Refused because exactly these fields break a rule.
    Fields(Vec<String>),
    /// As [`Expect::Is`], in the end.
    Becomes(Value),
}

#[tokio::test]
async fn all_styles_do_one_business_in_one_process() {
    let suite = Suite::shared(Shape::Up).await;
    run(&suite, cases::all()).await;
}

#[tokio::test]
async fn all_styles_do_one_business_in_processes_of_their_own() {
    let suite = Suite::shared(Shape::Apart).await;
    run(&suite, cases::all()).await;
}

#[tokio::test]
async fn all_styles_tell_of_a_reservation_whose_time_is_up() {
    // An expired reservation is remembered for as long as it was held: there must be time to ask for it.
    let suite = Suite::start(Shape::Up, &["--reservation-ttl=2"]).await;
    run(&suite, cases::expiring()).await;
}

/// Runs every case in every style, and tells of all that went wrong.
async fn run(suite: &Suite, cases: Vec<Case>) {
    let mut faults = Vec::new();
    for case in &cases {
        let styles = STYLES.into_iter().filter(|style| !case.except.contains(style));
        let telling = styles.map(|style| async move { (style, Teller::new(style).tell(suite, case).await) });
        let mut told: Vec<(Style, Vec<Answer>)> = Vec::new();
        for (style, answers) in futures_util::future::join_all(telling).await {
            match answers {
                Ok(Some(answers)) => told.push((style, answers)),
                Ok(None) => {}
                Err(fault) => faults.push(format!("{}, {style:?}: {fault}", case.name)),
            }
        }
        let Some(((first, answers), others)) = told.split_first() else { continue };
        if case.live {
            continue;
        }
        for (style, others) in others {
            for (n, (one, other)) in answers.iter().zip(others).enumerate() {
                if let Err(fault) = agree(case, n, one, other) {
                    faults.push(format!("{}, step {n}, {first:?} and {style:?}: {fault}", case.name));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    // What the styles are not told of must not hide in the log.
    let logged = suite.logged();
    let faults: Vec<_> =
        logged.lines().filter(|line| line.contains(" ERROR ") || line.contains("panicked")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Tells one case in one style.
struct Teller {
    style: Style,
    rest: rest::Client,
    /// What the `$names` in a case stand for.
    names: HashMap<String, Value>,
}

impl Teller {
    fn new(style: Style) -> Self {
        static TOLD: AtomicI32 = AtomicI32::new(0);
        let number = TOLD.fetch_add(1, Ordering::Relaxed);
        let names = [
            ("key", json!(format!("key-{number}"))),
            ("longest", json!(format!("{:r<255}", format!("key-{number}-")))),
            ("sku", json!(proto::seed::sku(1_000_000 + 2 * number))),
            ("other_sku", json!(proto::seed::sku(1_000_001 + 2 * number))),
        ];
        let names = names.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { style, rest: rest::Client::default(), names }
    }

    /// The answers to all steps; none when this style can't say one of them, as the case knows.
    async fn tell(&mut self, suite: &Suite, case: &Case) -> Result<Option<Vec<Answer>>, String> {
        let mut answers = Vec::new();
        for (n, step) in case.steps.iter().enumerate() {
            let input = self.filled(&step.input);
            let answer = match &step.expect {
                Expect::Becomes(value) => {
                    let asked = format!("{} becomes {value}", step.method);
                    Some(
                        until(&asked, async || {
                            let answer = self.call(suite, step.method, &input).await?;
                            check(&Expect::Is(value.clone()), &answer, &[]).is_ok().then_some(answer)
                        })
                        .await,
                    )
                }
                _ => self.call(suite, step.method, &input).await,
            };
            let silent = case.silent.contains(&self.style);
            let Some(answer) = answer else {
                return if silent { Ok(None) } else { Err(format!("step {n} can't be said")) };
            };
            if silent && n + 1 == case.steps.len() {
                return Err("can be said in this style after all".to_owned());
            }
            let expect = match &step.expect {
                Expect::Is(value) => Expect::Is(self.filled(value)),
                Expect::RefusedWith(reason, facts) => Expect::RefusedWith(reason, self.filled(facts)),
                other => other.clone(),
            };
            check(&expect, &answer, &answers)
                .map_err(|fault| format!("step {n}, {}: {fault}", step.method))?;
            if let (Some((name, pointer)), Answer::Done { value, .. }) = (step.keep, &answer) {
                let kept = value.pointer(pointer).ok_or_else(|| format!("no {pointer} in {value}"))?;
                self.names.insert(name.to_owned(), kept.clone());
            }
            answers.push(answer);
        }
        Ok(Some(answers))
    }

    async fn call(&mut self, suite: &Suite, method: &str, input: &Value) -> Option<Answer> {
        match self.style {
            Style::Rest => self.rest.call(suite, method, input).await,
            Style::GraphQl => graphql::call(suite, method, input).await,
            Style::Grpc => grpc::call(suite, false, method, input).await,
            Style::GrpcWeb => grpc::call(suite, true, method, input).await,
        }
    }

    /// The value with what its `$names` stand for.
    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match text.split_once('$') {
                None => value.clone(),
                Some((before, name)) => {
                    let stands_for =
                        self.names.get(name).unwrap_or_else(|| panic!("nothing is kept as {name}"));
                    match stands_for {
                        Value::String(text) => format!("{before}{text}").into(),
                        other => other.clone(),
                    }
                }
            },
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(name, value)| (name.clone(), self.filled(value))).collect::<Map<_, _>>(),
            ),
            other => other.clone(),
        }
    }
}

/// Whether the answer is what was expected.
fn check(expect: &Expect, answer: &Answer, before: &[Answer]) -> Result<(), String> {
    let met = match (expect, answer) {
        (Expect::Is(expected) | Expect::Becomes(expected), Answer::Done { value, .. }) => {
            holds(value, expected)
        }
        (Expect::Same(step), Answer::Done { bytes, .. }) => {
            matches!(&before[*step], Answer::Done { bytes: first, .. } if first == bytes)
        }
        (Expect::Refused(reason), Answer::Refused(refusal)) => {
            refusal.reason == *reason && refusal.fields.is_empty()
        }
        (Expect::RefusedWith(reason, facts), Answer::Refused(refusal)) => {
            refusal.reason == *reason && refusal.facts == *facts
        }
        (Expect::Fields(fields), Answer::Refused(refusal)) => {
            refusal.reason == "INVALID_FIELD" && refusal.fields.iter().map(|(field, _)| field).eq(fields)
        }
        _ => false,
    };
    if met { Ok(()) } else { Err(format!("expected {expect:?}, was {answer:?}")) }
}

/// Whether the value has everything that is expected of it.
fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(fields), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| fields.get(name).is_some_and(|value| holds(value, expected))),
        (Value::Array(items), Value::Array(expected)) => {
            items.len() == expected.len()
                && items.iter().zip(expected).all(|(item, expected)| holds(item, expected))
        }
        (value, expected) => value == expected,
    }
}

/// Whether two styles say the same.
fn agree(case: &Case, step: usize, one: &Answer, other: &Answer) -> Result<(), String> {
    match (one, other) {
        (Answer::Done { value: one, .. }, Answer::Done { value: other, .. }) => {
            // What is made by a case has names and times of its own in each style.
            let reads = case
                .steps
                .iter()
                .all(|step| step.method.starts_with("Get") || step.method.starts_with("List"));
            let own: &[&str] = if reads { &[] } else { OWN };
            equal("", one, other, own)
        }
        (Answer::Refused(one), Answer::Refused(other)) => {
            // An edge that refuses what it can't pass on has its own words for it.
            let own_words = case.steps[step].own_words;
            let fields = |refusal: &Refusal| -> Vec<_> {
                let fields = refusal.fields.iter().cloned();
                fields
                    .map(|(field, rule)| if own_words { (field, String::new()) } else { (field, rule) })
                    .collect()
            };
            // The names in facts are those of the case's own things, but they are of the same kinds.
            let facts = |refusal: &Refusal| -> Vec<_> {
                refusal.facts.as_object().into_iter().flat_map(Map::keys).cloned().collect()
            };
            // REST names a version by a tag, and is refused for the tag.
            let same_facts = one.reason == "VERSION_MISMATCH" || facts(one) == facts(other);
            if one.reason == other.reason && fields(one) == fields(other) && same_facts {
                Ok(())
            } else {
                Err(format!("{one:?} is not {other:?}"))
            }
        }
        _ => Err(format!("{one:?} is not {other:?}")),
    }
}

const OWN: &[&str] =
    &["id", "bookId", "sku", "title", "orderId", "reservationId", "createdAt", "updatedAt", "expiresAt"];

/// Whether two values say the same in all fields that both have.
fn equal(path: &str, one: &Value, other: &Value, except: &[&str]) -> Result<(), String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let common =
                one.iter().filter(|(name, _)| !except.contains(&name.as_str()) && *name != "inStock");
            let mut common = common.filter_map(|(name, value)| Some((name, value, other.get(name)?)));
            common.try_for_each(|(name, one, other)| equal(&format!("{path}/{name}"), one, other, except))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.try_for_each(|(n, (one, other))| equal(&format!("{path}/{n}"), one, other, except))
        }
        (Value::String(one), Value::String(other)) if instant(one) == instant(other) => Ok(()),
        (one, other) if one == other => Ok(()),
        (one, other) => Err(format!("{path}: {one} is not {other}")),
    }
}

/// A moment may be written with or without a fraction of zeros.
fn instant(text: &str) -> &str {
    text.strip_suffix(".000Z").or_else(|| text.strip_suffix('Z')).unwrap_or(text)
}

/// Names of the contract as JSON spells them, throughout.
fn camel(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (camel_name(name), camel(value))).collect())
        }
        Value::Array(items) => items.iter().map(camel).collect(),
        other => other.clone(),
    }
}

fn camel_name(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_uppercase() + rest
    })
}

/// A path of JSON's spelling in that of the contract.
fn snake(path: &str) -> String {
    let spelled = path
        .chars()
        .map(|c| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.into() });
    spelled.collect()
}
