//! The query of a request, read strictly: what is not a parameter of the route is refused and named.

use std::borrow::Cow;

use proto::FieldError;

use crate::call::{Call, parse_int};
use crate::errors::{Problem, shorten};

/// The parameters of a query that are not taken yet, and the rules that those taken break.
pub(crate) struct Query<'a> {
    left: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    errors: Vec<FieldError>,
}

impl Call {
    /// The parameters of the query.
    pub(crate) fn query(&self) -> Query<'_> {
        let left = match self.uri.query() {
            Some(query) => form_urlencoded::parse(query.as_bytes()).collect(),
            None => Vec::new(),
        };
        Query { left, errors: Vec::new() }
    }

    /// A link to the page that starts at this token, relative to the host: the other parameters stay.
    pub(crate) fn next_page(&self, token: &str) -> String {
        let query = self.uri.query().unwrap_or_default();
        let others = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "page_token");
        let target = format!("<{}?", self.uri.path());
        let start = target.len();
        let mut next = form_urlencoded::Serializer::for_suffix(target, start);
        next.extend_pairs(others).append_pair("page_token", token);
        next.finish() + ">; rel=\"next\""
    }
}

impl<'a> Query<'a> {
    /// Takes a parameter, if it is there.
    pub(crate) fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let at = self.left.iter().position(|(key, _)| key == name)?;
        let (_, text) = self.left.remove(at);
        if self.left.iter().any(|(key, _)| key == name) {
            self.left.retain(|(key, _)| key != name);
            self.refuse(name, "must be given once");
        }
        Some(text)
    }

    /// Takes a parameter that is a number of 32 bits, if it is there.
    pub(crate) fn int(&mut self, name: &str) -> Option<i32> {
        match parse_int(&self.text(name)?) {
            Ok(number) => Some(number),
            Err(rule) => {
                self.refuse(name, rule);
                None
            }
        }
    }

    /// Takes a parameter that is `true` or `false`; left out it is false.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        match self.text(name).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.refuse(name, "must be true or false");
                false
            }
        }
    }

    /// Takes the parameters that every list has: `page_size`, where 0 asks for the default, and `page_token`.
    pub(crate) fn page(&mut self) -> (i32, String) {
        let size = self.int("page_size").unwrap_or_default();
        (size, self.text("page_token").unwrap_or_default().into_owned())
    }

    /// Notes that a parameter breaks a rule.
    pub(crate) fn refuse(&mut self, name: &str, rule: impl Into<String>) {
        self.errors.push(FieldError { field: name.to_owned(), rule: rule.into() });
    }

    /// Ends the reading: everything that was noted, and every parameter that nobody took, is refused.
    pub(crate) fn done(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.left) {
            if self.errors.len() < MAX_ERRORS {
                self.refuse(&shorten(&name), "is not a parameter of this route");
            }
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::fields(self.errors)) }
    }
}

/// At most this many fields are named in one problem.
const MAX_ERRORS: usize = 20;
