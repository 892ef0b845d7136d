//! Hostile files cost little memory: the readers' peak allocation is counted.
#![allow(unsafe_code, reason = "a counting allocator has to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use comer::internal::ModelFile;
use comer::internal::checkpoint::StateDict;
use comer::internal::dataset::Dataset;

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

    for (name, pickle) in hostile_pickles() {
        let bytes = zip_of(&[("a/data.pkl", &pickle)]);
        let used = peak(|| drop(StateDict::from_bytes(&bytes)));
        assert!(used < 16 * bytes.len() + ROOM, "{used} bytes for {name}, a checkpoint of {}", bytes.len());
    }
    check_shared_storages();
    check_data_set();
    check_captions();
}

/// What every reader may use beside 16 times its input.
const ROOM: usize = 64 << 20;

fn hostile_pickles() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &[u8]| [b"X", &(text.len() as u32).to_le_bytes()[..], text].concat();
    let long = vec![b'a'; 1 << 20];
    // A module's name of a megabyte, and calls of what it names.
    let name = [b"ctorch.", &long[..], b"\nf\nq\x00)q\x010"].concat();
    let calls = b"h\x00h\x01R".repeat(3000);
    // The same with names from the stack, which are built anew for each value.
    let stacked = [&text(&[b"torch.", &long[..]].concat()), &b"q\x00"[..], &text(b"f"), b"q\x01"].concat();
    vec![
        ("calls of a long name", [name, calls, b".".to_vec()].concat()),
        ("long names from the stack", [stacked, b"h\x00h\x01\x93".repeat(3000), b".".to_vec()].concat()),
        ("a flood of values", vec![b'N'; 3 << 20]),
        ("a flood of copies", [b"]q\x00(N".to_vec(), vec![b'2'; 200_000], b"e.".to_vec()].concat()),
        (
            "a list that grows",
            [b"]".to_vec(), [b"(N".to_vec(), vec![b'2'; 5_000], b"e".to_vec()].concat().repeat(200)].concat(),
        ),
        ("a memo that grows", [b"N".to_vec(), vec![0x94; 3 << 20]].concat()),
        ("a flood of lists", b"]".repeat(3 << 20)),
        ("a flood of dictionaries", b"}NNs".repeat(1 << 20)),
    ]
}

/// Tensors that alternate between two storages, each as large as half of the file: none of them is copied for each tensor.
fn check_shared_storages() {
    let storage = vec![0u8; 4 << 20];
    let mut pickle = b"}".to_vec();
    for number in 0..2000u32 {
        let key = b'0' + (number % 2) as u8;
        pickle.extend([b"X\x04\0\0\0".as_slice(), format!("{number:04}").as_bytes()].concat());
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n");
        pickle.extend(
            [b"X\x01\0\0\0".as_slice(), &[key], b"X\x03\0\0\0cpuK\x02tQK\x00K\x02\x85K\x01\x85\x89}tRs"]
                .concat(),
        );
    }
    pickle.push(b'.');
    let bytes = zip_of(&[("a/data.pkl", &pickle), ("a/data/0", &storage), ("a/data/1", &storage)]);
    let start = comer_testing::thread_cpu_time();
    let used = peak(|| drop(StateDict::from_bytes(&bytes).unwrap()));
    assert!(used < 2 * bytes.len(), "{used} bytes for a checkpoint of {}", bytes.len());
    // Reading a storage for each tensor would copy and hash 8 GB.
    let seconds = (comer_testing::thread_cpu_time() - start).as_secs_f64();
    assert!(seconds < 1.0, "{seconds} CPU seconds for 2000 small tensors");
}

/// A zip of bitmaps that unpack to a thousand times their size.
fn check_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    let bitmap = [bitmap_head(4000, 3500), vec![0; 4000 * 3500]].concat();
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    let names: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    zip.start_file("caption.txt", options).unwrap();
    zip.write_all(names.iter().map(|name| format!("{name}\tx\n")).collect::<String>().as_bytes()).unwrap();
    for name in &names {
        zip.start_file(format!("img/{name}.bmp"), options).unwrap();
        zip.write_all(&bitmap).unwrap();
    }
    zip.finish().unwrap();
    let size = std::fs::metadata(&path).unwrap().len() as usize;
    drop(bitmap);
    let mut problems = 0;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let used = peak(|| problems = pool.install(|| Dataset::open(&path, "any")).unwrap().problems.len());
    assert!(problems > 8, "{problems} of 16 images were left out");
    // Images stay in memory, at most 64 times the zip and 64 MiB; decoding takes a few copies of one for each thread.
    let most = 64 * size + ROOM + 2 * 5 * 14_000_000;
    assert!(used < most, "{used} bytes for a data set of {size}");
}

/// Small zips whose captions unpack to as many or as long lines as they may, and to more.
fn check_captions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("captions.zip");
    let long = format!("{}\n", "a".repeat(199));
    for (lines, count, reason) in [
        ("a\n", 31_000_000, "the zip unpacks to more than"),
        ("a\n", 8_000_000, "has 8000000 lines, expected at most 10"),
        ("a\n", 100_000, ""),
        (&long, 80_000, ""),
    ] {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file("caption.txt", zip::write::SimpleFileOptions::default()).unwrap();
        let lines = lines.repeat(1000);
        (0..count / 1000).for_each(|_| zip.write_all(lines.as_bytes()).unwrap());
        zip.finish().unwrap();
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        let mut message = String::new();
        let used = peak(|| {
            if let Err(error) = Dataset::open(&path, "any") {
                message = error.to_string();
            }
        });
        assert!(used < 16 * size + ROOM, "{used} bytes for {count} lines in a zip of {size}");
        assert!(
            message.contains(reason) && message.is_empty() == reason.is_empty(),
            "{count} lines: {message}"
        );
    }
}

/// The head of a bitmap of 8 bits per pixel.
fn bitmap_head(width: u32, height: u32) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255).flat_map(|level| [level, level, level, 0]).collect();
    let start = 54 + palette.len() as u32;
    let mut head = b"BM".to_vec();
    for number in
        [start + width * height, 0, start, 40, width, height, 1 | 8 << 16, 0, width * height, 0, 0, 256, 0]
    {
        head.extend(number.to_le_bytes());
    }
    [head, palette].concat()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files {
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
