//! The second loss: a linear map names the symbol of each cell (see [`comer_train::symbols`]).

use burn::module::Module;
use burn::prelude::*;
use burn::tensor::activation::log_softmax;
use comer::Image;
use comer::internal::TokenId;
use comer::internal::vocab::PAD;
use comer::internal::weights::Weights;

use super::layers::{Linear, Source};
use comer_train::symbols::{count, size};

/// The map, which training alone has.
#[derive(Module, Debug)]
pub struct SymbolMap {
    symbols: Linear,
}

impl SymbolMap {
    /// The map of these weights.
    pub fn new(weights: &Weights, device: &Device) -> Self {
        Self { symbols: Linear::new(&Source { weights, device }, "symbols") }
    }

    /// Cross entropy of the symbols of `cells` (`[batch, height, width, d_model]`), which are padded to the largest
    /// picture's; the mean over those that are known.
    pub fn loss(&self, cells: Tensor<4>, pictures: &[Image], symbols: &[Vec<TokenId>]) -> Tensor<1> {
        let device = cells.device();
        let [batch, height, width, _] = cells.dims();
        let mut answers = vec![i32::from(PAD); batch * height * width];
        for (index, (picture, own)) in pictures.iter().zip(symbols).enumerate() {
            let (columns, _) = size(picture);
            for (y, row) in own.chunks_exact(columns).enumerate() {
                let start = (index * height + y) * width;
                answers[start..][..columns].iter_mut().zip(row).for_each(|(answer, &x)| *answer = x.into());
            }
        }
        let counts: Vec<f32> = answers.iter().map(|&answer| count(answer as TokenId)).collect();
        let total = counts.iter().sum::<f32>().max(1.0);
        let rows = answers.len();
        let logits = self.symbols.forward(cells).reshape([rows as i32, -1]);
        let answers: Tensor<1, Int> = Tensor::from_data(TensorData::new(answers, [rows]), &device);
        let counts: Tensor<1> = Tensor::from_data(TensorData::new(counts, [rows]), &device);
        let chosen: Tensor<1> = log_softmax(logits, 1).gather(1, answers.unsqueeze_dim(1)).squeeze_dim(1);
        (chosen * counts).sum().neg() / total
    }
}
