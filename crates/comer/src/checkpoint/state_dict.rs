//! A dictionary of tensors as PyTorch or safetensors store it, read tensor by tensor when asked for.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::pickle::{Id, Pickle, Value};
use crate::f16::{bf16_to_f32, f16_to_f32};
use crate::safetensors;
use crate::weights::Tensor;

/// A hyper-parameter of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}

impl Setting {
    pub(super) fn number(&self) -> Option<f64> {
        if let Setting::Number(value) = self { Some(*value) } else { None }
    }

    pub(super) fn flag(&self) -> Option<bool> {
        if let Setting::Flag(value) = self { Some(*value) } else { None }
    }
}

/// Tensors under the authors' names without the leading `comer_model.`, and the hyper-parameters in the file.
#[derive(Debug, Default)]
pub struct StateDict {
    /// Hyper-parameters by the authors' names, if the file has them.
    pub settings: BTreeMap<String, Setting>,
    tensors: BTreeMap<String, Tensor>,
}

impl StateDict {
    /// From tensors and hyper-parameters.
    pub fn new(tensors: BTreeMap<String, Tensor>, settings: BTreeMap<String, Setting>) -> Self {
        Self { settings, tensors }
    }

    /// Reads a `.ckpt` or `.pt` (a zip with a pickle) or a `.safetensors` file; the content decides which.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if bytes.starts_with(b"PK") {
            from_zip(bytes)
        } else if bytes.starts_with(&[0x80]) {
            Err("it is a bare pickle, as PyTorch wrote them before version 1.6; expected a zip: load and save it with \
                 a newer PyTorch"
                .into())
        } else {
            from_safetensors(bytes)
        }
    }

    pub(super) fn shape(&self, name: &str) -> Result<&[usize], String> {
        let tensor = self.tensors.get(name).ok_or_else(|| format!("tensor {name} is missing"))?;
        if tensor.shape.is_empty() {
            return Err(format!("tensor {name} has no dimension, expected at least one"));
        }
        Ok(&tensor.shape)
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Tensor, String> {
        self.tensors.remove(name).ok_or_else(|| format!("tensor {name} is missing"))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        let mut after = self.tensors.range(prefix.to_string()..);
        after.next().is_some_and(|(name, _)| name.starts_with(prefix))
    }

    fn insert(&mut self, name: &str, tensor: Tensor) {
        let name = name.strip_prefix("comer_model.").unwrap_or(name);
        self.tensors.insert(name.into(), tensor);
    }
}

fn from_safetensors(bytes: &[u8]) -> Result<StateDict, String> {
    let file = safetensors::read(bytes).map_err(|reason| format!("{reason} or a zip of a pickle"))?;
    let mut state = StateDict::default();
    for (name, view) in file.tensors {
        if let Some(kind) = Kind::of_dtype(&view.dtype) {
            let data = view.bytes.chunks_exact(kind.size()).map(|bytes| kind.widen(bytes)).collect();
            state.insert(&name, Tensor { shape: view.shape, data });
        }
    }
    let config = file.metadata.get("config");
    if let Some(Ok(serde_json::Value::Object(fields))) = config.map(|text| serde_json::from_str(text)) {
        for (name, value) in fields {
            match value {
                serde_json::Value::Bool(flag) => drop(state.settings.insert(name, Setting::Flag(flag))),
                serde_json::Value::Number(number) => {
                    let number = Setting::Number(number.as_f64().unwrap_or(f64::NAN));
                    state.settings.insert(name, number);
                }
                _ => {}
            }
        }
    }
    Ok(state)
}

fn from_zip(bytes: &[u8]) -> Result<StateDict, String> {
    let mut archive = Archive::open(bytes)?;
    let pickle = Pickle::parse(&archive.read("data.pkl")?)?;
    if let Ok(order) = archive.read("byteorder")
        && order != b"little"
    {
        return Err(format!("its byte order is {:?}, expected \"little\"", String::from_utf8_lossy(&order)));
    }
    let dictionary = pickle.get(pickle.root(), "state_dict").unwrap_or(pickle.root());
    let Value::Dictionary(pairs) = dictionary else {
        return Err("it does not hold a dictionary of tensors".into());
    };
    let mut state = StateDict::default();
    let mut budget = bytes.len();
    for &(name, value) in pairs {
        let Value::Text(name) = pickle.value(name) else {
            return Err("it has a tensor whose name is not text".into());
        };
        let tensor =
            Stored::read(&pickle, value).ok_or_else(|| format!("its entry {name:?} is not a tensor"))?;
        if let Some(kind) = tensor.kind {
            let tensor = archive
                .tensor(&tensor, kind, &mut budget)
                .map_err(|reason| format!("tensor {name} {reason}"))?;
            state.insert(name, tensor);
        }
    }
    if let Some(Value::Dictionary(pairs)) = pickle.get(pickle.root(), "hyper_parameters") {
        for &(name, value) in pairs {
            let setting = match *pickle.value(value) {
                Value::Integer(number) => Setting::Number(number as f64),
                Value::Float(number) => Setting::Number(number),
                Value::Flag(flag) => Setting::Flag(flag),
                _ => continue,
            };
            if let Value::Text(name) = pickle.value(name) {
                state.settings.insert(name.clone(), setting);
            }
        }
    }
    Ok(state)
}

struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    root: String,
    storage: Option<(String, Vec<u8>)>,
}

impl<'a> Archive<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let zip =
            ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("its zip is broken: {error}"))?;
        let named = |name: &str| name.strip_suffix("data.pkl").map(str::to_string);
        let root = zip.file_names().find_map(|name| named(&name.ok()?));
        let root = root.ok_or("it is a zip without a data.pkl, expected one written by PyTorch")?;
        Ok(Self { zip, root, storage: None })
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let name = format!("{}{name}", self.root);
        let mut entry =
            self.zip.by_name(&name).map_err(|error| format!("its {name} cannot be read: {error}"))?;
        if entry.compressed_size() != entry.size() {
            return Err(format!("its {name} is compressed, expected it stored as PyTorch does"));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(|error| format!("its {name} cannot be read: {error}"))?;
        Ok(content)
    }

    /// Reads a tensor; `budget` is how many numbers the file's size still allows.
    fn tensor(&mut self, tensor: &Stored, kind: Kind, budget: &mut usize) -> Result<Tensor, String> {
        if self.storage.as_ref().is_none_or(|(key, _)| *key != tensor.key) {
            self.storage = Some((tensor.key.clone(), self.read(&format!("data/{}", tensor.key))?));
        }
        let storage = self.storage.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let indices = tensor.indices(storage.len() / kind.size(), budget)?;
        let number = |index: usize| kind.widen(&storage[index * kind.size()..][..kind.size()]);
        Ok(Tensor { shape: tensor.shape.clone(), data: indices.into_iter().map(number).collect() })
    }
}

/// Where a pickle says that a tensor's numbers are.
struct Stored {
    /// `None` for whole numbers, which no model needs.
    kind: Option<Kind>,
    key: String,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Stored {
    fn read(pickle: &Pickle, id: Id) -> Option<Self> {
        let parts = match made(pickle, id)? {
            ("torch._utils._rebuild_parameter", [tensor, ..]) => made(pickle, *tensor)?,
            other => other,
        };
        let ("torch._utils._rebuild_tensor_v2", &[storage, offset, shape, strides, ..]) = parts else {
            return None;
        };
        let Value::Persistent(storage) = *pickle.value(storage) else { return None };
        let Value::Sequence(storage) = pickle.value(storage) else { return None };
        let &[_, class, key, ..] = storage.as_slice() else { return None };
        let (Value::Global(class), Value::Text(key)) = (pickle.value(class), pickle.value(key)) else {
            return None;
        };
        let size = |id: Id| match pickle.value(id) {
            Value::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        };
        let sizes = |id: Id| match pickle.value(id) {
            Value::Sequence(items) => items.iter().map(|&item| size(item)).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        Some(Self {
            kind: Kind::of_storage(class)?,
            key: key.clone(),
            offset: size(offset)?,
            shape: sizes(shape)?,
            strides: sizes(strides)?,
        })
    }

    /// The places of the tensor's numbers in a storage of `available` numbers, in row-major order.
    fn indices(&self, available: usize, budget: &mut usize) -> Result<Vec<usize>, String> {
        if self.shape.len() != self.strides.len() || self.shape.len() > 8 {
            return Err(format!("has shape {:?} and strides {:?}", self.shape, self.strides));
        }
        let outside =
            || format!("of shape {:?} reaches outside of its storage of {available} numbers", self.shape);
        let count = self
            .shape
            .iter()
            .try_fold(1usize, |product, &side| product.checked_mul(side))
            .ok_or_else(outside)?;
        *budget = budget
            .checked_sub(count)
            .ok_or_else(|| format!("of shape {:?} is larger than the file", self.shape))?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let last = self.shape.iter().zip(&self.strides).try_fold(self.offset, |last, (&side, &stride)| {
            last.checked_add((side - 1).checked_mul(stride)?)
        });
        if last.is_none_or(|last| last >= available) {
            return Err(outside());
        }
        let mut indices = vec![self.offset];
        for (&side, &stride) in self.shape.iter().zip(&self.strides) {
            indices = indices.iter().flat_map(|&start| (0..side).map(move |i| start + i * stride)).collect();
        }
        Ok(indices)
    }
}

/// The function that made a value, and its arguments.
fn made(pickle: &Pickle, id: Id) -> Option<(&str, &[Id])> {
    let Value::Made { callable, arguments } = pickle.value(id) else { return None };
    let Value::Sequence(arguments) = pickle.value(*arguments) else { return None };
    Some((callable, arguments))
}

/// The types of numbers that weights come in.
#[derive(Clone, Copy, Debug)]
enum Kind {
    F64,
    F32,
    F16,
    Bf16,
}

impl Kind {
    fn of_dtype(dtype: &str) -> Option<Self> {
        match dtype {
            "F64" => Some(Kind::F64),
            "F32" => Some(Kind::F32),
            "F16" => Some(Kind::F16),
            "BF16" => Some(Kind::Bf16),
            _ => None,
        }
    }

    /// `Some(None)` for a storage of whole numbers, `None` for what is no storage.
    fn of_storage(class: &str) -> Option<Option<Self>> {
        match class.strip_prefix("torch.")? {
            "DoubleStorage" => Some(Some(Kind::F64)),
            "FloatStorage" => Some(Some(Kind::F32)),
            "HalfStorage" => Some(Some(Kind::F16)),
            "BFloat16Storage" => Some(Some(Kind::Bf16)),
            other => other.ends_with("Storage").then_some(None),
        }
    }

    fn size(self) -> usize {
        match self {
            Kind::F64 => 8,
            Kind::F32 => 4,
            Kind::F16 | Kind::Bf16 => 2,
        }
    }

    /// The number in `bytes`, which are [`Self::size`] many.
    fn widen(self, bytes: &[u8]) -> f32 {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        let [a, b, c, d, ..] = eight;
        match self {
            Kind::F64 => f64::from_le_bytes(eight) as f32,
            Kind::F32 => f32::from_le_bytes([a, b, c, d]),
            Kind::F16 => f16_to_f32(u16::from_le_bytes([a, b])),
            Kind::Bf16 => bf16_to_f32(u16::from_le_bytes([a, b])),
        }
    }
}
