//! The model file: one safetensors file with the weights, and in its metadata the config, the vocabulary, where it all
//! came from, and a checksum over everything.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;

use crc32fast::Hasher;
use rayon::prelude::*;
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors, View};
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::vocab::Vocab;
use crate::weights::{Tensor, Weights, tensor_specs};

/// What made a model: any JSON object (source, data, seed, epochs, figures).
pub type Provenance = Map<String, Value>;

/// A model with all that is needed to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The shape of the network.
    pub config: ModelConfig,
    /// The tokens that it writes.
    pub vocab: Vocab,
    /// What made it.
    pub provenance: Provenance,
    /// Its tensors: the names and shapes of [`tensor_specs`], no more and no fewer.
    pub weights: Weights,
}

/// How the weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As computed.
    F32,
    /// Rounded to half the size.
    F16,
}

const FORMAT: &str = "comer model 1";
/// Bytes before the header, which say how long it is.
const HEADER_LENGTH: usize = 8;
const PARTS: [&str; 4] = ["format", "config", "vocabulary", "provenance"];

impl ModelFile {
    /// Opens and checks a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|reason| Error::File { path: path.into(), reason })?;
        Self::from_bytes(&path.display().to_string(), &bytes)
    }

    /// The model of the crate `comer-model-crohme`, licensed CC BY-NC-SA 3.0: for non-commercial use.
    #[cfg(feature = "bundled")]
    pub fn bundled() -> Result<Self> {
        Self::from_bytes("the bundled model", comer_model_crohme::MODEL)
    }

    /// Reads and checks the bytes of a model file; `name` stands in error messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|reason| Error::ModelFile { name: name.into(), reason })
    }

    /// Checks that the config is sane and that the weights are those it asks for.
    pub fn validate(&self) -> Result<()> {
        let wrong = |reason| Error::ModelFile { name: "this model".into(), reason };
        self.config.validate()?;
        let found = self.weights.iter().map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice()));
        check_shapes(&self.config, &self.vocab, found.collect()).map_err(wrong)?;
        for (name, tensor) in &self.weights {
            if tensor.data.len() != tensor.shape.iter().product::<usize>() {
                let reason = format!(
                    "tensor {name} has {} numbers for its shape {:?}",
                    tensor.data.len(),
                    tensor.shape
                );
                return Err(wrong(reason));
            }
        }
        Ok(())
    }

    /// The bytes of this model's file.
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>> {
        self.validate()?;
        let wrong = |reason: String| Error::ModelFile { name: "this model".into(), reason };
        let tensors: BTreeMap<&str, Stored> = self
            .weights
            .iter()
            .map(|(name, tensor)| (name.as_str(), Stored::new(tensor, precision)))
            .collect();
        let json = |value: serde_json::Result<String>| value.map_err(|error| wrong(error.to_string()));
        let mut metadata = HashMap::from([
            ("format".to_string(), FORMAT.to_string()),
            ("config".to_string(), json(serde_json::to_string(&self.config))?),
            ("vocabulary".to_string(), json(serde_json::to_string(self.vocab.tokens()))?),
            ("provenance".to_string(), json(serde_json::to_string(&self.provenance))?),
        ]);
        let hash = |(&name, tensor): (&&str, &Stored)| {
            hash_of_tensor(name, tensor.dtype, tensor.shape, &tensor.bytes)
        };
        let hashes: Vec<Hasher> = tensors.iter().map(hash).collect();
        metadata.insert("checksum".to_string(), checksum(&metadata, hashes.iter()));
        safetensors::serialize(&tensors, Some(metadata)).map_err(|error| wrong(error.to_string()))
    }

    /// Writes the model beside `path` and renames it, so that `path` is never half written.
    pub fn save(&self, path: impl AsRef<Path>, precision: Precision) -> Result<()> {
        write_whole(path.as_ref(), &self.to_bytes(precision)?)
    }
}

/// Writes a file beside its place and renames it there: the place holds the old content or the new, never a part.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |reason| Error::File { path: path.into(), reason };
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = fs::File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    written.map_err(|reason| {
        let _ = fs::remove_file(&beside);
        failed(reason)
    })
}

fn read(bytes: &[u8]) -> Result<ModelFile, String> {
    let (length, header) =
        SafeTensors::read_metadata(bytes).map_err(|error| format!("{error}; expected safetensors"))?;
    let metadata =
        header.metadata().as_ref().ok_or("it has no metadata; expected config and vocabulary there")?;
    let part = |key: &str| metadata.get(key).ok_or_else(|| format!("its metadata lacks {key:?}"));
    if part("format")? != FORMAT {
        return Err(format!("its format is {:?}, expected {FORMAT:?}", part("format")?));
    }
    let config: ModelConfig = parse("config", part("config")?)?;
    let tokens: Vec<String> = parse("vocabulary", part("vocabulary")?)?;
    let provenance: Provenance = parse("provenance", part("provenance")?)?;
    config.validate().map_err(|error| error.to_string())?;
    let vocab = Vocab::new(tokens).map_err(|error| error.to_string())?;

    let data = &bytes[HEADER_LENGTH + length..];
    let tensors: BTreeMap<String, &TensorInfo> = header.tensors().into_iter().collect();
    check_shapes(
        &config,
        &vocab,
        tensors.iter().map(|(name, info)| (name.as_str(), info.shape.as_slice())).collect(),
    )?;
    // Each tensor is hashed and widened while it is in the cache, and the hashes are joined in the order of names.
    let read = tensors.par_iter().map(|(name, info)| {
        let bytes = &data[info.data_offsets.0..info.data_offsets.1];
        Ok((hash_of_tensor(name, info.dtype, &info.shape, bytes), name.clone(), widen(name, info, bytes)?))
    });
    let read = read.collect::<Result<Vec<_>, String>>()?;
    if part("checksum")? != &checksum(metadata, read.iter().map(|(hash, ..)| hash)) {
        return Err("its checksum does not match its content: the file was damaged or edited".into());
    }
    let weights = read.into_iter().map(|(_, name, tensor)| (name, tensor)).collect();
    Ok(ModelFile { config, vocab, provenance, weights })
}

fn parse<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("its {key} does not parse: {error}"))
}

fn check_shapes(
    config: &ModelConfig,
    vocab: &Vocab,
    mut found: BTreeMap<&str, &[usize]>,
) -> Result<(), String> {
    for spec in tensor_specs(config, vocab.len()) {
        match found.remove(spec.name.as_str()) {
            None => return Err(format!("tensor {} is missing, expected shape {:?}", spec.name, spec.shape)),
            Some(shape) if shape != spec.shape => {
                return Err(format!("tensor {} has shape {shape:?}, expected {:?}", spec.name, spec.shape));
            }
            Some(_) => {}
        }
    }
    match found.keys().next() {
        Some(name) => Err(format!("tensor {name} is not part of this model, expected no such tensor")),
        None => Ok(()),
    }
}

fn widen(name: &str, info: &TensorInfo, bytes: &[u8]) -> Result<Tensor, String> {
    let data = match info.dtype {
        Dtype::F32 => bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect(),
        Dtype::F16 => bytes.as_chunks().0.iter().map(|&two| half::f16::from_le_bytes(two).to_f32()).collect(),
        other => return Err(format!("tensor {name} has dtype {other:?}, expected F32 or F16")),
    };
    Ok(Tensor { shape: info.shape.clone(), data })
}

/// CRC-32 over the metadata's parts and every tensor's name, type, shape and bytes, in the order of names.
fn checksum<'a>(metadata: &HashMap<String, String>, tensors: impl Iterator<Item = &'a Hasher>) -> String {
    let mut hash = Hasher::new();
    for part in PARTS {
        hash.update(metadata.get(part).map_or(b"", |text| text.as_bytes()));
        hash.update(b"\0");
    }
    tensors.for_each(|tensor| hash.combine(tensor));
    format!("{:08x}", hash.finalize())
}

/// A tensor's part of the checksum.
fn hash_of_tensor(name: &str, dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Hasher {
    let mut hash = Hasher::new();
    hash.update(format!("{name} {dtype:?} {shape:?}\0").as_bytes());
    hash.update(bytes);
    hash
}

/// A tensor in the bytes that the file will hold.
struct Stored<'a> {
    dtype: Dtype,
    shape: &'a [usize],
    bytes: Vec<u8>,
}

impl<'a> Stored<'a> {
    fn new(tensor: &'a Tensor, precision: Precision) -> Self {
        let (dtype, bytes) = match precision {
            Precision::F32 => (Dtype::F32, tensor.data.iter().flat_map(|x| x.to_le_bytes()).collect()),
            Precision::F16 => {
                (Dtype::F16, tensor.data.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect())
            }
        };
        Self { dtype, shape: &tensor.shape, bytes }
    }
}

impl View for &Stored<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}
