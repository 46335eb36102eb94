//! A suite that runs elsewhere: where it is, whether it is one, and what it says of its CPU.

use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, ensure};

use crate::args::Args;
use crate::lookup;
use crate::suite::{Addresses, Suite};

/// The address of `http://host:port`, and the host and port as they stand there. A path is left out of account.
fn locate(url: &str) -> anyhow::Result<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    ensure!(authority.contains(':'), "a target is http://host:port, not {url}");
    let mut found = authority.to_socket_addrs().with_context(|| format!("can't find {authority}"))?;
    let address = found.next().with_context(|| format!("can't find {authority}"))?;
    Ok((address, authority.to_owned()))
}

/// The port of `/metrics` when nobody says another.
const METRICS_PORT: u16 = 5390;

/// Of the million copies that there are at first; some may have come back since one was refused.
const FEW: i64 = 10_000;

/// A suite that runs elsewhere: as one process, or with an address for each service.
pub(crate) struct Target {
    addresses: Addresses,
    /// Each address as the user spelt it, as requests name it.
    names: Vec<(SocketAddr, String)>,
    /// Where its processes say what they cost.
    metrics: Vec<(SocketAddr, String)>,
}

impl Target {
    /// The one that the arguments name, if they do. What has no URL of its own is where REST is.
    pub(crate) fn of(args: &Args) -> anyhow::Result<Option<Self>> {
        let Some(rest) = &args.target else { return Ok(None) };
        let mut names = Vec::new();
        let mut find = |url: &Option<String>| -> anyhow::Result<SocketAddr> {
            let (address, name) = locate(url.as_ref().unwrap_or(rest))?;
            names.push((address, name));
            Ok(address)
        };
        let addresses = Addresses {
            rest: find(&None)?,
            graphql: find(&args.target_graphql)?,
            catalog: find(&args.target_catalog)?,
            inventory: find(&args.target_inventory)?,
            ordering: find(&args.target_ordering)?,
            // The HTTP port serves it too.
            grpc: None,
        };
        let mut metrics = Vec::new();
        for url in &args.target_metrics {
            metrics.push(locate(url)?);
        }
        if metrics.is_empty() {
            let at = SocketAddr::new(addresses.rest.ip(), METRICS_PORT);
            metrics.push((at, at.to_string()));
        }
        Ok(Some(Self { addresses, names, metrics }))
    }

    /// Where it listens.
    pub(crate) fn suite(&self) -> Suite {
        Suite::elsewhere(self.addresses)
    }

    /// How requests to an address name it.
    pub(crate) fn authority(&self, address: SocketAddr) -> String {
        let name = self.names.iter().find(|(at, _)| *at == address);
        name.map_or_else(|| address.to_string(), |(_, name)| name.clone())
    }

    /// The CPU time that each process says it has had.
    pub(crate) fn cpu_ns(&self) -> Vec<Option<u64>> {
        let seconds = |process| metric(process, "process_cpu_seconds_total");
        self.metrics.iter().map(|process| Some((seconds(process)? * 1e9) as u64)).collect()
    }

    /// The most memory that all processes together can have had since they started.
    pub(crate) fn peak_memory_bytes(&self) -> Option<u64> {
        let bytes = |process| metric(process, "process_resident_memory_peak_bytes");
        self.metrics.iter().map(|process| Some(bytes(process)? as u64)).sum()
    }

    /// Whether a run failed because nothing was left to reserve. Not every style's reply says so by itself.
    pub(crate) fn ran_out_of_stock(&self, error: &anyhow::Error) -> bool {
        let text = format!("{error:#}");
        text.contains("OUT_OF_STOCK")
            || (text.contains("wrong reply") && self.in_stock().is_some_and(|left| left < FEW))
    }

    /// Copies of the first book that can be reserved now.
    fn in_stock(&self) -> Option<i64> {
        let address = self.addresses.rest;
        let call = lookup::get("/api/v1/books/1/stock");
        let body = lookup::ask(address, &self.authority(address), &call).ok()?;
        serde_json::from_slice::<serde_json::Value>(&body).ok()?.get("inStock")?.as_i64()
    }

    /// Whether it answers as a bookstore does.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let address = self.addresses.rest;
        let authority = self.authority(address);
        let body = lookup::ask(address, &authority, &lookup::get("/api/v1/books/1"));
        let body = body.with_context(|| format!("http://{authority} doesn't answer as a bookstore"))?;
        let book: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        let sku = book.as_ref().and_then(|book| book.get("sku")?.as_str());
        ensure!(sku == Some(&proto::seed::sku(1)), "http://{authority} doesn't have the seeded books");
        Ok(())
    }
}

/// What a process says of itself at its `/metrics`.
fn metric((address, authority): &(SocketAddr, String), name: &str) -> Option<f64> {
    let body = lookup::ask(*address, authority, &lookup::get("/metrics")).ok()?;
    let text = std::str::from_utf8(&body).ok()?;
    let line =
        text.lines().find_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{'])))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn target(line: &str) -> anyhow::Result<Option<Target>> {
        Target::of(&Cli::try_parse_from(line.split(' ')).unwrap().args)
    }

    #[test]
    fn one_url_is_enough_for_one_process() {
        let found = target("compare --target http://127.0.0.1:5300/").unwrap().unwrap();
        assert_eq!(found.addresses, Addresses::one("127.0.0.1:5300".parse().unwrap()));
        assert_eq!(found.authority(found.addresses.graphql), "127.0.0.1:5300");
        assert_eq!(found.metrics, [("127.0.0.1:5390".parse().unwrap(), "127.0.0.1:5390".to_owned())]);
    }

    #[test]
    fn services_of_their_own_are_asked_by_their_own_names() {
        let line = "compare --target http://127.0.0.1:1 --target-graphql http://localhost:2 \
                    --target-catalog 127.0.0.1:3 --target-ordering http://127.0.0.1:4 \
                    --target-metrics http://127.0.0.1:5/metrics,http://127.0.0.1:6/metrics";
        let line: Vec<&str> = line.split_whitespace().collect();
        let found = target(&line.join(" ")).unwrap().unwrap();
        let Addresses { rest, graphql, catalog, inventory, ordering, grpc } = found.addresses;
        assert_eq!(
            [rest.port(), graphql.port(), catalog.port(), inventory.port(), ordering.port()],
            [1, 2, 3, 1, 4]
        );
        assert_eq!(grpc, None);
        assert_eq!(found.authority(graphql), "localhost:2");
        assert_eq!(found.metrics.iter().map(|(at, _)| at.port()).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn no_url_or_no_port_is_no_target() {
        assert!(target("compare").unwrap().is_none());
        assert!(target("compare --target http://127.0.0.1").is_err());
    }
}
