//! Reads and writes safetensors: a JSON header that names tensors and their places, then their bytes.
//!
//! The format is small enough to read here, which saves a dozen dependencies. The crate
//! `safetensors` checks it in the tests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Longest header that is read.
const MOST_HEADER: usize = 100_000_000;
/// Bytes before the header, which hold its length.
const LENGTH: usize = 8;

/// A tensor in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct View<'a> {
    /// The name of the element type, such as `F32`.
    pub dtype: String,
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The elements in row-major order, little-endian.
    pub bytes: &'a [u8],
}

/// The content of a file.
#[derive(Debug)]
pub struct File<'a> {
    /// Text by key, empty if the file has none.
    pub metadata: BTreeMap<String, String>,
    /// The tensors by name.
    pub tensors: BTreeMap<String, View<'a>>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "__metadata__", default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

/// The bytes of an element, for the types that are known here.
fn size(dtype: &str) -> Option<usize> {
    Some(match dtype {
        "BOOL" | "U8" | "I8" => 1,
        "F16" | "BF16" | "U16" | "I16" => 2,
        "F32" | "U32" | "I32" => 4,
        "F64" | "U64" | "I64" => 8,
        _ => return None,
    })
}

/// Reads a file. The tensors must fill the space after the header without gaps or overlaps, so that nothing is hidden in
/// it.
pub fn read(bytes: &[u8]) -> Result<File<'_>, String> {
    let expected = "expected safetensors";
    let (length, rest) = bytes
        .split_first_chunk::<LENGTH>()
        .ok_or_else(|| format!("the file has {} bytes; {expected}", bytes.len()))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (header, data) = rest
        .split_at_checked(length)
        .filter(|_| length <= MOST_HEADER)
        .ok_or_else(|| format!("the header has {length} bytes, but the file {}; {expected}", bytes.len()))?;
    let header: Header =
        serde_json::from_slice(header).map_err(|error| format!("invalid header: {error}; {expected}"))?;
    let mut tensors = BTreeMap::new();
    let mut places = Vec::with_capacity(header.tensors.len());
    for (name, Entry { dtype, shape, data_offsets: (start, end) }) in header.tensors {
        let wanted = size(&dtype).ok_or_else(|| format!("tensor {name} has unknown dtype {dtype}"))?;
        let wanted = shape.iter().try_fold(wanted, |product, &side| product.checked_mul(side));
        let bytes = data.get(start..end).filter(|bytes| Some(bytes.len()) == wanted).ok_or_else(|| {
            format!(
                "tensor {name} of {dtype} {shape:?} is at bytes {start} to {end} of {}, which does not fit",
                data.len()
            )
        })?;
        places.push((start, end));
        tensors.insert(name, View { dtype, shape, bytes });
    }
    places.sort_unstable();
    let end = places.iter().try_fold(0, |before, &(start, end)| (start == before).then_some(end));
    if end != Some(data.len()) {
        return Err(
            "the tensors do not fill the file exactly: it is cut short, or has other data in it".into()
        );
    }
    Ok(File { metadata: header.metadata, tensors })
}

/// The bytes of a file. Tensors of larger elements come first and the header is padded, so that every tensor is aligned.
pub fn write(metadata: BTreeMap<String, String>, tensors: &BTreeMap<&str, View>) -> Result<Vec<u8>, String> {
    let mut order: Vec<(&str, &View)> = tensors.iter().map(|(name, view)| (*name, view)).collect();
    order.sort_by_key(|(_, view)| std::cmp::Reverse(size(&view.dtype)));
    let mut offset = 0;
    let mut entries = BTreeMap::new();
    for (name, view) in &order {
        let data_offsets = (offset, offset + view.bytes.len());
        offset = data_offsets.1;
        let entry = Entry { dtype: view.dtype.clone(), shape: view.shape.clone(), data_offsets };
        entries.insert(name.to_string(), entry);
    }
    let mut header = serde_json::to_vec(&Header { metadata, tensors: entries })
        .map_err(|error| format!("the header cannot be written: {error}"))?;
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    let mut file = Vec::with_capacity(LENGTH + header.len() + offset);
    file.extend_from_slice(&(header.len() as u64).to_le_bytes());
    file.extend_from_slice(&header);
    order.iter().for_each(|(_, view)| file.extend_from_slice(view.bytes));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    }

    #[test]
    fn what_is_written_is_read_back_here_and_by_the_reference() {
        let (floats, bytes) = ([1u8, 2, 3, 4, 5, 6, 7, 8], [9u8, 10, 11]);
        let view =
            |dtype: &str, shape: &[usize], bytes| View { dtype: dtype.into(), shape: shape.to_vec(), bytes };
        let tensors = BTreeMap::from([
            ("a", view("U8", &[3], &bytes[..])),
            ("b", view("F32", &[2, 1], &floats[..])),
            ("c", view("F16", &[0], &[])),
        ]);
        let metadata = BTreeMap::from([("key".to_string(), "a \"value\"".to_string())]);
        let written = write(metadata.clone(), &tensors).unwrap();
        let file = read(&written).unwrap();
        assert_eq!(file.metadata, metadata);
        assert!(
            file.tensors
                .iter()
                .map(|(name, view)| (name.as_str(), view))
                .eq(tensors.iter().map(|(name, view)| (*name, view)))
        );

        let (_, header) = ::safetensors::SafeTensors::read_metadata(&written).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap()["key"], "a \"value\"");
        let reference = ::safetensors::SafeTensors::deserialize(&written).unwrap();
        assert_eq!(reference.tensor("b").unwrap().data(), floats);
        assert_eq!(reference.tensor("a").unwrap().data(), bytes);
    }

    #[test]
    fn malformed_files_are_errors() {
        let entry = |text: &str| format!(r#"{{"a":{{{text}}}}}"#);
        for (bytes, expected) in [
            (vec![], "0 bytes"),
            (u64::MAX.to_le_bytes().to_vec(), "expected safetensors"),
            (file("{", b""), "invalid header"),
            (file(&entry(r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#), b"123"), "does not fit"),
            (file(&entry(r#""dtype":"F32","shape":[1],"data_offsets":[4,0]"#), b"1234"), "does not fit"),
            (file(&entry(r#""dtype":"F32","shape":[2],"data_offsets":[0,4]"#), b"1234"), "does not fit"),
            (file(&entry(r#""dtype":"F3","shape":[1],"data_offsets":[0,4]"#), b"1234"), "unknown dtype F3"),
            (
                file(&entry(r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#), b"12345"),
                "fill the file exactly",
            ),
            (
                file(&entry(r#""dtype":"U8","shape":[1],"data_offsets":[1,2]"#), b"12"),
                "fill the file exactly",
            ),
            (
                file(
                    &entry(r#""dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,16]"#),
                    &[0; 16],
                ),
                "does not fit",
            ),
        ] {
            let reason = read(&bytes).unwrap_err();
            assert!(reason.contains(expected), "{reason:?} lacks {expected:?}");
        }
    }
}
