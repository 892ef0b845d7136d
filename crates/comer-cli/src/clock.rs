//! Clocks: CPU time and time by the wall.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The CPU time of the process so far; by the wall where the system does not tell.
pub fn cpu_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(unix))]
    wall_time()
}

/// Time since the first call.
pub fn wall_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
