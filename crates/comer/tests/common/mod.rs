//! What several tests need: the golden files, and material that is not part of this repository.
#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use comer::Image;
use comer::internal::checkpoint::{Hints, Setting, StateDict};
use comer::internal::weights::Tensor;
use comer::internal::{ModelFile, Vocab};
use safetensors::{Dtype, SafeTensors};

/// A file of the material beside the repository (`COMER_SHARED`, else `../shared`), or `None` with a line that says so.
pub fn shared(file: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("COMER_SHARED").map_or(default, PathBuf::from).join(file);
    if !path.exists() {
        eprintln!("skipped: {} is not there (COMER_SHARED says where to look)", path.display());
        return None;
    }
    Some(path)
}

/// A folder with CROHME's ink, or `None` with a line that says why.
pub fn unpacked_ink() -> Option<tempfile::TempDir> {
    let ink = shared("data/crohme-inkml.tar.xz")?;
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("tar");
    let unpacked = command.arg("-xJf").arg(&ink).arg("-C").arg(folder.path()).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        eprintln!("skipped: {} cannot be unpacked with tar and xz here", ink.display());
        return None;
    }
    Some(folder)
}

/// A golden file's tensors, whole numbers and bytes widened to f32 too.
pub struct Golden {
    pub tensors: BTreeMap<String, Tensor>,
    pub metadata: std::collections::HashMap<String, String>,
}

impl Golden {
    pub fn open(path: impl AsRef<Path>) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let widen = |dtype, data: &[u8]| -> Vec<f32> {
            let fours = || data.as_chunks().0.iter();
            match dtype {
                Dtype::F32 => fours().map(|&four| f32::from_le_bytes(four)).collect(),
                Dtype::I32 => fours().map(|&four| i32::from_le_bytes(four) as f32).collect(),
                Dtype::U8 => data.iter().map(|&byte| f32::from(byte)).collect(),
                other => panic!("{other:?}"),
            }
        };
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            (name, Tensor { shape: view.shape().to_vec(), data: widen(view.dtype(), view.data()) })
        });
        Self { tensors: tensors.collect(), metadata: header.metadata().clone().unwrap_or_default() }
    }

    /// The golden file of a tiny random model: `bttr`, `self`, `cross` or `fusion`.
    pub fn tiny(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../comer/tests/data");
        Self::open(folder.join(format!("tiny-{name}.safetensors")))
    }

    pub fn get(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("the golden file lacks {name}"))
    }

    /// The model under `weights.`, or with the tensors under another prefix (`train.after3.`) in place of its own.
    pub fn model(&self, prefix: &str) -> ModelFile {
        let mut tensors = BTreeMap::new();
        for prefix in ["weights.", prefix] {
            let strip = |(name, tensor): (&String, &Tensor)| {
                Some((name.strip_prefix(prefix)?.to_string(), tensor.clone()))
            };
            tensors.extend(self.tensors.iter().filter_map(strip));
        }
        let config: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&self.metadata["config"]).unwrap();
        let setting = |value: serde_json::Value| match value {
            serde_json::Value::Bool(flag) => Setting::Flag(flag),
            value => Setting::Number(value.as_f64().unwrap()),
        };
        let settings = config.into_iter().map(|(name, value)| (name, setting(value))).collect();
        let mut model =
            StateDict::new(tensors, settings).into_model(Vocab::crohme(), &Hints::default()).unwrap();
        model.config.encoder_dropout = 0.0;
        model
    }
}

/// A bitmap of CROHME, straight from its zip.
pub fn crohme_picture(zip: &Path, split: &str, name: &str) -> Image {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(zip).unwrap()).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&format!("data/{split}/img/{name}.bmp")).unwrap().read_to_end(&mut bytes).unwrap();
    let grey = image::load_from_memory(&bytes).unwrap().into_luma8();
    Image::new(grey.width() as usize, grey.height() as usize, grey.into_raw()).unwrap()
}

/// The tiny random model of a golden file.
pub fn golden_model(name: &str) -> ModelFile {
    Golden::tiny(name).model("weights.")
}
