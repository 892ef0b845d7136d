//! Sets of pictures with their formulas in the layout of CROHME: `<split>/caption.txt` and `<split>/img/<name>.bmp`,
//! in a folder or straight from a zip.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use zip::ZipArchive;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::photo;

/// Pictures and what they show.
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    /// In the order of the captions.
    pub samples: Vec<Sample>,
    /// What could not be read, and why: each costs one sample.
    pub problems: Vec<String>,
}

/// A picture and what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The picture's name without its ending.
    pub name: String,
    /// The formula's tokens with spaces between them.
    pub caption: String,
    /// White ink on black, as it was stored.
    pub picture: Image,
}

/// Endings of pictures, the usual one first.
const ENDINGS: [&str; 3] = ["bmp", "png", "jpg"];

impl Dataset {
    /// Reads a split of a data set: `path` is a zip, or a folder that holds the split (in `data/` or not), or the split.
    pub fn open(path: impl AsRef<Path>, split: &str) -> Result<Self> {
        let path = path.as_ref();
        let failed = |reason| Error::File { path: path.into(), reason };
        let folder = fs::metadata(path).map_err(failed)?.is_dir();
        let (captions, files) = if folder { from_folder(path, split)? } else { from_zip(path, split)? };
        let lines: Vec<&str> = captions.lines().filter(|line| !line.trim().is_empty()).collect();
        let samples: Vec<Result<Sample, String>> =
            lines.par_iter().map(|line| sample(line, &files)).collect();
        let mut set = Self::default();
        for sample in samples {
            match sample {
                Ok(sample) => set.samples.push(sample),
                Err(problem) => set.problems.push(problem),
            }
        }
        Ok(set)
    }

    /// The names of the splits that a zip or folder holds, sorted; a folder that is a split itself has its own name.
    pub fn splits(path: impl AsRef<Path>) -> Result<Vec<String>> {
        let path = path.as_ref();
        let failed = |reason| Error::File { path: path.into(), reason };
        let mut splits = Vec::new();
        if fs::metadata(path).map_err(failed)?.is_dir() {
            let own = fs::canonicalize(path).map_err(failed)?;
            let within = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
                fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
            };
            let mut places = within(path).map_err(failed)?;
            places.extend(within(&path.join("data")).unwrap_or_default());
            if path.join("caption.txt").is_file() {
                places = vec![own];
            }
            places.retain(|place| place.join("caption.txt").is_file());
            splits.extend(places.iter().filter_map(|place| Some(place.file_name()?.to_str()?.to_string())));
        } else {
            for name in open_zip(path)?.file_names().filter_map(std::result::Result::ok) {
                let split = name.strip_suffix("/caption.txt").and_then(|folder| folder.rsplit('/').next());
                splits.extend(split.map(str::to_string));
            }
        }
        splits.sort();
        splits.dedup();
        Ok(splits)
    }
}

/// A picture file's bytes by its name without the ending; loaded or still on disk.
enum Files {
    Loaded(HashMap<String, Vec<u8>>),
    Folder(PathBuf),
}

impl Files {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        match self {
            Files::Loaded(files) => files.get(name).cloned().ok_or_else(|| "has no picture".into()),
            Files::Folder(folder) => {
                let paths = ENDINGS.map(|ending| folder.join(format!("{name}.{ending}")));
                let path = paths.iter().find(|path| path.exists()).ok_or("has no picture")?;
                fs::read(path).map_err(|error| error.to_string())
            }
        }
    }
}

fn sample(line: &str, files: &Files) -> Result<Sample, String> {
    let (name, caption) =
        line.split_once('\t').ok_or_else(|| format!("caption {line:?} has no tab after its name"))?;
    let picture = files
        .read(name)
        .and_then(|bytes| photo::decode(&bytes).map_err(|error| error.to_string()))
        .and_then(|grey| Image::new(grey.width, grey.height, grey.levels).map_err(|error| error.to_string()))
        .map_err(|reason| format!("{name}: {reason}"))?;
    Ok(Sample { name: name.into(), caption: caption.trim().into(), picture })
}

fn from_folder(path: &Path, split: &str) -> Result<(String, Files)> {
    let places = [path.join(split), path.join("data").join(split), path.into()];
    let found = places.iter().find(|place| place.join("caption.txt").is_file());
    let place = found.ok_or_else(|| missing(path, split))?;
    let captions = place.join("caption.txt");
    let text = fs::read_to_string(&captions).map_err(|reason| Error::File { path: captions, reason })?;
    Ok((text, Files::Folder(place.join("img"))))
}

fn open_zip(path: &Path) -> Result<ZipArchive<BufReader<File>>> {
    let file = File::open(path).map_err(|reason| Error::File { path: path.into(), reason })?;
    let broken =
        |error| Error::DataSet { path: path.into(), reason: format!("expected a zip or a folder: {error}") };
    ZipArchive::new(BufReader::new(file)).map_err(broken)
}

fn from_zip(path: &Path, split: &str) -> Result<(String, Files)> {
    let broken = |reason: String| Error::DataSet { path: path.into(), reason };
    let mut archive = open_zip(path)?;
    let (mut captions, mut files) = (None, HashMap::new());
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let Ok(name) = entry.name().map(|name| name.into_owned()) else { continue };
        let folder = format!("{split}/");
        let places = name
            .match_indices(&folder)
            .filter(|(at, _)| name[..*at].is_empty() || name[..*at].ends_with('/'));
        let Some((at, _)) = places.last() else { continue };
        let rest = &name[at + folder.len()..];
        let picture = rest.strip_prefix("img/").and_then(|file| file.rsplit_once('.'));
        let mut bytes = Vec::new();
        if rest == "caption.txt" {
            entry.read_to_end(&mut bytes).map_err(|error| broken(format!("{name}: {error}")))?;
        } else if picture.is_some_and(|(_, ending)| ENDINGS.contains(&ending)) {
            // A picture that cannot be unpacked is missed later, by its name.
            let _ = entry.read_to_end(&mut bytes);
        }
        match picture {
            Some((stem, ending)) if ENDINGS.contains(&ending) => drop(files.insert(stem.to_string(), bytes)),
            _ if rest == "caption.txt" => captions = Some(bytes),
            _ => {}
        }
    }
    let captions = captions.ok_or_else(|| missing(path, split))?;
    let text =
        String::from_utf8(captions).map_err(|_| broken(format!("{split}/caption.txt is not UTF-8")))?;
    Ok((text, Files::Loaded(files)))
}

fn missing(path: &Path, split: &str) -> Error {
    let reason = format!("has no split {split:?}, expected {split}/caption.txt and {split}/img/");
    Error::DataSet { path: path.into(), reason }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn a_split_is_found_in_a_folder_that_has_it_in_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crohme.zip");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let picture = Image::new(20, 20, vec![9; 400]).unwrap().to_png().unwrap();
        for (name, bytes) in [("caption.txt", &b"a\tx\n"[..]), ("img/a.png", &picture)] {
            for folder in ["crohme2014/2014", "2016/2016", "other2016"] {
                zip.start_file(format!("{folder}/{name}"), stored).unwrap();
                zip.write_all(bytes).unwrap();
            }
        }
        zip.finish().unwrap();
        for split in ["2014", "2016"] {
            let set = Dataset::open(&path, split).unwrap();
            assert_eq!((set.samples.len(), set.problems.len()), (1, 0), "{split}");
        }
        assert!(Dataset::open(&path, "other").is_err());

        // Captions that cannot be unpacked whole are not taken for less of them.
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(4).position(|part| part == b"a\tx\n").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = Dataset::open(&path, "2014").map(|set| set.samples.len()).unwrap_err().to_string();
        assert!(error.contains("crohme2014/2014/caption.txt"), "{error}");
    }
}
