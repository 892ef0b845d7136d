//! The model file: safetensors with the weights, and in its metadata the config, the vocabulary, the provenance and a
//! checksum over everything.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crc32fast::Hasher;
use serde_json::{Map, Value};

use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::f16::{f16_to_f32, f32_to_f16};
use crate::language_model::LanguageModel;
use crate::safetensors::{self, Place, View, parse_json, to_json};
use crate::vocab::Vocab;
use crate::weights::{Tensor, Weights, tensor_specs};

/// The origin of a model: any JSON object (source, data, seed, epochs, accuracy).
pub type Provenance = Map<String, Value>;

/// A model: config, vocabulary, provenance and weights.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The shape of the network.
    pub config: ModelConfig,
    /// Its vocabulary.
    pub vocab: Vocab,
    /// Its origin.
    pub provenance: Provenance,
    /// Its tensors: the names and shapes of [`tensor_specs`], no more and no fewer.
    pub weights: Weights,
    /// The language model that the search uses, if the file has one.
    pub language_model: Option<LanguageModel>,
}

/// How the weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As computed.
    F32,
    /// Rounded to half the size.
    F16,
}

impl Precision {
    fn dtype(self) -> &'static str {
        match self {
            Precision::F32 => "F32",
            Precision::F16 => "F16",
        }
    }
}

/// The name of a model without a file, in messages.
pub const UNNAMED: &str = "this model";
const FORMAT: &str = "comer model 1";
const PARTS: [&str; 4] = ["format", "config", "vocabulary", "provenance"];
/// The name of the tensor that holds the bytes of a language model's file.
const LANGUAGE_MODEL: &str = "language_model";

impl ModelFile {
    /// Opens and checks a model file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut file = comer_files::open(path, comer_files::limit::MODEL).map_err(Error::reading(path))?;
        let length = file.length().map_err(Error::reading(path))?;
        read(&mut file, length)
            .map_err(|reason| Error::ModelFile { name: path.display().to_string(), reason })
    }

    /// The model of the crate `comer-model-crohme`, licensed CC BY-NC-SA 3.0: for non-commercial use.
    #[cfg(feature = "bundled")]
    pub fn bundled() -> Result<Self> {
        let mut model = Self::from_bytes("the bundled model", comer_model_crohme::MODEL)?;
        if model.language_model.is_none() {
            let bytes = comer_model_crohme::LANGUAGE_MODEL;
            model.language_model = Some(LanguageModel::from_bytes("the bundled language model", bytes)?);
        }
        Ok(model)
    }

    /// Reads and checks the bytes of a model file; `name` is used in error messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        read(&mut &bytes[..], Some(bytes.len()))
            .map_err(|reason| Error::ModelFile { name: name.into(), reason })
    }

    /// Checks the config, and that the weights are those of the config.
    pub fn validate(&self) -> Result<()> {
        let wrong = |reason| Error::ModelFile { name: UNNAMED.into(), reason };
        self.config.validate()?;
        if let Some(language_model) = &self.language_model {
            language_model.check_vocab(&self.vocab)?;
        }
        let found = self.weights.iter().map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice()));
        check_shapes(&self.config, &self.vocab, found.collect()).map_err(wrong)?;
        for (name, tensor) in &self.weights {
            check_finite(name, &tensor.data).map_err(wrong)?;
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
        let wrong = |reason: String| Error::ModelFile { name: UNNAMED.into(), reason };
        let encoded: Vec<(&str, &Tensor, Vec<u8>)> = self
            .weights
            .iter()
            .map(|(name, tensor)| Ok((name.as_str(), tensor, encode(name, &tensor.data, precision)?)))
            .collect::<Result<_, String>>()
            .map_err(wrong)?;
        let mut tensors: BTreeMap<&str, View> = BTreeMap::new();
        for (name, tensor, bytes) in &encoded {
            let (dtype, shape) = (precision.dtype().into(), tensor.shape.clone());
            tensors.insert(name, View { dtype, shape, bytes });
        }
        let language_model = self.language_model.as_ref().map(LanguageModel::to_bytes).transpose()?;
        if let Some(bytes) = &language_model {
            let view = View { dtype: "U8".into(), shape: vec![bytes.len()], bytes };
            tensors.insert(LANGUAGE_MODEL, view);
        }
        let mut metadata = BTreeMap::from([
            ("format".to_string(), FORMAT.to_string()),
            ("config".to_string(), to_json("config", &self.config).map_err(wrong)?),
            ("vocabulary".to_string(), to_json("vocabulary", self.vocab.tokens()).map_err(wrong)?),
            ("provenance".to_string(), to_json("provenance", &self.provenance).map_err(wrong)?),
        ]);
        let hashes: Vec<Hasher> = tensors.iter().map(|(name, view)| hash_of_tensor(name, view)).collect();
        metadata.insert("checksum".to_string(), checksum(&metadata, hashes.iter()));
        safetensors::write(metadata, &tensors).map_err(wrong)
    }

    /// Writes the model beside `path` and renames it, so that `path` is never half written.
    pub fn save(&self, path: impl AsRef<Path>, precision: Precision) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes(precision).map_err(|error| error.of(&path.display().to_string()))?;
        comer_files::write_atomic(path, &bytes).map_err(Error::writing(path))
    }
}

/// Reads a file, one tensor at a time: its bytes are hashed and widened while they are in the cache. A pipe has no length.
fn read(reader: &mut impl Read, length: Option<usize>) -> Result<ModelFile, String> {
    let header = safetensors::read_header(reader, length)?;
    let part = |key: &str| header.metadata.get(key).ok_or_else(|| format!("its metadata lacks {key:?}"));
    if part("format")? != FORMAT {
        return Err(format!("its format is {:?}, expected {FORMAT:?}", part("format")?));
    }
    let config: ModelConfig = parse_json("config", part("config")?)?;
    let tokens: Vec<String> = parse_json("vocabulary", part("vocabulary")?)?;
    let provenance: Provenance = parse_json("provenance", part("provenance")?)?;
    config.validate().map_err(|error| error.to_string())?;
    let vocab = Vocab::new(tokens).map_err(|error| error.to_string())?;

    let shapes = header.tensors.iter().map(|place| (place.name.as_str(), place.shape.as_slice()));
    check_shapes(&config, &vocab, shapes.filter(|(name, _)| *name != LANGUAGE_MODEL).collect())?;
    let (mut weights, mut language_model, mut hashes) = (Weights::new(), None, BTreeMap::new());
    let mut bytes = Vec::new();
    for Place { name, dtype, shape, bytes: place } in &header.tensors {
        read_tensor(reader, place.len(), &mut bytes).map_err(|error| format!("tensor {name}: {error}"))?;
        let view = View { dtype: dtype.clone(), shape: shape.clone(), bytes: &bytes };
        hashes.insert(name, hash_of_tensor(name, &view));
        if name == LANGUAGE_MODEL {
            language_model = Some(bytes.clone());
            continue;
        }
        let data =
            decode(&view).ok_or_else(|| format!("tensor {name} has dtype {dtype}, expected F32 or F16"))?;
        check_finite(name, &data)?;
        weights.insert(name.clone(), Tensor { shape: shape.clone(), data });
    }
    if reader.read(&mut [0]).map_err(|error| error.to_string())? != 0 {
        return Err("something follows its last tensor, expected its end".into());
    }
    if part("checksum")? != &checksum(&header.metadata, hashes.values()) {
        return Err("its checksum does not match its content: the file was damaged or edited".into());
    }
    let language_model = language_model.map(|bytes| {
        let own = LanguageModel::from_bytes(LANGUAGE_MODEL, &bytes)?;
        own.check_vocab(&vocab).map(|()| own)
    });
    let language_model = language_model.transpose().map_err(|error| error.to_string())?;
    Ok(ModelFile { config, vocab, provenance, weights, language_model })
}

/// Reads `length` bytes. A pipe may promise more than it has, so that memory is taken as it comes.
fn read_tensor(reader: &mut impl Read, length: usize, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    const PIECE: usize = 16 << 20;
    bytes.clear();
    while bytes.len() < length {
        let start = bytes.len();
        bytes.resize(length.min(start + PIECE), 0);
        reader.read_exact(&mut bytes[start..])?;
    }
    Ok(())
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

/// The numbers of a tensor; `None` if they are not floats of 32 or 16 bits.
fn decode(view: &View) -> Option<Vec<f32>> {
    match view.dtype.as_str() {
        "F32" => Some(view.bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect()),
        "F16" => {
            Some(view.bytes.as_chunks().0.iter().map(|&two| f16_to_f32(u16::from_le_bytes(two))).collect())
        }
        _ => None,
    }
}

/// The bytes of numbers, which are finite.
fn encode(name: &str, data: &[f32], precision: Precision) -> Result<Vec<u8>, String> {
    match precision {
        Precision::F32 => Ok(data.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Precision::F16 => {
            let halves: Vec<u16> = data.iter().map(|&x| f32_to_f16(x)).collect();
            match halves.iter().zip(data).find(|&(&half, _)| !f16_to_f32(half).is_finite()) {
                Some((_, x)) => Err(format!("tensor {name} has {x}, which does not fit into 16 bits")),
                None => Ok(halves.iter().flat_map(|half| half.to_le_bytes()).collect()),
            }
        }
    }
}

/// Weights that are not finite make answers without meaning.
fn check_finite(name: &str, data: &[f32]) -> Result<(), String> {
    // Without a way out of the middle of a chunk, which keeps compilers from using vectors.
    let finite = |chunk: &[f32]| chunk.iter().fold(true, |finite, x| finite & x.is_finite());
    if data.chunks(1024).all(finite) {
        return Ok(());
    }
    let place = data.iter().position(|x| !x.is_finite()).unwrap_or_default();
    Err(format!("tensor {name} has {} at {place}, expected finite numbers", data[place]))
}

/// CRC-32 over the metadata's parts and every tensor's name, type, shape and bytes, in the order of names.
fn checksum<'a>(metadata: &BTreeMap<String, String>, tensors: impl Iterator<Item = &'a Hasher>) -> String {
    let mut hash = Hasher::new();
    for part in PARTS {
        hash.update(metadata.get(part).map_or(b"", |text| text.as_bytes()));
        hash.update(b"\0");
    }
    tensors.for_each(|tensor| hash.combine(tensor));
    format!("{:08x}", hash.finalize())
}

/// A tensor's part of the checksum.
fn hash_of_tensor(name: &str, view: &View) -> Hasher {
    let mut hash = Hasher::new();
    hash.update(format!("{name} {} {:?}\0", view.dtype, view.shape).as_bytes());
    hash.update(view.bytes);
    hash
}
