//! What the fuzz targets share.

use std::path::PathBuf;

/// A zip of stored files with right checksums, so that the fuzzer reaches what is inside.
pub fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let place = (zip.len() as u32).to_le_bytes();
        let size = (content.len() as u32).to_le_bytes();
        let name_size = (name.len() as u16).to_le_bytes();
        let head = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..],
            &crc32(content).to_le_bytes(),
            &size,
            &size,
            &name_size,
            &[0, 0],
        ];
        let head = head.concat();
        zip.extend([b"PK\x03\x04", &head[..], name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\x14\x00", &head[..], &[0; 10], &place, name.as_bytes()].concat());
    }
    let count = (files.len() as u16).to_le_bytes();
    let (size, place) = ((directory.len() as u32).to_le_bytes(), (zip.len() as u32).to_le_bytes());
    [&zip[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &size, &place, &[0, 0]].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// The parts of an input: each has two bytes of length before it, and the last one is the rest.
pub fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        parts.push(part);
        bytes = rest;
    }
    parts
}

/// A file for readers that take a path; each process has its own.
pub fn file(extension: &str, bytes: &[u8]) -> PathBuf {
    let folder = if cfg!(target_os = "linux") { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let path = folder.join(format!("comer-fuzz-{}.{extension}", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file can be written");
    path
}
