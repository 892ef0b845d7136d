//! An allocator that counts, for tests of how much memory a reader takes.
#![allow(unsafe_code, reason = "a counting allocator has to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator. A test makes it its `global_allocator`, and has no second test beside it.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most bytes that were allocated at a time by `read`, beside those before it.
pub fn peak(read: impl FnOnce()) -> usize {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    read();
    PEAK.load(Relaxed) - before
}

/// What every reader may use beside 16 times its input.
pub const ROOM: usize = 64 << 20;

/// Asserts that reading `size` bytes takes no more memory than it may.
pub fn assert_bounded(name: &str, size: usize, read: impl FnOnce()) {
    let used = peak(read);
    assert!(used < 16 * size + ROOM, "{used} bytes for {name} of {size}");
}
