//! A network in memory with names, replicas and a clock of its own, for what [`chassis::Upstream`] does with them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use chassis::Upstream;
use http::Uri;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;

use crate::service::{Client, Test, safe_descriptors};

#[derive(Clone, Default)]
pub(crate) struct Network {
    replicas: Arc<Mutex<BTreeMap<SocketAddr, Replica>>>,
    /// What the name of the service stands for.
    pub(crate) name: Arc<Mutex<Vec<SocketAddr>>>,
    pub(crate) look_ups: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Replica {
    test: Test,
    cut: CancellationToken,
    closing: CancellationToken,
}

/// Counts the calls that arrive.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

impl Calls {
    pub(crate) fn arrived(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    /// How many came since this was last asked.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, SeqCst)
    }
}

pub(crate) fn at(n: u8) -> SocketAddr {
    ([10, 0, 0, n], 1).into()
}

impl Network {
    /// A network on which the name stands for the replicas 1 to `count`, all running and counting their calls.
    pub(crate) fn of(count: u8) -> (Self, Vec<Calls>) {
        let network = Self::default();
        let calls = (1..=count).map(|n| network.answer(n)).collect();
        network.name.lock().unwrap().extend((1..=count).map(at));
        (network, calls)
    }

    /// Runs a replica that answers what it was asked.
    pub(crate) fn answer(&self, n: u8) -> Calls {
        let calls = Calls::default();
        let counted = calls.clone();
        self.run(
            n,
            Test::new().unary(move |request| {
                counted.arrived();
                async { Ok(request.into_inner()) }
            }),
        );
        calls
    }

    /// Runs a replica that refuses every unary call like this.
    pub(crate) fn refuse(&self, n: u8, status: Status) -> Calls {
        let calls = Calls::default();
        let counted = calls.clone();
        self.run(
            n,
            Test::new().unary(move |_| {
                counted.arrived();
                std::future::ready(Err(status.clone()))
            }),
        );
        calls
    }

    /// Runs a replica, instead of the one that ran there.
    pub(crate) fn run(&self, n: u8, test: Test) {
        let replica = Replica { test, cut: CancellationToken::new(), closing: CancellationToken::new() };
        if let Some(before) = self.replicas.lock().unwrap().insert(at(n), replica) {
            before.cut.cancel();
        }
    }

    /// Ends a replica with all that runs there.
    pub(crate) fn kill(&self, n: u8) {
        self.replicas.lock().unwrap().remove(&at(n)).unwrap().cut.cancel();
    }

    /// Ends a replica as soon as the calls that run there are done.
    pub(crate) fn drain(&self, n: u8) {
        self.replicas.lock().unwrap().remove(&at(n)).unwrap().closing.cancel();
    }

    fn connect(&self, to: &Uri) -> io::Result<TokioIo<DuplexStream>> {
        let to: SocketAddr = to.authority().unwrap().as_str().parse().unwrap();
        let replica = self.replicas.lock().unwrap().get(&to).cloned();
        let replica = replica.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (here, there) = tokio::io::duplex(64 << 10);
        tokio::spawn(replica.serve(there));
        Ok(TokioIo::new(here))
    }

    pub(crate) fn upstream(&self) -> Upstream {
        let (names, network) = (self.clone(), self.clone());
        let resolve = move |host: String, port: u16| {
            assert_eq!((host.as_str(), port), ("test", 1));
            names.look_ups.fetch_add(1, SeqCst);
            std::future::ready(Ok(names.name.lock().unwrap().clone()))
        };
        let connector = tower::service_fn(move |to: Uri| std::future::ready(network.connect(&to)));
        Upstream::with_network("http://test:1", resolve, connector).unwrap()
    }

    /// A client that never repeats a call that a replica may have worked on.
    pub(crate) fn client(&self) -> Client<Upstream> {
        Client::over(self.upstream())
    }

    /// A client that may repeat unary calls.
    pub(crate) fn retrying(&self) -> Client<Upstream> {
        Client::over(self.upstream().retrying(safe_descriptors()))
    }
}

impl Replica {
    async fn serve(self, io: DuplexStream) {
        let test = self.test;
        let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
            tower::Service::call(&mut test.clone(), request.map(Body::new))
        });
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let connection = builder.serve_connection(TokioIo::new(io), service);
        tokio::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.cut.cancelled() => return,
            () = self.closing.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = self.cut.cancelled() => {}
        }
    }
}
