//! Logs.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A word that is no level would pass for the name of a target, and everything else go unlogged.
fn check(filter: &str) -> Result<(), String> {
    let bare = filter
        .split(',')
        .map(str::trim)
        .find(|part| !part.is_empty() && !part.contains(['=', '[']) && part.parse::<LevelFilter>().is_err());
    match bare {
        Some(word) => Err(format!(
            "log filter {filter:?}: {word:?} is none of the levels off, error, warn, info, debug, trace, nor target=level"
        )),
        None => Ok(()),
    }
}

/// Sends log lines to standard error from here on. `filter` is in the form of `tracing`'s `EnvFilter`; one that
/// can't be read is an error that says why. Meant to be called once, by the binary.
pub fn init(filter: &str, format: LogFormat) -> Result<(), String> {
    check(filter)?;
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("log filter {filter:?}: {error}"))?;
    // Colours are for people at a terminal who haven't said no to them (no-color.org).
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours);
    match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    }
    .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_made_of_levels_and_targets_with_levels() {
        for good in
            ["info", "warn,catalog=debug", "off", "INFO", "catalog[call]=trace", "", "debug, hyper=off"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["loud", "catalog", "info,catalog", "infos"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
