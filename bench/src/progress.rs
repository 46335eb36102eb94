//! What a run says on standard error while it lasts: on a terminal one line that changes, elsewhere a line per round.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How far a run is.
pub(crate) struct Progress {
    terminal: bool,
    began: Instant,
    /// How long a step takes, as long as none is done.
    each: Duration,
    done: usize,
    total: usize,
}

impl Progress {
    /// Begins, and says how much there is to do.
    pub(crate) fn begin(rows: usize, rounds: usize, each: Duration) -> Self {
        let total = rows * rounds;
        let terminal = std::io::stderr().is_terminal();
        let progress = Self { terminal, began: Instant::now(), each, done: 0, total };
        let times = if rounds == 1 { "once".to_owned() } else { format!("{rounds} times") };
        say(&format!("{rows} rows, each {times}: about {} in all\n", minutes(progress.left())));
        progress
    }

    /// A step begins.
    pub(crate) fn step(&self, what: &str) {
        if self.terminal {
            let (done, total, left) = (self.done, self.total, minutes(self.left()));
            say(&format!("\r\x1b[K{done}/{total}  {left} left  {what}"));
        }
    }

    /// A step is done.
    pub(crate) fn step_done(&mut self) {
        self.done += 1;
    }

    /// A round of a scenario is done.
    pub(crate) fn round_done(&self, what: &str) {
        if !self.terminal {
            say(&format!("{what}: {} of {} done, {} left\n", self.done, self.total, minutes(self.left())));
        }
    }

    /// Leaves a clean line behind.
    pub(crate) fn end(&self) {
        if self.terminal {
            say("\r\x1b[K");
        }
    }

    fn left(&self) -> Duration {
        let each = match u32::try_from(self.done) {
            Ok(done @ 1..) => self.began.elapsed() / done,
            _ => self.each,
        };
        each.saturating_mul(u32::try_from(self.total - self.done).unwrap_or(u32::MAX))
    }
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Nobody reads it: no reason to stop.
pub(crate) fn say(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
