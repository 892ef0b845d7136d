//! The symbol loss: a linear layer classifies the symbol of each cell (see [`comer_train::symbols`]).

use burn::module::Module;
use burn::prelude::*;
use burn::tensor::activation::log_softmax;
use comer::Image;
use comer::internal::TokenId;
use comer::internal::vocab::PAD;
use comer::internal::weights::Weights;

use super::layers::{Linear, Source};
use comer_train::symbols::{cell_grid, loss_weight};

/// The classifier, which is used in training only.
#[derive(Module, Debug)]
pub struct SymbolClassifier {
    symbols: Linear,
}

impl SymbolClassifier {
    /// The classifier with these weights.
    pub fn new(weights: &Weights, device: &Device) -> Self {
        Self { symbols: Linear::new(&Source { weights, device }, "symbols") }
    }

    /// Cross entropy of the symbols of `cells` (`[batch, height, width, d_model]`, padded to the largest picture): the
    /// weighted mean over known symbols.
    pub fn loss(&self, cells: Tensor<4>, pictures: &[Image], symbols: &[Vec<TokenId>]) -> Tensor<1> {
        let device = cells.device();
        let [batch, height, width, _] = cells.dims();
        let mut targets = vec![i32::from(PAD); batch * height * width];
        for (index, (picture, own)) in pictures.iter().zip(symbols).enumerate() {
            let (columns, _) = cell_grid(picture);
            for (y, row) in own.chunks_exact(columns).enumerate() {
                let start = (index * height + y) * width;
                targets[start..][..columns].iter_mut().zip(row).for_each(|(target, &x)| *target = x.into());
            }
        }
        let weights: Vec<f32> = targets.iter().map(|&target| loss_weight(target as TokenId)).collect();
        let total = weights.iter().sum::<f32>().max(1.0);
        let rows = targets.len();
        let logits = self.symbols.forward(cells).reshape([rows as i32, -1]);
        let targets: Tensor<1, Int> = Tensor::from_data(TensorData::new(targets, [rows]), &device);
        let weights: Tensor<1> = Tensor::from_data(TensorData::new(weights, [rows]), &device);
        let chosen: Tensor<1> = log_softmax(logits, 1).gather(1, targets.unsqueeze_dim(1)).squeeze_dim(1);
        (chosen * weights).sum().neg() / total
    }
}
