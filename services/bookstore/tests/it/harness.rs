//! Runs the binary: the suite in one process, or its parts in processes of their own.

use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::http::{self, Version};

/// Within this time everything happens that a test waits for, or it fails. A process that is told to stop promises to
/// be gone by then.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, ask).await
}

/// The same with another limit, for what takes much of a processor that others may use too.
pub(crate) async fn until_within<T>(
    limit: Duration,
    what: &str,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let answer = tokio::time::timeout(limit, asking).await;
    answer.unwrap_or_else(|_| panic!("not within {limit:?}: {what}"))
}

/// A running `bookstore`. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    args: String,
    said: Arc<Mutex<String>>,
    logged: Arc<Mutex<String>>,
}

impl Process {
    /// Starts the binary with these arguments, and with no settings from the environment.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bookstore"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("BOOKSTORE_") {
                command.env_remove(name);
            }
        }
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = gather(child.stdout.take().unwrap());
        let logged = gather(child.stderr.take().unwrap());
        Self { child, args: args.join(" "), said, logged }
    }

    /// What it wrote to standard output until now.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it wrote to standard error until now.
    pub(crate) fn logged(&self) -> String {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address in the line of standard output that starts with `label`, once that is served.
    pub(crate) async fn address(&mut self, label: &str) -> SocketAddr {
        let address = until(&format!("`{}` says where it listens", self.args), async || {
            assert_eq!(self.child.try_wait().unwrap(), None, "{}", self.logged());
            let said = self.said();
            let line =
                said.split_inclusive('\n').find(|line| line.starts_with(label) && line.ends_with('\n'))?;
            line.split(|c: char| !matches!(c, '0'..='9' | '.' | ':'))
                .find_map(|word| word.trim_matches(':').parse().ok())
        })
        .await;
        until(&format!("`{}` is ready", self.args), async || is_ready(address).await.then_some(())).await;
        address
    }

    /// The most memory it ever had in use, in megabytes.
    pub(crate) fn peak_memory_mb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops it as a debugger would. A signal to stop has only been asked for when sending it returns: this waits until
    /// no thread runs.
    pub(crate) async fn stop(&self) {
        self.signal(Signal::STOP);
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        until("it has stopped", async || waitid(WaitId::Pid(self.id()), options).unwrap()).await;
    }

    /// The code that it exits with, within [`LIMIT`].
    pub(crate) async fn exit_code(&mut self) -> i32 {
        let what = format!("`{}` exits", self.args);
        let status = until(&what, async || self.child.try_wait().unwrap()).await;
        status.code().unwrap_or_else(|| panic!("`{}`: {status}", self.args))
    }

    /// What it leaves once it has exited, within [`LIMIT`].
    pub(crate) async fn finish(&mut self) -> Finished {
        let code = self.exit_code().await;
        // The pipes are closed now, and the threads are about to read their ends.
        let held = |text: &Arc<Mutex<String>>| Arc::strong_count(text) > 1;
        until("output is read", async || (!held(&self.said) && !held(&self.logged)).then_some(())).await;
        Finished { code, stdout: self.said(), stderr: self.logged() }
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end in a thread of its own.
fn gather(mut from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&text);
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            into.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&String::from_utf8_lossy(&chunk[..n]));
        }
    });
    text
}

/// What a finished process left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end.
pub(crate) async fn run(args: &[&str]) -> Finished {
    Process::start(args).finish().await
}

pub(crate) async fn is_ready(at: SocketAddr) -> bool {
    let answer = http::try_open(Version::Http1, at, http::request("GET", "/readyz", &[], "")).await;
    answer.is_ok_and(|answer| answer.status() == 200)
}

/// A suite in one process, with its two addresses: HTTP and gRPC.
pub(crate) async fn up(settings: &[&str]) -> (Process, SocketAddr, SocketAddr) {
    let mut process = Process::start(&[&["up", "--port=0", "--grpc-port=0", THREADS], settings].concat());
    let http = process.address("REST").await;
    let grpc = process.address("gRPC ").await;
    (process, http, grpc)
}

/// How the suite is spread over processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All in one.
    Up,
    /// Each service and each edge in its own.
    Apart,
}

/// A running suite.
pub(crate) struct Suite {
    pub(crate) processes: Vec<Process>,
    pub(crate) rest: SocketAddr,
    pub(crate) graphql: SocketAddr,
    /// Where each process shows its metrics.
    pub(crate) metrics: Vec<SocketAddr>,
    grpc: [SocketAddr; 3],
    web: [SocketAddr; 3],
}

/// More than one page of the largest size.
const BOOKS: &str = "--books=1200";

/// So often that no test waits for it for long.
const RECONCILE: &str = "--reconcile-interval=0.2";

/// The same on every machine.
const THREADS: &str = "--threads=2";

impl Suite {
    /// The suite of this shape that the tests of one run share. It ends with the last of those who hold it.
    pub(crate) async fn shared(shape: Shape) -> Arc<Self> {
        static UP: tokio::sync::Mutex<Weak<Suite>> = tokio::sync::Mutex::const_new(Weak::new());
        static APART: tokio::sync::Mutex<Weak<Suite>> = tokio::sync::Mutex::const_new(Weak::new());
        let shared = match shape {
            Shape::Up => &UP,
            Shape::Apart => &APART,
        };
        let mut shared = shared.lock().await;
        if let Some(suite) = shared.upgrade() {
            return suite;
        }
        let suite = Arc::new(Self::start(shape, &[]).await);
        *shared = Arc::downgrade(&suite);
        suite
    }

    /// A suite of one's own; `settings` go to inventory.
    pub(crate) async fn start(shape: Shape, settings: &[&str]) -> Self {
        match shape {
            Shape::Up => Self::up(settings).await,
            Shape::Apart => Self::apart(settings).await,
        }
    }

    async fn up(settings: &[&str]) -> Self {
        let (mut process, http, grpc) = up(&[&[BOOKS], settings].concat()).await;
        let metrics = vec![process.address("Metrics").await];
        Self { processes: vec![process], rest: http, graphql: http, metrics, grpc: [grpc; 3], web: [http; 3] }
    }

    async fn apart(settings: &[&str]) -> Self {
        let mut inventory = Process::start(&[&["inventory", "--port=0", THREADS, BOOKS], settings].concat());
        let inventory_at = inventory.address("inventory").await;
        let inventory_url = format!("--inventory-url=http://{inventory_at}");

        let mut catalog = Process::start(&["catalog", "--port=0", THREADS, BOOKS, &inventory_url]);
        let catalog_at = catalog.address("catalog").await;
        let catalog_url = format!("--catalog-url=http://{catalog_at}");

        let mut ordering =
            Process::start(&["ordering", "--port=0", THREADS, RECONCILE, &catalog_url, &inventory_url]);
        let ordering_at = ordering.address("ordering").await;
        let ordering_url = format!("--ordering-url=http://{ordering_at}");

        let edge =
            |name| Process::start(&[name, "--port=0", THREADS, &catalog_url, &inventory_url, &ordering_url]);
        let (mut graphql, mut rest) = (edge("graphql-bff"), edge("rest-facade"));
        let services = [catalog_at, inventory_at, ordering_at];
        let (rest_at, graphql_at) = (rest.address("rest-facade").await, graphql.address("graphql-bff").await);
        let mut processes = vec![inventory, catalog, ordering, graphql, rest];
        let names = ["inventory", "catalog", "ordering", "graphql-bff", "rest-facade"];
        let mut metrics = Vec::new();
        for (process, name) in processes.iter_mut().zip(names) {
            metrics.push(process.address(&format!("{name}: metrics")).await);
        }
        Self { processes, rest: rest_at, graphql: graphql_at, metrics, grpc: services, web: services }
    }

    /// Where the service with this full name speaks gRPC.
    pub(crate) fn grpc(&self, service: &str) -> SocketAddr {
        self.grpc[place(service)]
    }

    /// Where the service with this full name speaks gRPC-Web.
    pub(crate) fn web(&self, service: &str) -> SocketAddr {
        self.web[place(service)]
    }

    /// Everything that its processes logged until now.
    pub(crate) fn logged(&self) -> String {
        self.processes.iter().map(Process::logged).collect()
    }
}

fn place(service: &str) -> usize {
    let names = ["bookstore.catalog.v1.", "bookstore.inventory.v1.", "bookstore.ordering.v1."];
    names.iter().position(|name| service.starts_with(name)).unwrap_or_else(|| panic!("no service {service}"))
}

/// Runs the test on the suite in both shapes.
pub(crate) async fn both(test: impl AsyncFn(&Suite)) {
    for shape in [Shape::Up, Shape::Apart] {
        test(&*Suite::shared(shape).await).await;
    }
}
