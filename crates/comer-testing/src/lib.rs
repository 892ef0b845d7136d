//! Helpers for tests and benchmarks: golden files, data outside of the repository, skipped tests, a browser, an HTTP client,
//! synthetic photographs, an allocator that counts.

pub mod allocation;
pub mod browser;
mod clock;
pub mod file_server;
mod golden;
pub mod http;
pub mod load;
pub mod photo_page;
mod random;
pub mod server;
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use clock::{cpu_time, thread_cpu_time, wall_time};
use comer::Image;
use comer::internal::dataset::Dataset;
pub use golden::{Golden, GruGolden, golden_model};
pub use random::{Random, noise};
pub use skip::skip;
use tempfile::TempDir;

/// The folder of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The InkML file of a sample of the repository.
pub fn sample(name: &str) -> Vec<u8> {
    let path = repository().join(format!("samples/{name}.inkml"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A data file that is not part of the repository (in `COMER_SHARED`, default `../shared`). Skips the test if it is missing.
pub fn shared(file: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("COMER_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from);
    let path = folder.join(file);
    if !path.exists() {
        skip(&format!("shared/{file} is missing (set COMER_SHARED to its folder)"));
        return None;
    }
    Some(path)
}

/// A temporary folder with CROHME's InkML files. Skips the test if they cannot be unpacked.
pub fn unpacked_ink() -> Option<TempDir> {
    let ink = shared("data/crohme-inkml.tar.xz")?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let unpacked = Command::new("tar").arg("-xJf").arg(&ink).arg("-C").arg(folder.path()).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        skip("tar and xz are needed to unpack the ink");
        return None;
    }
    Some(folder)
}

/// The pictures and captions of a split of CROHME. Skips the test if they are missing.
pub fn crohme(split: &str) -> Option<Dataset> {
    let set = Dataset::open(shared("data/crohme.zip")?, split).expect("CROHME can be read");
    assert!(set.problems.is_empty(), "{:?}", set.problems);
    Some(set)
}

/// One picture of CROHME by its name.
pub fn crohme_picture(zip: &Path, split: &str, name: &str) -> Image {
    let source = comer_eval::DataSource::open(zip).expect("CROHME's zip");
    let file = source.split(Some(split)).and_then(|split| {
        let image = split.image(name);
        image.map_err(|reason| comer_eval::Error::File { path: name.into(), reason })
    });
    let file = file.expect("CROHME's zip").unwrap_or_else(|| panic!("CROHME {split} has no {name}"));
    let grey = comer::internal::photo::decode(&file.unpack().expect("a file")).expect("a bitmap");
    Image::new(grey.width, grey.height, grey.levels).expect("a picture")
}
