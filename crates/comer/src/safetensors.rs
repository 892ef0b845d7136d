//! Reads and writes safetensors: a JSON header that names tensors and their places, then their bytes.
//!
//! The format is small enough to read here, which saves a dozen dependencies. The crate
//! `safetensors` checks it in the tests.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::ops::Range;

use comer_files::limit;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Longest header that is read, because it takes more memory than its bytes; that of the bundled model has 57 kB.
const MOST_HEADER: usize = 4 << 20;
/// Most bytes of JSON in the metadata.
const MOST_JSON: usize = 1 << 19;
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

const METADATA: &str = "__metadata__";

#[derive(Default, Serialize)]
struct Header {
    #[serde(rename = "__metadata__", skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

/// Entry by entry: what serde derives for a flattened map buffers the whole header in a form that takes thirty times its bytes.
impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = entries.next_key::<String>()? {
                    match name.as_str() {
                        METADATA => header.metadata = entries.next_value()?,
                        _ => drop(header.tensors.insert(name, entries.next_value()?)),
                    }
                }
                Ok(header)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// The bytes of an element, for the types that are known here.
fn element_size(dtype: &str) -> Option<usize> {
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
    let mut reader = bytes;
    let header = read_header(&mut reader, Some(bytes.len()))?;
    let views = header.tensors.into_iter().map(|Place { name, dtype, shape, bytes }| {
        let bytes = &reader[bytes];
        (name, View { dtype, shape, bytes })
    });
    Ok(File { metadata: header.metadata, tensors: views.collect() })
}

/// What comes before the tensors of a file.
pub struct FileHeader {
    /// Text by key, empty if the file has none.
    pub metadata: BTreeMap<String, String>,
    /// The tensors in the order of their bytes, without gaps, to the end of the file.
    pub tensors: Vec<Place>,
}

/// A tensor that has not been read yet.
pub struct Place {
    /// Its name.
    pub name: String,
    /// The name of the element type.
    pub dtype: String,
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// Where it is after the header.
    pub bytes: Range<usize>,
}

/// Reads the header of a file; after it, `reader` is at the first tensor. A pipe has no `length`: its tensors say how much they
/// are, and what follows them is not looked at.
pub fn read_header(reader: &mut impl Read, length: Option<usize>) -> Result<FileHeader, String> {
    let expected = "expected safetensors";
    let failed = |error: std::io::Error| format!("{error}; {expected}");
    let most = usize::try_from(limit::MODEL).unwrap_or(usize::MAX);
    let after = length.unwrap_or(most);
    let after = after.checked_sub(LENGTH).ok_or_else(|| format!("the file has {after} bytes; {expected}"))?;
    let mut size = [0; LENGTH];
    reader.read_exact(&mut size).map_err(failed)?;
    let size = usize::try_from(u64::from_le_bytes(size)).unwrap_or(usize::MAX);
    if size > after.min(MOST_HEADER) {
        let found = length.map_or(String::new(), |length| format!(", and the file {length}"));
        return Err(format!("the header has {size} bytes{found}; {expected} with at most {MOST_HEADER}"));
    }
    let mut header = vec![0; size];
    reader.read_exact(&mut header).map_err(failed)?;
    let header: Header =
        serde_json::from_slice(&header).map_err(|error| format!("invalid header: {error}; {expected}"))?;
    let data = match length {
        Some(_) => after - size,
        None => {
            header.tensors.values().map(|entry| entry.data_offsets.1).max().unwrap_or(0).min(after - size)
        }
    };
    let mut tensors = Vec::with_capacity(header.tensors.len());
    for (name, Entry { dtype, shape, data_offsets: (start, end) }) in header.tensors {
        let wanted =
            element_size(&dtype).ok_or_else(|| format!("tensor {name} has unknown dtype {dtype}"))?;
        let wanted = shape.iter().try_fold(wanted, |product, &side| product.checked_mul(side));
        if end > data || end.checked_sub(start) != wanted || wanted.is_none() {
            return Err(format!(
                "tensor {name} of {dtype} {shape:?} is at bytes {start} to {end} of {data}, which does not fit"
            ));
        }
        tensors.push(Place { name, dtype, shape, bytes: start..end });
    }
    tensors.sort_by_key(|place| (place.bytes.start, place.bytes.end));
    let end = tensors
        .iter()
        .try_fold(0, |before, Place { bytes, .. }| (bytes.start == before).then_some(bytes.end));
    if end != Some(data) {
        return Err(
            "the tensors do not fill the file exactly: it is cut short, or has other data in it".into()
        );
    }
    Ok(FileHeader { metadata: header.metadata, tensors })
}

/// The bytes of a file. Tensors of larger elements come first and the header is padded, so that every tensor is aligned.
pub fn write(metadata: BTreeMap<String, String>, tensors: &BTreeMap<&str, View>) -> Result<Vec<u8>, String> {
    let mut order: Vec<(&str, &View)> = tensors.iter().map(|(name, view)| (*name, view)).collect();
    order.sort_by_key(|(_, view)| std::cmp::Reverse(element_size(&view.dtype)));
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

/// Parses JSON of the metadata. Some of it may be anything, and takes eighty times its bytes in memory.
pub fn parse_json<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, String> {
    check_json(key, text)?;
    serde_json::from_str(text).map_err(|error| format!("its {key} does not parse: {error}"))
}

/// Writes JSON for the metadata, if [`parse_json`] will read it.
pub fn to_json(key: &str, value: &(impl Serialize + ?Sized)) -> Result<String, String> {
    let text =
        serde_json::to_string(value).map_err(|error| format!("its {key} cannot be written: {error}"))?;
    check_json(key, &text).map(|()| text)
}

fn check_json(key: &str, text: &str) -> Result<(), String> {
    match text.len() <= MOST_JSON {
        true => Ok(()),
        false => Err(format!("its {key} has {} bytes, expected at most {MOST_JSON}", text.len())),
    }
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
    fn a_pipe_is_read_as_far_as_its_tensors_go() {
        let whole = file(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"12");
        for after in [&b""[..], b"more"] {
            let bytes = [&whole, after].concat();
            let mut reader = &bytes[..];
            let header = read_header(&mut reader, None).unwrap();
            assert_eq!((header.tensors[0].bytes.clone(), reader), (0..2, &[b"12", after].concat()[..]));
        }
        let huge = r#"{"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}"#;
        let reason = read_header(&mut &file(huge, b"")[..], None).err().unwrap();
        assert!(reason.contains("does not fit"), "{reason}");
    }

    #[test]
    fn malformed_files_are_errors() {
        let entry = |text: &str| format!(r#"{{"a":{{{text}}}}}"#);
        for (bytes, expected) in [
            (vec![], "0 bytes"),
            (u64::MAX.to_le_bytes().to_vec(), "expected safetensors"),
            (file("{", b""), "invalid header"),
            (file(r#"{"a":7}"#, b""), "invalid header"),
            (file(&" ".repeat(MOST_HEADER + 1), b""), "the header has 4194305 bytes"),
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
