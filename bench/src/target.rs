//! A suite that runs elsewhere: where it is, whether it is one, and what it says of its CPU.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, ensure};

use crate::lookup;

/// The address of `http://host:port`, and the host and port as they stand there. A path is left out of account.
pub(crate) fn locate(url: &str) -> anyhow::Result<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    ensure!(authority.contains(':'), "a target is http://host:port, not {url}");
    let mut found = authority.to_socket_addrs().with_context(|| format!("can't find {authority}"))?;
    let address = found.next().with_context(|| format!("can't find {authority}"))?;
    Ok((address, authority.to_owned()))
}

/// Where a suite that runs elsewhere says what it costs.
pub(crate) struct Metrics {
    address: SocketAddr,
    authority: String,
}

/// The port of `/metrics` when nobody says another.
const METRICS_PORT: u16 = 5390;

impl Metrics {
    /// The one of a target: at this URL, else on its host at the usual port.
    pub(crate) fn of(target: &str, url: Option<&str>) -> anyhow::Result<Self> {
        let (address, authority) = match url {
            Some(url) => locate(url)?,
            None => {
                let (mut address, _) = locate(target)?;
                address.set_port(METRICS_PORT);
                (address, address.to_string())
            }
        };
        Ok(Self { address, authority })
    }

    /// The CPU time that the process says it has had.
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        let body = lookup::ask(self.address, &self.authority, &lookup::get("/metrics")).ok()?;
        let text = std::str::from_utf8(&body).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total"))?;
        let seconds: f64 = line.split_ascii_whitespace().next_back()?.parse().ok()?;
        Some((seconds * 1e9) as u64)
    }
}

/// Whether the target answers as a bookstore does.
pub(crate) fn check(url: &str) -> anyhow::Result<()> {
    let (address, authority) = locate(url)?;
    let body = lookup::ask(address, &authority, &lookup::get("/api/v1/books/1"));
    let body = body.with_context(|| format!("{url} doesn't answer as a bookstore"))?;
    let book: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let sku = book.as_ref().and_then(|book| book.get("sku")?.as_str());
    ensure!(sku == Some(&proto::seed::sku(1)), "{url} doesn't have the seeded books");
    Ok(())
}
