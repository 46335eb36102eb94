//! Loading in batches: all that the resolvers of one operation wait for becomes one call for each service and kind.
//!
//! A resolver that needs a thing asks for it by key and waits. [`Driver`] polls the operation; when the operation can't
//! go on, every resolver that can ask has asked, and the driver makes the calls: no timer that waits for more keys, no
//! task that outlives the request. Dropping the driver drops the calls. A call that fails fails for each resolver that
//! waits for it.

mod batch;
mod notice;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use chassis::Deadline;
use chassis::call::TraceParent;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use proto::Services;
use proto::catalog::v1 as catalog;
use proto::inventory::v1 as inventory;
use proto::ordering::v1 as ordering;
use tokio::sync::oneshot;
use tonic::{Request, Status};

use self::notice::Notice;

/// What every call on behalf of one operation carries, and where it goes.
pub(crate) struct Caller {
    pub(crate) services: Services,
    pub(crate) trace: Option<TraceParent>,
    /// When the operation must be done; none for a subscription, whose calls each have `time`.
    pub(crate) deadline: Option<Deadline>,
    pub(crate) time: Duration,
}

impl Caller {
    /// A request for a call on behalf of the operation.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let extensions = request.extensions_mut();
        extensions.insert(self.deadline.unwrap_or_else(|| Deadline::after(self.time)));
        if let Some(trace) = &self.trace {
            extensions.insert(trace.clone());
        }
        request
    }
}

/// A book as one call brings it.
#[derive(Debug, Clone)]
pub(crate) struct FoundBook {
    pub(crate) book: catalog::Book,
    /// Its author, when one was asked for and exists.
    pub(crate) author: Option<Arc<catalog::Author>>,
    /// How many of its reviews were asked for, and these reviews.
    pub(crate) reviews: Option<(i32, Reviews)>,
}

/// Reviews of one book, latest first.
pub(crate) type Reviews = Arc<[catalog::Review]>;

/// What is wanted along with a book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BookKey {
    pub(crate) id: i32,
    pub(crate) author: bool,
    /// How many reviews; zero for none.
    pub(crate) reviews: i32,
}

struct Ask<K, V> {
    key: K,
    reply: oneshot::Sender<Result<V, Status>>,
}

type Asks<K, V> = Vec<Ask<K, V>>;

#[derive(Default)]
struct Asked {
    books: Asks<BookKey, Option<FoundBook>>,
    authors: Asks<i32, Option<Arc<catalog::Author>>>,
    reviews: Asks<(i32, i32), Reviews>,
    stocks: Asks<i32, Option<inventory::Stock>>,
    orders: Asks<(String, i32), ordering::Order>,
}

/// What the resolvers of one operation share.
pub(crate) struct Loads {
    pub(crate) caller: Caller,
    asked: Mutex<Asked>,
}

impl Loads {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { caller, asked: Mutex::default() }
    }

    /// The book, and what is wanted along with it; none when it doesn't exist.
    pub(crate) async fn book(&self, key: BookKey) -> Result<Option<FoundBook>, Status> {
        self.ask(|asked| &mut asked.books, key).await
    }

    /// The author; none when it doesn't exist.
    pub(crate) async fn author(&self, id: i32) -> Result<Option<Arc<catalog::Author>>, Status> {
        self.ask(|asked| &mut asked.authors, id).await
    }

    /// This many of the book's latest reviews.
    pub(crate) async fn reviews(&self, book_id: i32, count: i32) -> Result<Reviews, Status> {
        self.ask(|asked| &mut asked.reviews, (book_id, count)).await
    }

    /// The book's stock; none when inventory doesn't know the book.
    pub(crate) async fn stock(&self, book_id: i32) -> Result<Option<inventory::Stock>, Status> {
        self.ask(|asked| &mut asked.stocks, book_id).await
    }

    /// The order in this view.
    pub(crate) async fn order(
        &self,
        id: String,
        view: ordering::OrderView,
    ) -> Result<ordering::Order, Status> {
        self.ask(|asked| &mut asked.orders, (id, view.into())).await
    }

    async fn ask<K, V>(
        &self,
        queue: impl FnOnce(&mut Asked) -> &mut Asks<K, V>,
        key: K,
    ) -> Result<V, Status> {
        let (reply, answer) = oneshot::channel();
        queue(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner)).push(Ask { key, reply });
        // Without tokio's budget for one poll: when it is used up, answers that are there look as if they were not, and
        // the keys of the next round come in pieces.
        let answer = tokio::task::unconstrained(answer).await;
        answer.unwrap_or_else(|_| Err(Status::internal("a call ended without an answer")))
    }

    fn take(&self) -> Asked {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Polls an operation, and makes the calls that it waits for.
pub(crate) struct Driver {
    loads: Arc<Loads>,
    calls: FuturesUnordered<BoxFuture<'static, ()>>,
    notice: Arc<Notice>,
}

impl Driver {
    pub(crate) fn new(loads: Arc<Loads>) -> Self {
        Self { loads, calls: FuturesUnordered::new(), notice: Arc::default() }
    }

    /// Runs a query or mutation.
    pub(crate) async fn run<F: Future>(mut self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| self.poll(cx, |cx| work.as_mut().poll(cx))).await
    }

    /// Runs a subscription.
    pub(crate) fn stream<S: Stream + Send + Unpin>(
        mut self,
        mut work: S,
    ) -> impl Stream<Item = S::Item> + Send + use<S> {
        futures_util::stream::poll_fn(move |cx| self.poll(cx, |cx| work.poll_next_unpin(cx)))
    }

    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut work: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let waker = self.notice.waker();
        self.notice.watch(cx);
        loop {
            if let Poll::Ready(done) = work(&mut Context::from_waker(&waker)) {
                return Poll::Ready(done);
            }
            // The sets of futures inside like to take breaks: they stop halfway and ask to be polled again. Only when
            // nothing asks has every resolver run that could, and these are all the keys of this round.
            if self.notice.take() {
                continue;
            }
            self.calls.extend(batch::calls(&self.loads, self.loads.take()));
            while let Poll::Ready(Some(())) = self.calls.poll_next_unpin(cx) {}
            if !self.notice.unwatch() {
                return Poll::Pending;
            }
            self.notice.watch(cx);
        }
    }
}
