//! Where the material lies that is shared between projects and may not be committed to this one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use zip::ZipArchive;

/// The file `name` of the shared material, or none (said once per test) where it is absent.
pub fn file(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("COMER_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: {} is absent (COMER_SHARED names its folder)", path.display());
        return None;
    }
    Some(path)
}

/// The text files of a zip whose names start with `prefix`, by what follows it.
pub fn zip_texts(path: &PathBuf, prefix: &str) -> BTreeMap<String, String> {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    let read = |name: String| {
        let mut text = String::new();
        archive.by_name(&name).unwrap().read_to_string(&mut text).unwrap();
        (name[prefix.len()..].to_string(), text)
    };
    names.into_iter().filter(|name| name.starts_with(prefix) && !name.ends_with('/')).map(read).collect()
}

/// The columns of a table of tab-separated values, by the first.
pub fn tsv(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, rest)| (name.into(), rest.into()))
        .collect()
}
