//! Searching: a query in, its matches out.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{Stream, stream};
use proto::catalog::v1 as pb;
use tonic::{Status, Streaming};

use super::wire;
use crate::domain::{AuthorId, Book, Fields, Refused};
use crate::store::Store;

/// Books looked at before others get the thread.
const STEP: usize = 1_000;

/// Answers the queries one after the other. The next one is read when the answer before has been taken, so that a
/// caller who asks faster than it reads is held back by flow control. A query that breaks a rule ends the stream.
pub(super) fn answers(
    store: Arc<Store>,
    open: Arc<()>,
    queries: Streaming<pb::SearchBooksRequest>,
) -> impl Stream<Item = Result<pb::SearchBooksResponse, Status>> + Send {
    stream::try_unfold((store, open, queries), async |(store, open, mut queries)| {
        let Some(request) = queries.message().await? else { return Ok(None) };
        let answer = answer(&store, request).await?;
        Ok(Some((answer, (store, open, queries))))
    })
}

async fn answer(store: &Store, request: pb::SearchBooksRequest) -> Result<pb::SearchBooksResponse, Refused> {
    let pb::SearchBooksRequest { query, limit } = request;
    let mut fields = Fields::default();
    let words = fields.text("query", query.clone(), 200).map(|text| words(&text));
    if words.as_ref().is_some_and(Vec::is_empty) {
        fields.refuse("query", "must have a word");
    }
    let limit = fields.count("limit", limit).map(|limit| if limit == 0 { 20 } else { limit.min(100) });
    let (Some(words), Some(limit)) = (words, limit) else {
        return Err(fields.into());
    };
    fields.finish()?;

    let matcher = Matcher::new(store, &words);
    let mut folded = String::new();
    let mut found = Vec::new();
    let mut last = None;
    loop {
        let books = store.books_after(last, STEP);
        for book in &books {
            if found.len() < limit && matcher.matches(book, &mut folded) {
                found.push(wire::book(book));
            }
        }
        last = books.last().map(|book| book.id);
        if books.len() < STEP || found.len() == limit {
            return Ok(pb::SearchBooksResponse { query, books: found });
        }
        tokio::task::yield_now().await;
    }
}

/// Which words a title must have, by author: those that the author's name doesn't have.
struct Matcher<'a>(HashMap<AuthorId, Vec<&'a str>>);

impl<'a> Matcher<'a> {
    fn new(store: &Store, words: &'a [String]) -> Self {
        let missing =
            |name: &str| words.iter().map(String::as_str).filter(|word| !name.contains(word)).collect();
        let by_author = store.authors().map(|author| {
            let mut name = String::new();
            fold(&author.name, &mut name);
            (author.id, missing(&name))
        });
        Self(by_author.collect())
    }

    /// `folded` is room to work in, so that a scan needs no memory for each book.
    fn matches(&self, book: &Book, folded: &mut String) -> bool {
        let Some(wanted) = self.0.get(&book.author_id) else { return false };
        if wanted.is_empty() {
            return true;
        }
        fold(&book.title, folded);
        wanted.iter().all(|word| folded.contains(word))
    }
}

fn words(query: &str) -> Vec<String> {
    let words = query.split_whitespace().map(|word| {
        let mut folded = String::new();
        fold(word, &mut folded);
        folded
    });
    words.collect()
}

/// Writes the text in lower case, character by character.
fn fold(text: &str, folded: &mut String) {
    folded.clear();
    folded.extend(text.chars().flat_map(char::to_lowercase));
}
