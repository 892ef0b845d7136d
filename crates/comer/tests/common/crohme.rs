//! CROHME's pictures and captions, out of the zip beside the repository.

#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use comer::Image;
use zip::ZipArchive;

pub struct Crohme {
    archive: ZipArchive<File>,
}

impl Crohme {
    pub fn open(path: &Path) -> Self {
        Self { archive: ZipArchive::new(File::open(path).unwrap()).unwrap() }
    }

    fn read(&mut self, name: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// A set's formulas by the names of their pictures.
    pub fn captions(&mut self, set: &str) -> HashMap<String, String> {
        let text = String::from_utf8(self.read(&format!("data/{set}/caption.txt"))).unwrap();
        let line =
            |line: &str| line.split_once('\t').map(|(name, tokens)| (name.into(), tokens.trim().into()));
        text.lines().filter_map(line).collect()
    }

    /// A picture as the network takes it: an 8-bit bitmap, stored from the bottom row up.
    pub fn picture(&mut self, set: &str, name: &str) -> Image {
        let bytes = self.read(&format!("data/{set}/img/{name}.bmp"));
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (start, width, height) = (number(10), number(18), number(22));
        let rows = bytes[start..].chunks(width.next_multiple_of(4)).take(height);
        let pixels = rows.rev().flat_map(|row| &row[..width]).copied().collect();
        Image::new(width, height, pixels).unwrap().fit().unwrap()
    }
}
