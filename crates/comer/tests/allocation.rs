//! Hostile files cost little memory: the readers' peak allocation is counted.
#![allow(unsafe_code, reason = "a counting allocator has to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use comer::internal::ModelFile;
use comer::internal::checkpoint::StateDict;

struct Counting;

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

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn peak(read: impl FnOnce()) -> usize {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    read();
    PEAK.load(Relaxed) - before
}

/// One test, so that no other thread allocates in between.
#[test]
fn hostile_files_cost_no_more_than_their_size_class() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let tensors: Vec<String> = (0..2000)
        .map(|i| {
            format!(r#""{i}":{{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#)
        })
        .collect();
    for bytes in [
        u64::MAX.to_le_bytes().to_vec(),
        (90u64 << 20).to_le_bytes().to_vec(),
        header(&format!("{{{}}}", tensors.join(","))),
        header(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}}"#),
    ] {
        let used = peak(|| drop(ModelFile::from_bytes("hostile", &bytes).unwrap_err()));
        assert!(used < 16 * bytes.len() + 64_000, "{used} bytes for a model file of {}", bytes.len());
        let used = peak(|| drop(StateDict::from_bytes(&bytes).unwrap_err()));
        assert!(used < 16 * bytes.len() + 64_000, "{used} bytes for a checkpoint of {}", bytes.len());
    }
}
