//! `comer` for JavaScript. The package that `crates/comer-wasm/build` makes wraps this in `js/index.js`.
//!
//! Everything that crosses the border is bytes or JSON, so that it can be sent to a Web Worker as it is.

mod options;
mod reading;
mod source;

use comer::internal::ModelFile;
use comer::internal::language_model::LanguageModel;
use comer::{AlignmentDetail, Constraints, Recognizer};
use wasm_bindgen::prelude::wasm_bindgen;

pub use options::Options;
use source::Source;

/// A model that is ready to recognise.
#[wasm_bindgen]
pub struct Engine {
    recognizer: Recognizer,
}

#[wasm_bindgen]
impl Engine {
    /// Loads the bytes of a model file and, if there is one, of its language model.
    #[wasm_bindgen(constructor)]
    pub fn new(model: &[u8], language_model: Option<Vec<u8>>) -> Result<Engine, String> {
        let mut file = ModelFile::from_bytes("model", model).map_err(message)?;
        if let Some(bytes) = language_model {
            let language_model = LanguageModel::from_bytes("language model", &bytes).map_err(message)?;
            language_model.check_vocab(&file.vocab).map_err(message)?;
            file.language_model = Some(language_model);
        }
        Ok(Self { recognizer: Recognizer::new(file).map_err(message)? })
    }

    /// Recognises the bytes of an image file, of InkML or of JSON strokes. `options` and the result are JSON.
    #[wasm_bindgen(js_name = recognizeFile)]
    pub fn recognize_file(&self, bytes: &[u8], options: &str) -> Result<String, String> {
        self.recognize(Source::File(bytes), options)
    }

    /// Recognises pixels: red, green, blue and alpha, as in `ImageData`.
    #[wasm_bindgen(js_name = recognizePixels)]
    pub fn recognize_pixels(
        &self,
        width: usize,
        height: usize,
        rgba: &[u8],
        options: &str,
    ) -> Result<String, String> {
        self.recognize(Source::Pixels { width, height, rgba }, options)
    }

    /// What the model file says about its origin, as JSON.
    pub fn provenance(&self) -> String {
        serde_json::Value::from(self.recognizer.provenance().clone()).to_string()
    }

    fn recognize(&self, source: Source, options: &str) -> Result<String, String> {
        let options = Options::from_json(options)?;
        let recognition_options = options.resolve()?;
        let mut inputs = source.inputs(options.formulas).map_err(message)?.into_iter();
        let first = inputs.next().expect("there is a formula");
        let first = self.recognizer.recognize_formula(first, &recognition_options).map_err(message)?;
        let mut reading = reading::json(&first, options.mathml);
        if options.image {
            let png = first.input.image().to_png().map_err(message)?;
            reading["image"] = format!("data:image/png;base64,{}", comer_eval::html::base64(&png)).into();
        }
        // Of the others, only what they are and where.
        let quick =
            recognition_options.nbest(1).alignment(AlignmentDetail::None).constraints(Constraints::default());
        let mut formulas = vec![first];
        for input in inputs {
            formulas.push(self.recognizer.recognize_formula(input, &quick).map_err(message)?);
        }
        if formulas.len() > 1 {
            reading["found"] = formulas.iter().map(reading::found).collect();
            reading["aligned"] =
                comer::aligned(formulas.iter().map(|formula| formula.recognition.latex())).into();
        }
        Ok(reading.to_string())
    }
}

/// A formula as MathML; `data-token` is the number of a symbol's token.
#[wasm_bindgen]
pub fn mathml(latex: &str) -> Result<String, String> {
    comer_eval::mathml::mathml(latex).map_err(message)
}

fn message(error: impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use comer::internal::Precision;
    use serde_json::{Value, json};

    use super::Engine;

    #[test]
    fn several_formulas_of_ink_name_their_strokes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.safetensors");
        comer_testing::golden_model("fusion").save(&path, Precision::F32).unwrap();
        let engine = Engine::new(&std::fs::read(path).unwrap(), None).unwrap();
        let cross = |y: u32| format!("[[0,{y}],[40,{0}]],[[40,{y}],[0,{0}]]", y + 60);
        let ink = format!("[{},{}]", cross(0), cross(300));
        let read = |formulas: &str| -> Value {
            let options = json!({ "greedy": true, "alignment": true, "formulas": formulas }).to_string();
            serde_json::from_str(&engine.recognize_file(ink.as_bytes(), &options).unwrap()).unwrap()
        };
        let found = read("auto");
        let place = |number: usize| (&found["found"][number]["strokes"], &found["found"][number]["box"]);
        assert_eq!(place(0), (&json!([0, 1]), &json!([0.0, 0.0, 40.0, 60.0])), "{found}");
        assert_eq!(place(1), (&json!([2, 3]), &json!([0.0, 300.0, 40.0, 360.0])), "{found}");
        // All else is about the first.
        assert_eq!(found["found"][0]["latex"], found["formulas"][0]["latex"]);
        assert_eq!(found["strokes"][0].as_array().map(Vec::len), Some(2), "{found}");
        let one = read("one");
        assert_eq!(
            (&one["found"], one["strokes"][0].as_array().map(Vec::len)),
            (&Value::Null, Some(4)),
            "{one}"
        );
    }
}
