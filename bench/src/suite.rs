//! What is measured: the suite in processes of its own, the floor server.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::case::{Http, Style};
use crate::floor::{self, Size};
use crate::process;

/// Seconds that a reservation is held: shorter than the warm-up, so that what a round pays for giving units back is for
/// its own reservations.
pub const RESERVATION_TTL_S: f64 = 0.1;
/// Starting takes a fraction of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Cores to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// The server's.
    pub server: usize,
    /// The client's.
    pub client: usize,
}

/// How to start processes.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The suite's program.
    pub program: PathBuf,
    /// This program: the floor server's, and the one that ends children with it.
    pub own: PathBuf,
    /// Where processes run; none leaves it to the kernel.
    pub cores: Option<Cores>,
}

/// Where the styles listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// REST.
    pub rest: SocketAddr,
    /// GraphQL.
    pub graphql: SocketAddr,
    /// Catalog's gRPC and gRPC-Web.
    pub catalog: SocketAddr,
    /// Inventory's gRPC and gRPC-Web.
    pub inventory: SocketAddr,
    /// Ordering's gRPC and gRPC-Web.
    pub ordering: SocketAddr,
    /// The gRPC of all three, where that has a port of its own.
    pub grpc: Option<SocketAddr>,
}

impl Addresses {
    /// One port for all.
    pub fn one(address: SocketAddr) -> Self {
        Self {
            rest: address,
            graphql: address,
            catalog: address,
            inventory: address,
            ordering: address,
            grpc: None,
        }
    }

    /// Where a style of an operation listens; the path of a method of gRPC says whose it is.
    pub fn of(&self, style: Style, path: &str) -> SocketAddr {
        let service = if path.starts_with("/bookstore.inventory.") {
            self.inventory
        } else if path.starts_with("/bookstore.ordering.") {
            self.ordering
        } else {
            self.catalog
        };
        match style {
            Style::Graphql | Style::GraphqlPersisted => self.graphql,
            Style::GrpcWeb => service,
            _ if style.is_grpc() => self.grpc.unwrap_or(service),
            _ => self.rest,
        }
    }
}

/// Running processes. They end when this is dropped.
#[derive(Debug)]
pub struct Suite {
    children: Vec<(&'static str, Child)>,
    started: Instant,
    /// To ask a floor that looks for work all the time what requests have cost it.
    floor: Option<TcpStream>,
    /// Where they listen.
    pub addresses: Addresses,
}

impl Starter {
    /// The whole suite in one process, with as many books.
    pub fn one_process(&self, books: Option<i32>) -> anyhow::Result<Suite> {
        let ttl = RESERVATION_TTL_S.to_string();
        let books = books.map(|books| books.to_string());
        let mut arguments =
            vec!["up", "--port", "0", "--grpc-port", "0", "--threads", "1", "--reservation-ttl", &ttl];
        arguments.extend(with_books(&books));
        let mut start = Start::new(self);
        let lines = start.child("up", &self.program, &arguments, |lines| {
            lines.iter().any(|line| line.starts_with("gRPC "))
        })?;
        let address = |name: &str| {
            let line = lines.iter().find(|line| line.starts_with(name));
            line.and_then(|line| address_in(line))
                .with_context(|| format!("the suite doesn't say where {name} is"))
        };
        let http = address("REST ")?;
        let addresses = Addresses {
            rest: http,
            graphql: http,
            catalog: http,
            inventory: http,
            ordering: http,
            grpc: Some(address("gRPC ")?),
        };
        Ok(start.done(addresses))
    }

    /// Each service and each edge in a process of its own, with as many books.
    pub fn services(&self, books: Option<i32>) -> anyhow::Result<Suite> {
        let mut start = Start::new(self);
        let ttl = RESERVATION_TTL_S.to_string();
        let books = books.map(|books| books.to_string());
        let flags: Vec<&str> = ["--reservation-ttl", &ttl].into_iter().chain(with_books(&books)).collect();
        let inventory = start.service("inventory", &flags)?;
        let inventory_url = format!("http://{inventory}");
        let flags: Vec<&str> =
            ["--inventory-url", &inventory_url].into_iter().chain(with_books(&books)).collect();
        let catalog = start.service("catalog", &flags)?;
        let catalog_url = format!("http://{catalog}");
        let both = ["--catalog-url", &catalog_url, "--inventory-url", &inventory_url];
        let ordering = start.service("ordering", &both)?;
        let ordering_url = format!("http://{ordering}");
        let [a, b, c, d] = both;
        let all = [a, b, c, d, "--ordering-url", &ordering_url];
        let graphql = start.service("graphql-bff", &all)?;
        let rest = start.service("rest-facade", &all)?;
        Ok(start.done(Addresses { rest, graphql, catalog, inventory, ordering, grpc: None }))
    }

    /// The floor server. `together` is how many requests it has on a connection at all times.
    pub fn floor(&self, http: Http, size: Size, together: usize) -> anyhow::Result<Suite> {
        let mut start = Start::new(self);
        let spin = self.cores.is_some();
        let Size { wire, body, status } = size;
        let spec = format!("{},{wire},{body},{status},{together},{}", http.as_str(), u8::from(spin));
        let lines = start
            .child("floor", &self.own, &["compare", "--serve-floor", &spec], |lines| !lines.is_empty())?;
        let line = lines.first().and_then(|line| address_in(line));
        let address = line.context("the floor server doesn't say where it listens")?;
        let mut suite = start.done(Addresses::one(address));
        if spin {
            let ask = TcpStream::connect_timeout(&address, PATIENCE).context("can't connect to the floor")?;
            ask.set_read_timeout(Some(PATIENCE))?;
            suite.floor = Some(ask);
        }
        Ok(suite)
    }
}

fn with_books(books: &Option<String>) -> impl Iterator<Item = &str> {
    books.iter().flat_map(|books| ["--books", books])
}

struct Start<'a> {
    starter: &'a Starter,
    suite: Suite,
}

impl<'a> Start<'a> {
    fn new(starter: &'a Starter) -> Self {
        let addresses = Addresses::one(SocketAddr::from(([127, 0, 0, 1], 0)));
        Self {
            starter,
            suite: Suite { children: Vec::new(), started: Instant::now(), floor: None, addresses },
        }
    }

    fn done(mut self, addresses: Addresses) -> Suite {
        self.suite.addresses = addresses;
        self.suite
    }

    fn service(&mut self, name: &'static str, flags: &[&str]) -> anyhow::Result<SocketAddr> {
        let mut arguments = vec![name, "--port", "0", "--threads", "1"];
        arguments.extend_from_slice(flags);
        let lines = self.child(name, &self.starter.program, &arguments, |lines| !lines.is_empty())?;
        let address = lines.first().and_then(|line| address_in(line));
        address.with_context(|| format!("{name} doesn't say where it listens"))
    }

    /// Starts a process, and waits for what it says first.
    fn child(
        &mut self,
        name: &'static str,
        program: &Path,
        arguments: &[&str],
        enough: impl Fn(&[String]) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let parent = std::process::id().to_string();
        let mut command = Command::new(&self.starter.own);
        // Ends when this process does, even when that is killed.
        command.args(["compare", "--child-of", &parent, "--"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Out of the terminal's group: Ctrl-C is for this process, which ends them.
        command.env("BOOKSTORE_LOG", "warn").process_group(0);
        // What the user sets for a server of their own is not what is measured here.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("BOOKSTORE_") && name != "BOOKSTORE_LOG") {
                command.env_remove(name);
            }
        }
        let mut spawn = || command.spawn().with_context(|| format!("can't start {}", program.display()));
        // Children inherit the core, all their threads from the start.
        let child = match self.starter.cores {
            Some(cores) if process::pin([cores.server]).is_ok() => {
                let child = spawn();
                process::pin([cores.client]).context("can't go back to the client's core")?;
                child?
            }
            _ => spawn()?,
        };
        self.suite.children.push((name, child));
        let Some((_, child)) = self.suite.children.last_mut() else { bail!("no process") };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (to, lines) = mpsc::channel();
        for (stream, is_error) in [(stdout.map(boxed), false), (stderr.map(boxed), true)] {
            let (to, Some(stream)) = (to.clone(), stream) else { continue };
            // Reads on, so that the pipe never fills; ends with the process.
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = to.send((is_error, line));
                }
            });
        }
        drop(to);
        let (mut said, mut complaints) = (Vec::new(), Vec::new());
        let until = Instant::now() + PATIENCE;
        while !enough(&said) {
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((true, line)) => complaints.push(line),
                Ok((false, line)) => said.push(line),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    bail!("{name} said nothing for {} s", PATIENCE.as_secs())
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = child.wait().context("can't wait for it")?;
                    bail!("{name} ended at its start, {status}: {}", complaints.join("; "));
                }
            }
        }
        Ok(said)
    }
}

fn boxed(stream: impl std::io::Read + Send + 'static) -> Box<dyn std::io::Read + Send> {
    Box::new(stream)
}

/// The address in a line of what a process says.
pub fn address_in(line: &str) -> Option<SocketAddr> {
    let words = line.split_ascii_whitespace();
    words.filter_map(|word| word.trim_start_matches("http://").split('/').next()?.parse().ok()).next()
}

impl Suite {
    /// A suite that runs elsewhere.
    pub fn elsewhere(addresses: Addresses) -> Self {
        Self { children: Vec::new(), started: Instant::now(), floor: None, addresses }
    }

    /// The processes: name and id.
    pub fn processes(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.children.iter().map(|(name, child)| (*name, child.id()))
    }

    /// CPU time of each process, in the order of [`processes`](Self::processes).
    pub fn cpu_ns(&self) -> Vec<Option<u64>> {
        if let Some(floor) = &self.floor {
            return vec![floor::cpu_ns(floor).ok()];
        }
        self.processes().map(|(_, id)| process::cpu_ns(id)).collect()
    }

    /// The most memory that all processes together can have had.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.processes().map(|(_, id)| process::peak_memory_bytes(id)).sum()
    }

    /// Which process has ended, when and how; none when all run.
    pub fn ended(&mut self) -> Option<String> {
        let after = self.started.elapsed();
        // The kernel may tell of the closed connection a moment before it tells of the end.
        for attempt in 0..2 {
            for (name, child) in &mut self.children {
                if let Ok(Some(status)) = child.try_wait() {
                    return Some(format!(
                        "{name} ended {:.1} s after its start, {status}",
                        after.as_secs_f64()
                    ));
                }
            }
            if attempt == 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        None
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        // Nothing of theirs is worth a graceful end, which would wait for open connections.
        for (_, child) in &mut self.children {
            let _ = child.kill();
        }
        for (_, child) in &mut self.children {
            let _ = child.wait();
        }
    }
}
