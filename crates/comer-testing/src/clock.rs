//! Clocks for benchmarks.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of this process so far.
pub fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of this thread so far.
pub fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// Time since the first call.
pub fn wall_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
