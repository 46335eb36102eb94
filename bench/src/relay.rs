//! A relay on loopback that delays what passes: a network's round trip, simulated.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

/// A running relay. It ends when this is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Bytes that leave in one direction once their time has come.
struct Side {
    socket: TcpStream,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

impl Relay {
    /// Starts one before `server` that adds `rtt` to every round trip, half in each direction.
    pub(crate) fn start(server: SocketAddr, rtt: Duration) -> io::Result<Self> {
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            // A broken relay shows as a broken connection.
            let _ = relay(poll, &listener, server, rtt / 2, &stopped);
        })?;
        Ok(Self { address, stop, waker, thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay(
    mut poll: Poll,
    listener: &TcpListener,
    server: SocketAddr,
    delay: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut sides: HashMap<usize, Side> = HashMap::new();
    let (mut next, mut buffer) = (0, vec![0; 256 << 10]);
    let mut events = Events::with_capacity(1024);
    while !stop.load(Ordering::Relaxed) {
        let first = sides.values().filter_map(|side| Some(side.waiting.front()?.0)).min();
        let wait = first.map(|at| at.saturating_duration_since(Instant::now()));
        match poll.poll(&mut events, wait) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        let mut gone = Vec::new();
        for event in &events {
            match event.token() {
                WAKER => {}
                LISTENER => {
                    while let Ok((from, _)) = listener.accept() {
                        let to = std::net::TcpStream::connect(server)?;
                        to.set_nonblocking(true)?;
                        // The pair of a side differs from it in the last bit.
                        for mut socket in [from, TcpStream::from_std(to)] {
                            socket.set_nodelay(true)?;
                            let interest = Interest::READABLE | Interest::WRITABLE;
                            poll.registry().register(&mut socket, Token(next), interest)?;
                            sides.insert(next, Side { socket, waiting: VecDeque::new() });
                            next += 1;
                        }
                    }
                }
                Token(from) => {
                    while let Some(side) = sides.get_mut(&from) {
                        match side.socket.read(&mut buffer) {
                            Ok(count @ 1..) => {
                                let bytes = buffer.get(..count).unwrap_or_default().to_vec();
                                if let Some(to) = sides.get_mut(&(from ^ 1)) {
                                    to.waiting.push_back((Instant::now() + delay, bytes));
                                }
                            }
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                            Ok(_) | Err(_) => {
                                gone.push(from);
                                break;
                            }
                        }
                    }
                }
            }
        }
        let now = Instant::now();
        for (token, side) in &mut sides {
            if side.flush(now).is_err() {
                gone.push(*token);
            }
        }
        for token in gone {
            sides.remove(&token);
            sides.remove(&(token ^ 1));
        }
    }
    Ok(())
}

impl Side {
    fn flush(&mut self, now: Instant) -> io::Result<()> {
        while let Some((at, bytes)) = self.waiting.front_mut()
            && *at <= now
        {
            match self.socket.write(bytes) {
                Ok(count) if count == bytes.len() => drop(self.waiting.pop_front()),
                Ok(count) => drop(bytes.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
