//! What the kernel tells of processes and of the machine, and where processes run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::thread::CpuSet;
use serde::Serialize;

/// Nanoseconds of CPU that all threads of a process have had; none without `/proc`.
///
/// From the scheduler's own accounting, which counts nanoseconds, not ticks. A thread that ended is no longer in it.
pub fn cpu_ns(pid: u32) -> Option<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        sum += text.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// Nanoseconds of CPU that the calling thread has had.
pub fn thread_cpu_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).ok()
}

/// The most memory that the process has had resident, in bytes, since its start.
pub fn peak_memory_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Cores that this thread may run on.
pub fn allowed_cores() -> BTreeSet<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Puts this thread, and what it starts from now on, on these cores.
pub fn pin(cores: impl IntoIterator<Item = usize>) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    cores.into_iter().filter(|core| *core < CpuSet::MAX_CPU).for_each(|core| set.set(core));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Ends this process when the one that started it ends, however it ends.
pub fn end_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Becomes another program, which ends when `parent` does, however that ends. Comes back only when it can't.
pub fn become_child(parent: i32, command: &[OsString]) -> anyhow::Error {
    end_with_parent();
    let Some((program, arguments)) = command.split_first() else { return anyhow::anyhow!("no program") };
    // One that had ended before will not end again.
    if rustix::process::getppid().is_none_or(|id| id.as_raw_nonzero().get() != parent) {
        return anyhow::anyhow!("who started this has gone");
    }
    let error = Command::new(program).args(arguments).exec();
    anyhow::Error::new(error).context(format!("can't start {}", Path::new(program).display()))
}

/// Two cores for server and client that share nothing where that is possible: the server's first.
pub fn two_cores(allowed: &BTreeSet<usize>) -> Option<(usize, usize)> {
    let mut cores = allowed.iter().copied();
    let server = cores.next()?;
    let siblings = siblings(server);
    let rest: Vec<usize> = cores.collect();
    let apart = rest.iter().rev().find(|core| !siblings.contains(core));
    let client = *apart.or(rest.last())?;
    Some((server, client))
}

/// Whether two hardware threads are one core.
pub fn share_a_core(one: usize, other: usize) -> bool {
    siblings(one).contains(&other)
}

fn siblings(core: usize) -> BTreeSet<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let text = fs::read_to_string(path).unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse().ok()?..=to.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// The machine that a report is from.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The model of its CPU.
    pub cpu: String,
    /// Cores that the run could use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let total = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let total = total.and_then(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok());
        let name = rustix::system::uname();
        Self {
            cpu: model.map_or("unknown", |(_, model)| model.trim()).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: total.map(|kib| kib * 1024),
            kernel: format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy()),
        }
    }
}
