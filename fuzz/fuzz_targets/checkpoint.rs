//! Any bytes as a checkpoint, and as the pickle of one in a zip: tensors or an error, never a panic.
#![no_main]

use comer::internal::Vocab;
use comer::internal::checkpoint::{Hints, StateDict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes.to_vec(), zip_of_pickle(bytes)] {
        if let Ok(state) = StateDict::from_bytes(&bytes) {
            let _ = state.into_model(Vocab::crohme(), &Hints::default());
        }
    }
});

/// A zip with `pickle` stored as `a/data.pkl`, its checksum right, so that the fuzzer reaches the pickle reader.
fn zip_of_pickle(pickle: &[u8]) -> Vec<u8> {
    let name = b"a/data.pkl";
    let size = (pickle.len() as u32).to_le_bytes();
    let checksum = crc32(pickle).to_le_bytes();
    let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..], &checksum, &size, &size, &[name.len() as u8, 0, 0, 0]].concat();
    let local = [b"PK\x03\x04".as_slice(), &common, name, pickle].concat();
    let directory = [b"PK\x01\x02\x14\x00".as_slice(), &common, &[0; 14], name].concat();
    let place = (local.len() as u32).to_le_bytes();
    let length = (directory.len() as u32).to_le_bytes();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &length, &place, &[0, 0]].concat();
    [local, directory, end].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}
