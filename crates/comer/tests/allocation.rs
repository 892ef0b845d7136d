//! Hostile files cost little memory: the readers' peak allocation is counted.

use std::io::{Cursor, Write};

use comer::Ink;
use comer::internal::checkpoint::StateDict;
use comer::internal::dataset::Dataset;
use comer::internal::language_model::{LanguageModel, Ngrams};
use comer::internal::{ModelFile, Precision, photo};
use comer_eval::files::{read_predictions, read_truths};
use comer_eval::{Dialect, LabelGraph};
use comer_testing::allocation::{Counting, ROOM, assert_bounded, peak};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, so that no other thread allocates in between.
#[test]
fn hostile_files_cost_no_more_than_their_size_class() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let tensors: Vec<String> = (0..2000)
        .map(|i| {
            format!(r#""{i}":{{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#)
        })
        .collect();
    for bytes in [
        u64::MAX.to_le_bytes().to_vec(),
        (90u64 << 20).to_le_bytes().to_vec(),
        header(&format!("{{{}}}", tensors.join(","))),
        header(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}}"#),
    ] {
        let used = peak(|| drop(ModelFile::from_bytes("hostile", &bytes).unwrap_err()));
        assert!(used < 16 * bytes.len() + 64_000, "{used} bytes for a model file of {}", bytes.len());
        let used = peak(|| drop(StateDict::from_bytes(&bytes).unwrap_err()));
        assert!(used < 16 * bytes.len() + 64_000, "{used} bytes for a checkpoint of {}", bytes.len());
    }

    for (name, pickle) in hostile_pickles() {
        let bytes = zip_of(&[("a/data.pkl", &pickle)]);
        assert_bounded(name, bytes.len(), || drop(StateDict::from_bytes(&bytes)));
    }
    check_shared_storages();
    check_data_set();
    check_captions();
    check_ink();
    check_model_headers();
    check_ngrams();
    check_graphs_and_predictions();
    check_pictures();
}

/// The same text as often as it fits into a list of `size` bytes.
fn list(item: &str, size: usize) -> String {
    format!("[{}{item}]", format!("{item},").repeat(size / (item.len() + 1)))
}

fn check_ink() {
    let points = |item| format!("[{}]", list(item, 4 << 20));
    for text in [
        list(r#"{"":0}"#, 2 << 20),
        list(r#"{"x":1}"#, 4 << 20),
        list(r#"{"x":[1]}"#, 4 << 20),
        list("[[]]", 4 << 20),
        list("\"\"", 3 << 20),
        points("[1]"),
        points("{}"),
        points("[]"),
        format!(r#"{{"latex":"{}"}}"#, "a".repeat(4 << 20)),
        format!(r#"{{"{}":0}}"#, "a".repeat(4 << 20)),
    ] {
        assert_bounded(&format!("strokes like {text:.20}"), text.len(), || {
            Ink::from_json(text.as_bytes()).unwrap_err();
        });
    }
    for item in [
        "<a/>",
        "<trace>1 1</trace>",
        "<trace/>",
        "<annotation/>",
        "<traceGroup/>",
        "<trace id='a'>1 1</trace>",
    ] {
        let text = format!("<ink>{}</ink>", item.repeat((4 << 20) / item.len()));
        assert_bounded(item, text.len(), || drop(Ink::from_inkml(text.as_bytes())));
    }
    let text = format!("<ink><trace>{}1 1</trace></ink>", "1 1,".repeat(1 << 20));
    assert_bounded("a trace", text.len(), || drop(Ink::from_inkml(text.as_bytes())));
}

/// Headers of many entries, and metadata that is a tree of many small objects.
fn check_model_headers() {
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let entries = |count: usize| {
        let entry = |i: usize| format!(r#""{i:x}":{{"dtype":"U8","shape":[],"data_offsets":[0,0]}}"#);
        header(&format!("{{{}}}", (0..count).map(entry).collect::<Vec<_>>().join(",")))
    };
    let texts = |count: usize| {
        let entry = |i: usize| format!(r#""{i:x}":"""#);
        let entries = (0..count).map(entry).collect::<Vec<_>>().join(",");
        header(&format!(r#"{{"__metadata__":{{{entries}}}}}"#))
    };
    let tree = list(r#"{"":0}"#, 2 << 20);
    let of_tree = |text: &str| {
        let mut model = comer_testing::golden_model("fusion");
        model.provenance.insert("a".into(), serde_json::from_str(text).unwrap());
        model.to_bytes(Precision::F32)
    };
    assert!(of_tree(&tree).unwrap_err().to_string().contains("its provenance has"));
    let small = of_tree(&list(r#"{"":0}"#, 500_000)).unwrap();
    assert_bounded("a model with a tree", small.len(), || drop(ModelFile::from_bytes("a", &small).unwrap()));
    let escaped = serde_json::to_string(&format!(r#"{{"a":{tree}}}"#)).unwrap();
    let keys = ["format", "config", "vocabulary", "provenance"];
    let parts = ["\"comer model 1\"", "\"{}\"", "\"[\\\"x\\\"]\"", &escaped];
    let metadata: Vec<String> = keys.iter().zip(parts).map(|(key, part)| format!("{key:?}:{part}")).collect();
    let of_tree = header(&format!(r#"{{"__metadata__":{{{}}}}}"#, metadata.join(",")));
    for (name, bytes) in [
        ("many tensors", entries(80_000)),
        ("more tensors", entries(450_000)),
        ("many texts", texts(350_000)),
        ("a tree", of_tree),
    ] {
        assert_bounded(name, bytes.len(), || drop(ModelFile::from_bytes("a", &bytes).unwrap_err()));
        assert_bounded(name, bytes.len(), || drop(LanguageModel::from_bytes("a", &bytes).unwrap_err()));
        assert_bounded(name, bytes.len(), || drop(StateDict::from_bytes(&bytes)));
    }
    let checkpoint = header(&format!(r#"{{"__metadata__":{{"config":{escaped}}}}}"#));
    assert_bounded("a config", checkpoint.len(), || drop(StateDict::from_bytes(&checkpoint)));
}

/// As many n-grams as fit, in two bytes each, and fewer than a file says.
fn check_ngrams() {
    let head = |order: u8, count: u32| {
        let ends = [-1f32, -0.5].map(f32::to_le_bytes).concat();
        [&[order][..], &ends, &count.to_le_bytes()].concat()
    };
    let nodes = 5_000_000;
    let bytes = [head(1, nodes), vec![1; 2 * nodes as usize]].concat();
    let used = peak(|| drop(Ngrams::from_bytes(100, 1, &bytes).unwrap_err()));
    assert!(used > 3 * bytes.len() && used < 8 * bytes.len(), "{used} bytes for n-grams of {}", bytes.len());
    let bytes = [head(1, u32::MAX), vec![1; 1000]].concat();
    let used = peak(|| assert_eq!(Ngrams::from_bytes(100, 1, &bytes).unwrap_err(), "it ends too early"));
    assert!(used < 100_000, "{used} bytes for n-grams of {}", bytes.len());
}

/// Small zips of label graphs and predictions that unpack to long paths, lines, commas and formulas.
fn check_graphs_and_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let deflated = |name: &str, text: &str, count: usize| {
        let path = folder.path().join("a.zip");
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for number in 0..count {
            zip.start_file(format!("{number}{name}"), zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        (path, size)
    };
    let lines = |line: &dyn Fn(usize) -> String| (0..20_000).map(line).collect::<String>();
    let graphs = [
        (format!("O,1,x,1,O{}", "R".repeat(1_000_000)), 1),
        (format!("O,1,x,1,O{}", "R".repeat(9_000)), 400),
        (",".repeat(15 << 20), 1),
        (",".repeat(1_000_000), 10),
        (lines(&|i| format!("O,{i},{i},1,O\n")), 40),
        (lines(&|i| format!("O,{i},x,1,OR{}\n", "R".repeat(i % 30))), 40),
        (format!("O,1,x,1,O\nO,2,x,1,OR\n{}", lines(&|i| format!("R,1,2,{i},1\n"))), 40),
    ];
    for (text, count) in graphs {
        let (path, size) = deflated(".lg", &text, count);
        assert_bounded(&format!("graphs like {text:.20}"), size, || drop(read_truths(&path, None)));
    }
    for (text, count) in
        [("\n".repeat(15 << 20), 1), ("\n".repeat(1_000_000), 10), ("x ".repeat(500_000), 15)]
    {
        let (path, size) = deflated(".txt", &text, count);
        assert_bounded(&format!("predictions like {text:.5}"), size, || drop(read_predictions(&path)));
    }
    for formula in ["x ".repeat(32_000), "x ".repeat(500_000), "x _ { ".repeat(9_000), "{ } ".repeat(16_000)]
    {
        assert_bounded("a formula", formula.len(), || {
            drop(LabelGraph::from_latex(&formula, Dialect::Official))
        });
    }
    let table = folder.path().join("predictions.tsv");
    for line in ["a\n", "a\t\n", "a\tx\n", "a b\n", "\n"] {
        let text = line.repeat(100_000);
        std::fs::write(&table, &text).unwrap();
        assert_bounded(line, text.len(), || drop(read_predictions(&table)));
    }
}

/// Decoded pixels take at most 256 MiB, and their grey levels a few bytes for each.
fn check_pictures() {
    let encoded = |picture: image::DynamicImage| {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    let (width, height) = (3_000u32, 2_750);
    for (name, picture, most) in [
        ("RGBA", image::DynamicImage::new_rgba8(width, height), 6),
        ("RGB", image::DynamicImage::new_rgb8(width, height), 5),
        ("grey with alpha", image::DynamicImage::new_luma_a8(width, height), 6),
        ("deep grey", image::DynamicImage::new_luma16(width, height), 5),
    ] {
        let bytes = encoded(picture);
        let used = peak(|| drop(photo::decode(&bytes).unwrap()));
        let pixels = (width * height) as usize;
        assert!(used < most * pixels + (2 << 20), "{used} bytes for {pixels} pixels of {name}");
    }
}

fn hostile_pickles() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &[u8]| [b"X", &(text.len() as u32).to_le_bytes()[..], text].concat();
    let long = vec![b'a'; 1 << 20];
    // A module's name of a megabyte, and calls of what it names.
    let name = [b"ctorch.", &long[..], b"\nf\nq\x00)q\x010"].concat();
    let calls = b"h\x00h\x01R".repeat(3000);
    // The same with names from the stack, which are built anew for each value.
    let stacked = [&text(&[b"torch.", &long[..]].concat()), &b"q\x00"[..], &text(b"f"), b"q\x01"].concat();
    vec![
        ("calls of a long name", [name, calls, b".".to_vec()].concat()),
        ("long names from the stack", [stacked, b"h\x00h\x01\x93".repeat(3000), b".".to_vec()].concat()),
        ("a flood of values", vec![b'N'; 3 << 20]),
        ("a flood of copies", [b"]q\x00(N".to_vec(), vec![b'2'; 200_000], b"e.".to_vec()].concat()),
        (
            "a list that grows",
            [b"]".to_vec(), [b"(N".to_vec(), vec![b'2'; 5_000], b"e".to_vec()].concat().repeat(200)].concat(),
        ),
        ("a memo that grows", [b"N".to_vec(), vec![0x94; 3 << 20]].concat()),
        ("a flood of lists", b"]".repeat(3 << 20)),
        ("a flood of dictionaries", b"}NNs".repeat(1 << 20)),
    ]
}

/// Tensors that alternate between two storages, each as large as half of the file: none of them is copied for each tensor.
fn check_shared_storages() {
    let storage = vec![0u8; 4 << 20];
    let mut pickle = b"}".to_vec();
    for number in 0..2000u32 {
        let key = b'0' + (number % 2) as u8;
        pickle.extend([b"X\x04\0\0\0".as_slice(), format!("{number:04}").as_bytes()].concat());
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n");
        pickle.extend(
            [b"X\x01\0\0\0".as_slice(), &[key], b"X\x03\0\0\0cpuK\x02tQK\x00K\x02\x85K\x01\x85\x89}tRs"]
                .concat(),
        );
    }
    pickle.push(b'.');
    let bytes = zip_of(&[("a/data.pkl", &pickle), ("a/data/0", &storage), ("a/data/1", &storage)]);
    let start = comer_testing::thread_cpu_time();
    let used = peak(|| drop(StateDict::from_bytes(&bytes).unwrap()));
    assert!(used < 2 * bytes.len(), "{used} bytes for a checkpoint of {}", bytes.len());
    // Reading a storage for each tensor would copy and hash 8 GB.
    let seconds = (comer_testing::thread_cpu_time() - start).as_secs_f64();
    assert!(seconds < 1.0, "{seconds} CPU seconds for 2000 small tensors");
}

/// Zips of bitmaps that unpack to a thousand times their size, and of one that their directory lists a thousand times.
fn check_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let open = || pool.install(|| Dataset::open(&path, "any")).unwrap();
    let flat = |side: u32| [bitmap_head(side, side), vec![0; (side * side) as usize]].concat();
    let noise = |at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8;
    let noisy = [bitmap_head(600, 600), (0..360_000).map(noise).collect()].concat();
    for (name, image, count, is_listed, expected) in [
        ("large", flat(2000), 64, false, 64),
        ("huge", flat(3900), 16, false, 0),
        ("small", flat(500), 1000, false, 1000),
        ("listed", noisy, 1000, true, 1),
    ] {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        let stored = options.compression_method(zip::CompressionMethod::Stored);
        let options = if is_listed { stored } else { options };
        zip.start_file("caption.txt", options).unwrap();
        zip.write_all((0..count).map(|at| format!("{at}\tx\n")).collect::<String>().as_bytes()).unwrap();
        for at in 0..count {
            if is_listed && at > 0 {
                zip.shallow_copy_file("img/0.bmp", &format!("img/{at}.bmp")).unwrap();
            } else {
                zip.start_file(format!("img/{at}.bmp"), options).unwrap();
                zip.write_all(&image).unwrap();
            }
        }
        zip.finish().unwrap();
        drop(image);
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        let mut set = Dataset::default();
        assert_bounded(&format!("a data set of {name} images"), size, || set = open());
        assert_eq!((set.samples.len(), set.problems.len()), (expected, count - expected), "{name}");
        assert!(set.samples.iter().all(|sample| sample.image.decode().is_ok()), "{name}");
    }
}

/// Small zips whose captions unpack to as many or as long lines as they may, and to more.
fn check_captions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("captions.zip");
    let long = format!("{}\n", "a".repeat(199));
    for (lines, count, reason) in [
        ("a\n", 31_000_000, "the texts of the zip unpack to more than"),
        ("a\n", 8_000_000, "has 8000000 lines, expected at most 10"),
        ("a\n", 100_000, ""),
        (&long, 80_000, ""),
    ] {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file("caption.txt", zip::write::SimpleFileOptions::default()).unwrap();
        let lines = lines.repeat(1000);
        (0..count / 1000).for_each(|_| zip.write_all(lines.as_bytes()).unwrap());
        zip.finish().unwrap();
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        let mut message = String::new();
        let used = peak(|| {
            if let Err(error) = Dataset::open(&path, "any") {
                message = error.to_string();
            }
        });
        assert!(used < 16 * size + ROOM, "{used} bytes for {count} lines in a zip of {size}");
        assert!(
            message.contains(reason) && message.is_empty() == reason.is_empty(),
            "{count} lines: {message}"
        );
    }
}

/// The head of a bitmap of 8 bits per pixel.
fn bitmap_head(width: u32, height: u32) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255).flat_map(|level| [level, level, level, 0]).collect();
    let start = 54 + palette.len() as u32;
    let mut head = b"BM".to_vec();
    for number in
        [start + width * height, 0, start, 40, width, height, 1 | 8 << 16, 0, width * height, 0, 0, 256, 0]
    {
        head.extend(number.to_le_bytes());
    }
    [head, palette].concat()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files {
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}
