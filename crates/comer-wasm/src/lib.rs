//! `comer` for JavaScript. The package that `crates/comer-wasm/build` makes wraps this in `js/index.js`.
//!
//! Everything that crosses the border is bytes or JSON, so that it can be sent to a Web Worker as it is.

mod options;
mod reading;

use comer::internal::ModelFile;
use comer::internal::language_model::LanguageModel;
use comer::{Input, Recognizer};
use wasm_bindgen::prelude::wasm_bindgen;

pub use options::Options;

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
        self.recognize(Input::from_bytes(bytes), options)
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
        self.recognize(Input::from_rgba(width, height, rgba), options)
    }

    /// What the model file says about its origin, as JSON.
    pub fn provenance(&self) -> String {
        serde_json::Value::from(self.recognizer.provenance().clone()).to_string()
    }

    fn recognize(&self, input: comer::Result<Input>, options: &str) -> Result<String, String> {
        let options = Options::from_json(options)?;
        let input = input.map_err(message)?;
        let recognition = self.recognizer.recognize_with(&input, &options.resolve()?).map_err(message)?;
        let mut reading = reading::json(&recognition, &input, options.mathml);
        if options.image {
            let png = input.image().to_png().map_err(message)?;
            reading["image"] = format!("data:image/png;base64,{}", comer_eval::html::base64(&png)).into();
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
