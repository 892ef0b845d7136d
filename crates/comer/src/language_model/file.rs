//! The file of a language model: safetensors with both directions' n-grams as bytes, and all else in its metadata.

use std::collections::BTreeMap;
use std::path::Path;

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::recurrence::{Recurrence, Stored};
use super::{LanguageModel, Ngrams};
use crate::error::{Error, Result};
use crate::safetensors::{self, View, parse_json, to_json};
use crate::token::{EOS, SOS};
use crate::vocab::Vocab;

const FORMAT: &str = "comer language model 1";
const PARTS: [&str; 4] = ["format", "vocabulary", "search", "provenance"];
/// A larger weight would drown out the decoder.
const MAX_WEIGHT: f32 = 10.0;

/// What the search needs beside the n-grams.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    weight: f32,
    recurrence: Stored,
}

impl LanguageModel {
    /// Opens and checks the file of a language model.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = comer_files::read(path, comer_files::limit::MODEL).map_err(Error::reading(path))?;
        Self::from_bytes(&path.display().to_string(), &bytes)
    }

    /// Reads and checks the bytes of a language model's file; `name` stands in error messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|reason| Error::LanguageModel { name: name.into(), reason })
    }

    /// The bytes of its file; the same model always gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        write(self).map_err(|reason| Error::LanguageModel { name: "this language model".into(), reason })
    }
}

fn write(model: &LanguageModel) -> Result<Vec<u8>, String> {
    check_weight(model.weight)?;
    let search = Search { weight: model.weight, recurrence: model.recurrence.to_stored(&model.vocab) };
    let mut metadata = BTreeMap::from([
        ("format".to_string(), FORMAT.to_string()),
        ("vocabulary".to_string(), to_json("vocabulary", model.vocab.tokens())?),
        ("search".to_string(), to_json("search", &search)?),
        ("provenance".to_string(), to_json("provenance", &model.provenance)?),
    ]);
    let parts = [model.forward.to_bytes(), model.backward.to_bytes()];
    metadata.insert("checksum".to_string(), checksum(&metadata, [&parts[0], &parts[1]]));
    let view = |bytes| View { dtype: "U8".into(), shape: vec![Vec::len(bytes)], bytes };
    let tensors = BTreeMap::from([("forward", view(&parts[0])), ("backward", view(&parts[1]))]);
    safetensors::write(metadata, &tensors)
}

fn read(bytes: &[u8]) -> Result<LanguageModel, String> {
    let file = safetensors::read(bytes)?;
    let part = |key: &str| file.metadata.get(key).ok_or_else(|| format!("its metadata lacks {key:?}"));
    if part("format")? != FORMAT {
        return Err(format!("its format is {:?}, expected {FORMAT:?}", part("format")?));
    }
    let tensor = |name: &str| match file.tensors.get(name) {
        Some(view) if view.dtype == "U8" => Ok(view.bytes),
        Some(view) => Err(format!("tensor {name} has dtype {}, expected U8", view.dtype)),
        None => Err(format!("tensor {name} is missing")),
    };
    let (forward, backward) = (tensor("forward")?, tensor("backward")?);
    if part("checksum")? != &checksum(&file.metadata, [forward, backward]) {
        return Err("its checksum does not match its content: the file was damaged or edited".into());
    }
    let search: Search = parse_json("search", part("search")?)?;
    check_weight(search.weight)?;
    let tokens: Vec<String> = parse_json("vocabulary", part("vocabulary")?)?;
    let vocab = Vocab::new(tokens).map_err(|error| error.to_string())?;
    let ngrams = |name: &str, start, bytes| {
        Ngrams::from_bytes(vocab.len(), start, bytes).map_err(|reason| format!("{name}: {reason}"))
    };
    Ok(LanguageModel {
        forward: ngrams("forward", SOS, forward)?,
        backward: ngrams("backward", EOS, backward)?,
        recurrence: Recurrence::from_stored(search.recurrence, &vocab)
            .map_err(|error| format!("recurrence: {error}"))?,
        vocab,
        weight: search.weight,
        provenance: parse_json("provenance", part("provenance")?)?,
    })
}

/// CRC-32 over the metadata's parts and both directions' bytes.
fn checksum(metadata: &BTreeMap<String, String>, tensors: [&[u8]; 2]) -> String {
    let mut hash = Hasher::new();
    for part in PARTS {
        hash.update(metadata.get(part).map_or(b"", |text| text.as_bytes()));
        hash.update(b"\0");
    }
    for bytes in tensors {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    format!("{:08x}", hash.finalize())
}

fn check_weight(weight: f32) -> Result<(), String> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        return Ok(());
    }
    Err(format!("its weight is {weight}, expected a number from 0 to {MAX_WEIGHT}"))
}
