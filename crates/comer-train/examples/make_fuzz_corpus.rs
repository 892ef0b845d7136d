//! Writes `fuzz/corpus`, from which every fuzz target starts: `cargo run --release -p comer-train --example make_fuzz_corpus`. All
//! of it is our own.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use comer::internal::language_model::{LanguageModel, Ngrams, Recurrence};
use comer::internal::weights::{Tensor, Weights, tensor_specs};
use comer::internal::{Coverage, ModelConfig, ModelFile, Precision, Vocab};
use comer::{Image, Ink};
use comer_train::checkpoint::Checkpoint;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A zip of stored files.
fn zip_of(files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in files {
        zip.start_file(*name, options)?;
        zip.write_all(content)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Several parts as one input, each with two bytes of length before it.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.iter().flat_map(|part| [&(part.len() as u16).to_le_bytes()[..], part].concat()).collect()
}

fn write(target: &str, name: &str, bytes: impl AsRef<[u8]>) -> Result {
    let folder = repository().join("fuzz/corpus").join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}

/// A model of the smallest size.
fn model(coverage: Coverage) -> Result<ModelFile> {
    let config = ModelConfig {
        d_model: 4,
        growth_rate: 1,
        layers_per_block: 1,
        heads: 2,
        decoder_layers: 1,
        feed_forward: 2,
        coverage_channels: 1,
        coverage,
        ..ModelConfig::default()
    };
    let vocab = Vocab::new(["x", "\\frac"])?;
    let weights = tensor_specs(&config, vocab.len()).into_iter().map(|spec| {
        let data = (0..spec.shape.iter().product::<usize>()).map(|i| i as f32 / 8.0).collect();
        (spec.name, Tensor { shape: spec.shape, data })
    });
    Ok(ModelFile {
        weights: weights.collect(),
        config,
        vocab,
        provenance: Default::default(),
        language_model: None,
    })
}

fn language_model(vocab: &Vocab) -> Result<LanguageModel> {
    let ngrams = |start: u16, end: u16| {
        let mut list = [([start], 1.0), ([end], 0.5), ([3], 0.3), ([4], 0.2)];
        list.sort_by_key(|(tokens, _)| *tokens);
        Ngrams::new(5, start, list.iter().map(|(tokens, probability)| (&tokens[..], *probability)))
    };
    Ok(LanguageModel {
        vocab: vocab.clone(),
        forward: ngrams(1, 2)?,
        backward: ngrams(2, 1)?,
        recurrence: Recurrence::of_letters(0.5, 2.0, vocab)?,
        weight: 0.25,
        provenance: Default::default(),
    })
}

/// The pickle of a state dictionary with two tensors of two numbers.
fn pickle() -> Vec<u8> {
    let mut pickle = b"\x80\x02}q\x00(X\x0a\0\0\0state_dict".to_vec();
    pickle.extend(b"ccollections\nOrderedDict\n)Rq\x01(");
    for (name, key) in [(b'v', b'0'), (b'w', b'1')] {
        pickle.extend([b"X\x01\0\0\0".as_slice(), &[name]].concat());
        pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n");
        pickle.extend(
            [b"X\x01\0\0\0".as_slice(), &[key], b"X\x03\0\0\0cpuK\x02tQK\x00K\x02\x85K\x01\x85\x89}tR"]
                .concat(),
        );
    }
    pickle.extend(b"uX\x10\0\0\0hyper_parameters}(X\x05\0\0\0nheadK\x02X\x07\0\0\0dropoutG\x3f\xd3\x33\x33\x33\x33\x33\x33uu.");
    pickle
}

/// A bitmap of 2 by 2 pixels of 24 bits.
fn bitmap() -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for number in [70u32, 0, 54, 40, 2, 2, 1 | 24 << 16, 0, 16, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0, 0, 0, 255, 255, 255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 0]);
    bytes
}

/// Requests to the server, as in HTTP.
fn write_requests(png: &[u8]) -> Result {
    let strokes = r#"{"strokes": [{"x": [0, 10, 20], "y": [0, 10, 20]}, [[20, 0], [10, 10], [0, 20]]]}"#;
    let ink = "<ink><trace>0 0, 10 10, 20 20</trace><trace>20 0, 10 10, 0 20</trace></ink>";
    let part = b"--b\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a\"\r\ncontent-type: image/png\r\n\r\n";
    let form = [part, png, b"\r\n--b--\r\n"].concat();
    let url = format!("data:image/png;base64,{}", comer_eval::html::base64(png));
    let embedded = format!(r#"{{"src": "{url}"}}"#);
    let batch = format!(r#"{{"items": ["{url}", {{"src": "{url}"}}, {strokes}, [[[0, 0], [9, 9]]]]}}"#);
    let query = "nbest=3&beam=5&alignment=1&mathml=1&image=1&raw=0&formulas=all&constraints={%22prefix%22:[%22x%22],%22tokens%22:{%221%22:%22x%22}}";
    let (multipart, json) = ("multipart/form-data; boundary=b", "application/json");
    let requests: [(&str, String, &str, &[u8]); 12] = [
        ("form", "POST /api/recognize".into(), multipart, &form),
        ("strokes", "POST /api/recognize?greedy=1".into(), json, strokes.as_bytes()),
        ("inkml", "POST /api/recognize?greedy=1".into(), "application/inkml+xml", ink.as_bytes()),
        ("png", "POST /api/recognize?raw=1&greedy=1".into(), "image/png", png),
        ("embedded", "POST /api/recognize?formulas=auto".into(), json, embedded.as_bytes()),
        ("query", format!("POST /api/recognize?{query}"), json, strokes.as_bytes()),
        ("explain", "POST /api/recognize?explain=1&greedy=1".into(), json, strokes.as_bytes()),
        ("batch", "POST /api/recognize/batch?greedy=1".into(), json, batch.as_bytes()),
        ("batch-form", "POST /api/recognize/batch?image=1".into(), multipart, &form),
        ("mathml", "POST /api/mathml".into(), "text/plain", br"\sqrt[3]{x_1^2} + \text{if} \R"),
        ("origin", "OPTIONS /api/model".into(), "a/b\r\norigin: http://localhost\r\nhost: [::1]:8765", b""),
        ("page", "GET /".into(), "", b""),
    ];
    requests.iter().try_for_each(|(name, target, kind, body)| {
        let head = format!("{target}\r\ncontent-type: {kind}\r\n\r\n");
        write("requests", name, [head.as_bytes(), body].concat())
    })
}

fn main() -> Result {
    let captions =
        "a\tx ^ { 2 }\nb \\frac { 1 } { \\sqrt { y } }\nc\t\\sum _ { i = 1 } ^ { n } \\left( a \\right)\n";
    let graph = "# comment\nO, x_1, x, 1.0, O\nO, t_1, 2, 1.0, OSup\nEO, x_1, t_1, Sup, 1.0\n";
    for (name, coverage) in [("fusion", Coverage::Fusion), ("none", Coverage::None)] {
        let mut model = model(coverage)?;
        write("model_file", name, model.to_bytes(Precision::F16)?)?;
        model.language_model = Some(language_model(&model.vocab)?);
        write("model_file", &format!("{name}-language-model"), model.to_bytes(Precision::F32)?)?;
    }
    write("language_model", "small", language_model(&Vocab::new(["x", "\\frac"])?)?.to_bytes()?)?;
    let (pickle, two) = (pickle(), [0, 0, 128, 63, 0, 0, 0, 64]);
    write("checkpoint", "pickle", &pickle)?;
    write("checkpoint", "zip", zip_of(&[("a/data.pkl", &pickle), ("a/data/0", &two), ("a/data/1", &two)])?)?;
    write("checkpoint_zip", "two-tensors", join(&[&pickle, &two, &two, b"little"]))?;

    let weights =
        Weights::from([("a.weight".to_string(), Tensor { shape: vec![1, 2], data: vec![1.0, 2.0] })]);
    let mut state =
        Checkpoint { weights: weights.clone(), vocabulary: Some(vec!["x".into()]), ..Default::default() };
    state.optimizer.first = weights;
    state.progress.checksums = Some([1, 2]);
    write("training_checkpoint", "small", "")?;
    state.save(&repository().join("fuzz/corpus/training_checkpoint/small"))?;

    for (name, text) in [("captions", captions), ("graph", graph), ("table", "a\tx\nb\ty + 1\nc\n")] {
        write("tables", name, text)?;
        write("captions", name, text)?;
    }
    let formulas = BTreeMap::from([
        ("fraction", r"\frac { 1 } { x _ { 2 } ^ { n } }"),
        ("root", r"\sqrt [ 3 ] { x } + \left( \hat { a } \right)"),
        ("sum", r"\sum \limits _ { i } ^ { n } \mathrm { d } x \leq \infty"),
        ("array", r"\begin{matrix} a & b \\ c & d \end{matrix}"),
    ]);
    formulas.iter().try_for_each(|(name, latex)| write("latex", name, latex))?;
    for name in ["fraction", "power"] {
        let text = fs::read_to_string(repository().join(format!("samples/{name}.inkml")))?;
        let ink = Ink::from_inkml(text.as_bytes())?;
        write("inkml", name, &text)?;
        // A quarter of the picture's size, so that many can be tried.
        write("picture", &format!("{name}.png"), ink.draw()?.scale(0.5)?.to_png()?)?;
        let strokes: Vec<Vec<[f64; 2]>> =
            ink.strokes().iter().map(|stroke| stroke.points.iter().map(|p| [p.x, p.y]).collect()).collect();
        write("strokes", name, format!("{strokes:?}"))?;
    }
    write(
        "inkml",
        "grouped",
        "<?xml version=\"1.0\"?><ink xmlns=\"http://www.w3.org/2003/InkML\"><annotation type=\"truth\">$x$</annotation><trace id=\"0\">1 2, 3 4, '1'2</trace><traceGroup><traceGroup><annotation type=\"truth\">x</annotation><traceView traceDataRef=\"0\"/></traceGroup></traceGroup></ink>",
    )?;
    write("strokes", "object", "{\"strokes\": [{\"x\": [1, 2], \"y\": [3, 4]}, [[5, 6], [7, 8]]]}")?;
    write(
        "stroke_set",
        "record",
        "{\"id\":\"e1\",\"tokens\":\"x ^ { 2 }\",\"strokes\":[[0,40,30,60],[30,0,-30,60],[80,10,20,-10]],\"symbols\":[[\"x\",[0,1]],[\"2\",[2]]],\"writer\":\"a/7\",\"pen\":3.5}\n",
    )?;
    write("picture", "tiny.bmp", bitmap())?;
    let png = Image::new(8, 8, (0..64).map(|i| if i % 9 == 0 { 255 } else { 0 }).collect())?.to_png()?;
    write("picture", "line.png", &png)?;
    // Tiles, after the number of their columns: stripes with a gap, noise, strokes on squared paper.
    let tile = |columns: usize, rows: usize, level: fn(usize, usize) -> u8| -> Vec<u8> {
        let pixels = (0..columns * rows).map(|at| level(at % columns, at / columns));
        std::iter::once(columns as u8).chain(pixels).collect()
    };
    write("clean", "stripes", tile(40, 8, |x, y| if y < 3 && x > 4 { 30 } else { 220 }))?;
    write("clean", "noise", tile(61, 61, |x, y| (x * x * 7919 + y * y * 104_729 + x * y * 31) as u8))?;
    write(
        "clean",
        "squared",
        tile(200, 75, |x, y| match (x % 25 == 0 || y % 25 == 0, x.abs_diff(2 * y) < 4) {
            (_, true) => 20,
            (true, _) => 170,
            _ => 235,
        }),
    )?;
    let parts: [&[u8]; 4] = [b"a\tx\nb\ty\n", &png, &bitmap(), graph.as_bytes()];
    write("dataset_zip", "parts", join(&parts))?;
    let names = ["set/caption.txt", "set/img/a.png", "set/img/b.bmp", "set/symLg/a.lg"];
    write("dataset_zip", "zip", zip_of(&names.into_iter().zip(parts).collect::<Vec<_>>())?)?;
    write_requests(&png)?;
    for entry in fs::read_dir(repository().join("configs"))? {
        let path = entry?.path();
        write("recipe", &path.file_name().unwrap_or_default().to_string_lossy(), fs::read(&path)?)?;
    }
    Ok(())
}
