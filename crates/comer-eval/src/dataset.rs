//! Data sets in CROHME's layout: `<split>/caption.txt`, `<split>/img/<name>.bmp` and `<split>/symLg/<name>.lg`, in a
//! folder or a zip.
//!
//! Images are handed over as files, so that this crate needs no image decoder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::archive::Archive;
use crate::error::{Error, Result, shortened};
use crate::latex::{MOST_BYTES, check_length};
use crate::stored_file::StoredFile;

/// Extensions of images, the usual one first.
const IMAGE_EXTENSIONS: [&str; 4] = ["bmp", "png", "jpg", "jpeg"];

/// A folder or zip with one or more splits, a split itself, or a single caption file.
pub struct DataSource {
    archive: Archive,
    splits: Vec<Found>,
}

/// A folder inside of the source that holds captions or label graphs.
#[derive(Clone, Debug)]
struct Found {
    /// Empty for the source itself.
    folder: String,
    captions: Option<String>,
    graphs: Vec<String>,
}

/// The captions of a split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captions {
    /// Name and LaTeX, in the order of the file.
    pub rows: Vec<(String, String)>,
    /// Lines that could not be read, and why.
    pub problems: Vec<String>,
}

impl Captions {
    /// Reads `name<TAB>LaTeX` lines; a line without a tab is split at its first space.
    pub fn parse(text: &str) -> Self {
        let mut captions = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line = line.trim_end();
            match line.split_once('\t').or_else(|| line.split_once(' ')) {
                Some((name, _)) if name.trim().is_empty() => {
                    let found = shortened(line);
                    captions
                        .problems
                        .push(format!("line {}: {found:?} does not start with a name", number + 1));
                }
                Some((name, latex)) if check_length(latex).is_err() => {
                    let (name, length) = (shortened(name), latex.len());
                    captions.problems.push(format!(
                        "line {}: {name:?} has LaTeX of {length} bytes, expected at most {MOST_BYTES}",
                        number + 1
                    ));
                }
                Some((name, latex)) => captions.rows.push((name.trim().into(), latex.trim().into())),
                None => captions.rows.push((line.into(), String::new())),
            }
        }
        captions
    }
}

impl DataSource {
    /// Opens a folder, a zip or a caption file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let archive = Archive::open(path.as_ref())?;
        let mut splits: BTreeMap<String, Found> = BTreeMap::new();
        // Images are looked up by name: listing them would only take time.
        for name in archive.names(|folder| folder != "img")? {
            let (folder, file) = name.rsplit_once('/').unwrap_or(("", &name));
            let is_graph = file.to_ascii_lowercase().ends_with(".lg");
            let is_captions = file == "caption.txt" || archive.is_file();
            if !is_graph && !is_captions {
                continue;
            }
            let folder = match folder.rsplit_once('/').unwrap_or(("", folder)) {
                (parent, own) if is_graph && own.eq_ignore_ascii_case("symlg") => parent,
                _ => folder,
            };
            let found = || Found { folder: folder.into(), captions: None, graphs: Vec::new() };
            let split = splits.entry(folder.into()).or_insert_with(found);
            if is_captions {
                split.captions = Some(name);
            } else {
                split.graphs.push(name);
            }
        }
        if splits.is_empty() {
            return Err(Error::Nothing { path: path.as_ref().into(), expected: "caption.txt or .lg files" });
        }
        Ok(Self { archive, splits: splits.into_values().collect() })
    }

    /// Whether it can hold images, which a caption file cannot.
    pub fn can_hold_images(&self) -> bool {
        !self.archive.is_file()
    }

    /// The size of a zip in bytes; none for a folder.
    pub fn zip_size(&self) -> Option<u64> {
        self.archive.zip_size()
    }

    /// The names of the splits that have captions, sorted. A folder that is itself a split has its own name.
    pub fn splits(&self) -> Vec<String> {
        let with_captions = self.splits.iter().filter(|split| split.captions.is_some());
        let mut names: Vec<String> = with_captions.map(|split| self.split_of(split).name()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// One split by its name. A source that is itself a split is that split whatever the name, and `None` stands for the
    /// only one.
    pub fn split(&self, name: Option<&str>) -> Result<Split<'_>> {
        let path = || self.archive.path().to_path_buf();
        let folders = |splits: &[&Found]| {
            let names: Vec<&str> = splits.iter().map(|split| split.folder.as_str()).collect();
            names.join(", ")
        };
        let all: Vec<&Found> = self.splits.iter().collect();
        let wanted: Vec<&Found> = match name {
            None => all,
            Some(name) => {
                let named = |split: &&Found| split.folder.rsplit('/').next() == Some(name);
                let named: Vec<&Found> = all.into_iter().filter(named).collect();
                let usual = [name.to_string(), format!("data/{name}")];
                let usual = usual.iter().find_map(|usual| named.iter().find(|split| split.folder == *usual));
                let itself = self.splits.iter().find(|split| split.folder.is_empty());
                match (usual, itself) {
                    (Some(usual), _) => vec![*usual],
                    (None, Some(itself)) if named.is_empty() => vec![itself],
                    _ => named,
                }
            }
        };
        match &wanted[..] {
            [one] => Ok(self.split_of(one)),
            [] => Err(Error::UnknownSplit {
                path: path(),
                split: name.unwrap_or_default().into(),
                known: self.splits().join(", "),
            }),
            several => Err(Error::Sets { path: path(), sets: folders(several) }),
        }
    }

    fn split_of<'a>(&'a self, found: &'a Found) -> Split<'a> {
        Split { archive: &self.archive, found }
    }
}

/// One split of a [`DataSource`].
pub struct Split<'a> {
    archive: &'a Archive,
    found: &'a Found,
}

impl Split<'_> {
    /// The name of its folder.
    pub fn name(&self) -> String {
        if !self.found.folder.is_empty() {
            return self.found.folder.rsplit('/').next().unwrap_or_default().into();
        }
        let path = self.archive.path();
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        path.file_name().unwrap_or_default().to_string_lossy().into()
    }

    /// Its captions; no rows where it has only graphs.
    pub fn captions(&self) -> Result<Captions> {
        let Some(name) = &self.found.captions else { return Ok(Captions::default()) };
        let text = self.archive.read_table(name).map_err(|reason| {
            // The name inside of a zip is part of what went wrong.
            let path = self.archive.path();
            Error::File { path: if self.archive.is_file() { path.into() } else { path.join(name) }, reason }
        })?;
        Ok(Captions::parse(&text))
    }

    /// Its label graph files: the formula's name, the file, and its text or why there is none.
    pub fn graphs(&self) -> impl Iterator<Item = (&str, &str, Result<String, String>)> {
        self.found.graphs.iter().map(|file| {
            let name = file.rsplit('/').next().unwrap_or(file);
            let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            (name, file.as_str(), self.archive.read_text(file).map_err(|error| error.to_string()))
        })
    }

    /// The image file of a formula as it is stored; none if it has no image.
    pub fn image(&self, name: &str) -> std::io::Result<Option<StoredFile>> {
        let folder = &self.found.folder;
        let separator = if folder.is_empty() { "" } else { "/" };
        for extension in IMAGE_EXTENSIONS {
            let found = self.archive.read_image(&format!("{folder}{separator}img/{name}.{extension}"))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn write_zip(path: &Path, files: &[(String, &[u8])]) {
        let mut zip = ZipWriter::new(File::create(path).unwrap());
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in files {
            zip.start_file(name, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
    }

    #[test]
    fn captions_are_separated_by_a_tab_or_by_spaces() {
        let captions =
            Captions::parse("a\tx ^ { 2 }\r\nb  y + 1\n\n6_em_1.bmp \\frac { 1 } { 2 }\nc\n \tz\n");
        let expected = [("a", "x ^ { 2 }"), ("b", "y + 1"), ("6_em_1.bmp", r"\frac { 1 } { 2 }"), ("c", "")];
        let expected: Vec<_> = expected.map(|(name, latex)| (name.to_string(), latex.to_string())).into();
        assert_eq!(captions.rows, expected);
        assert_eq!(captions.problems.len(), 1, "{:?}", captions.problems);
        assert!(captions.problems[0].starts_with("line 6"));
    }

    #[test]
    fn splits_of_a_zip_are_found_by_their_folder_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crohme.zip");
        let mut files: Vec<(String, &[u8])> = Vec::new();
        for split in ["crohme2014/2014", "2016/2016", "other2016"] {
            files.push((format!("{split}/caption.txt"), b"a\tx\n"));
            files.push((format!("{split}/img/a.png"), b"the image"));
        }
        write_zip(&path, &files);
        let source = DataSource::open(&path).unwrap();
        assert_eq!(source.splits(), ["2014", "2016", "other2016"]);
        for name in ["2014", "2016"] {
            let split = source.split(Some(name)).unwrap();
            assert_eq!(split.captions().unwrap().rows, [("a".to_string(), "x".to_string())]);
            let image = split.image("a").unwrap().unwrap();
            assert_eq!(*image.unpack().unwrap(), *b"the image");
            assert!(split.image("b").unwrap().is_none());
        }
        let unknown = source.split(Some("other")).err().unwrap().to_string();
        assert!(unknown.contains("2014, 2016, other2016"), "{unknown}");

        // A damaged caption file is an error, not a shorter list.
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(4).position(|part| part == b"a\tx\n").unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let source = DataSource::open(&path).unwrap();
        let error = source.split(Some("2014")).unwrap().captions().unwrap_err().to_string();
        assert!(error.contains("crohme2014/2014/caption.txt"), "{error}");
    }

    #[test]
    fn images_of_a_zip_stay_deflated_and_damaged_ones_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.zip");
        let image: Vec<u8> = (0..100_000).map(|at| if at % 1000 < 9 { at as u8 } else { 0 }).collect();
        for (method, most) in
            [(zip::CompressionMethod::Deflated, 10_000), (zip::CompressionMethod::Stored, 100_000)]
        {
            let mut zip = ZipWriter::new(File::create(&path).unwrap());
            let options = SimpleFileOptions::default().compression_method(method);
            for (name, bytes) in [("caption.txt", &b"a\tx\n"[..]), ("img/a.bmp", &image)] {
                zip.start_file(name, options).unwrap();
                zip.write_all(bytes).unwrap();
            }
            zip.finish().unwrap();
            let read = || DataSource::open(&path).unwrap().split(None).unwrap().image("a").unwrap().unwrap();
            let stored = read();
            assert!(stored.size() == 100_000 && stored.stored_size() <= most, "{method}");
            assert!(*stored.unpack().unwrap() == *image, "{method}");
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            assert!(read().unpack().is_err(), "{method}");
        }
    }

    /// A small zip of an image that unpacks to 200 MB, and of graphs that together do.
    #[test]
    fn a_zip_that_unpacks_to_far_more_than_its_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bomb.zip");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        let options = SimpleFileOptions::default();
        zip.start_file("caption.txt", options).unwrap();
        zip.write_all(b"a\tx\n").unwrap();
        zip.start_file("img/huge.bmp", options).unwrap();
        (0..200).for_each(|_| zip.write_all(&[0; 1 << 20]).unwrap());
        for number in 0..200 {
            zip.start_file(format!("symLg/{number}.lg"), options).unwrap();
            zip.write_all(&[b' '; 1 << 20]).unwrap();
        }
        zip.finish().unwrap();
        let source = DataSource::open(&path).unwrap();
        assert!(source.zip_size().unwrap() < 1 << 20);
        let split = source.split(None).unwrap();
        let error = split.image("huge").unwrap_err().to_string();
        assert_eq!(error, "larger than the limit of 16777216 bytes");
        let (read, refused): (Vec<_>, Vec<_>) = split.graphs().partition(|graph| graph.2.is_ok());
        assert!(read.len() < 32, "{} MiB were unpacked", read.len());
        let error = refused[0].2.as_ref().unwrap_err();
        assert_eq!(error, "the texts of the zip unpack to more than 16 times its size");
        assert!(split.image("missing").unwrap().is_none());
    }

    #[test]
    fn captions_name_images_of_the_set_only() {
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("set");
        std::fs::create_dir_all(set.join("img")).unwrap();
        std::fs::write(set.join("caption.txt"), "a\tx\n").unwrap();
        std::fs::write(set.join("img/a.png"), "inside").unwrap();
        std::fs::write(folder.path().join("b.png"), "outside").unwrap();
        let source = DataSource::open(&set).unwrap();
        let split = source.split(None).unwrap();
        assert!(split.image("a").unwrap().is_some());
        assert!(split.image("../../b").unwrap().is_none());
        let absolute = folder.path().join("b").display().to_string();
        assert!(split.image(&absolute).unwrap().is_none());
        // One file has one name, or captions could make many images of it.
        assert!(split.image("./a").unwrap().is_none());
    }

    #[test]
    fn a_folder_may_be_the_split_or_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        for split in ["data/2014", "data/2016", "x/2016"] {
            std::fs::create_dir_all(folder.path().join(split).join("img")).unwrap();
            std::fs::write(folder.path().join(split).join("caption.txt"), split).unwrap();
            std::fs::write(folder.path().join(split).join("img/a.jpg"), "image").unwrap();
        }
        let rows = |path: &Path, split| {
            let source = DataSource::open(path).unwrap();
            let captions = source.split(split).map(|split| split.captions().unwrap().rows[0].0.clone());
            captions.map_err(|error| error.to_string())
        };
        assert_eq!(rows(folder.path(), Some("2014")).unwrap(), "data/2014");
        assert_eq!(rows(folder.path(), Some("2016")).unwrap(), "data/2016");
        let own = folder.path().join("x/2016");
        assert_eq!(rows(&own, Some("2014")).unwrap(), "x/2016");
        assert_eq!(rows(&own, None).unwrap(), "x/2016");
        assert_eq!(DataSource::open(&own).unwrap().splits(), ["2016"]);
        assert!(rows(folder.path(), None).unwrap_err().contains("data/2014, data/2016, x/2016"));
        let source = DataSource::open(&own).unwrap();
        assert!(source.split(None).unwrap().image("a").unwrap().is_some());
    }
}
