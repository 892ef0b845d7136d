//! A dictionary of tensors as PyTorch or safetensors store it, read tensor by tensor when asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use zip::{CompressionMethod, ZipArchive};

use super::pickle::{Global, Id, Pickle, Value};
use crate::f16::{bf16_to_f32, f16_to_f32};
use crate::safetensors::{self, parse_json};
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
    if let Some(Ok(serde_json::Value::Object(fields))) = config.map(|text| parse_json("config", text)) {
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
    let pickle = Pickle::parse(archive.read("data.pkl")?)?;
    if let Ok(order) = archive.read("byteorder")
        && order != b"little"
    {
        let found: String = String::from_utf8_lossy(order).chars().take(20).collect();
        return Err(format!("its byte order is {found:?}, expected \"little\""));
    }
    let dictionary = pickle.get(pickle.root(), "state_dict").unwrap_or(pickle.root());
    let Value::Dictionary(pairs) = dictionary else {
        return Err("it does not hold a dictionary of tensors".into());
    };
    let mut state = StateDict::default();
    // Tensors may share numbers, but not without end.
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
                state.settings.insert(name.to_string(), setting);
            }
        }
    }
    Ok(state)
}

struct Archive<'a> {
    bytes: &'a [u8],
    zip: ZipArchive<Cursor<&'a [u8]>>,
    root: String,
    /// Entries whose checksum was found right.
    checked: BTreeSet<String>,
    /// Bytes that may still be checked: entries do not overlap, so that they are not more than the file.
    unchecked: u64,
}

impl<'a> Archive<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let zip =
            ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("its zip is broken: {error}"))?;
        let named = |name: &str| name.strip_suffix("data.pkl").map(str::to_string);
        let root = zip.file_names().find_map(|name| named(&name.ok()?));
        let root = root.ok_or("it is a zip without a data.pkl, expected one written by PyTorch")?;
        Ok(Self { bytes, zip, root, checked: BTreeSet::new(), unchecked: bytes.len() as u64 })
    }

    /// The bytes of an entry, where they are in the file: PyTorch does not compress.
    fn read(&mut self, name: &str) -> Result<&'a [u8], String> {
        let name = format!("{}{name}", self.root);
        let failed = |reason: &dyn std::fmt::Display| format!("its {name} cannot be read: {reason}");
        let entry = self.zip.by_name(&name).map_err(|error| failed(&error))?;
        let (size, checksum) = (entry.size(), entry.crc32());
        if entry.compression() != CompressionMethod::Stored || entry.compressed_size() != size {
            return Err(format!("its {name} is compressed, expected it stored as PyTorch does"));
        }
        let place = || {
            let start = usize::try_from(entry.data_start()?).ok()?;
            self.bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?)
        };
        let content = place().ok_or_else(|| failed(&"it reaches outside of the file"))?;
        drop(entry);
        if !self.checked.contains(&name) {
            self.unchecked =
                self.unchecked.checked_sub(size).ok_or_else(|| failed(&"its entries overlap"))?;
            if crc32fast::hash(content) != checksum {
                return Err(failed(&"its checksum is wrong"));
            }
            self.checked.insert(name);
        }
        Ok(content)
    }

    /// Reads a tensor; `budget` is how many numbers the file's size still allows.
    fn tensor(&mut self, tensor: &Stored, kind: Kind, budget: &mut usize) -> Result<Tensor, String> {
        let storage = self.read(&format!("data/{}", tensor.key))?;
        let count = tensor.count(storage.len() / kind.size(), budget)?;
        let mut data = Vec::with_capacity(count);
        tensor.each_index(|index| data.push(kind.widen(&storage[index * kind.size()..][..kind.size()])));
        Ok(Tensor { shape: tensor.shape.clone(), data })
    }
}

/// More than any tensor of a model has.
const MOST_DIMENSIONS: usize = 8;

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
            ("_rebuild_parameter", [tensor, ..]) => made(pickle, *tensor)?,
            other => other,
        };
        let ("_rebuild_tensor_v2", &[storage, offset, shape, strides, ..]) = parts else {
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
            Value::Sequence(items) if items.len() <= MOST_DIMENSIONS => {
                items.iter().map(|&item| size(item)).collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        Some(Self {
            kind: Kind::of_storage(class)?,
            key: key.to_string(),
            offset: size(offset)?,
            shape: sizes(shape)?,
            strides: sizes(strides)?,
        })
    }

    /// How many numbers the tensor has; all of them are in a storage of `available` numbers.
    fn count(&self, available: usize, budget: &mut usize) -> Result<usize, String> {
        if self.shape.len() != self.strides.len() {
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
        let last = self.shape.iter().zip(&self.strides).try_fold(self.offset, |last, (&side, &stride)| {
            last.checked_add(side.saturating_sub(1).checked_mul(stride)?)
        });
        if count > 0 && last.is_none_or(|last| last >= available) {
            return Err(outside());
        }
        Ok(count)
    }

    /// Calls `visit` with the place of each number in the storage, in row-major order.
    fn each_index(&self, mut visit: impl FnMut(usize)) {
        if self.shape.contains(&0) {
            return;
        }
        let mut position = vec![0; self.shape.len()];
        let mut index = self.offset;
        loop {
            visit(index);
            let mut axis = self.shape.len();
            // The last axis that does not end here advances; those after it begin again.
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                position[axis] += 1;
                index += self.strides[axis];
                if position[axis] < self.shape[axis] {
                    break;
                }
                index -= position[axis] * self.strides[axis];
                position[axis] = 0;
            }
        }
    }
}

/// The function of `torch._utils` that made a value, and its arguments.
fn made<'a>(pickle: &'a Pickle, id: Id) -> Option<(&'a str, &'a [Id])> {
    let Value::Made { callable: Global { module: "torch._utils", name }, arguments } = pickle.value(id)
    else {
        return None;
    };
    let Value::Sequence(arguments) = pickle.value(*arguments) else { return None };
    Some((name, arguments))
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
    fn of_storage(class: &Global) -> Option<Option<Self>> {
        match (class.module == "torch").then_some(class.name)? {
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
