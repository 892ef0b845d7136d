//! What the tests of the CPU's passes need of the plain model: numbers to give it, and its gradients by name.

use burn::module::{Module, ModuleVisitor, Param};
use burn::prelude::*;
use burn::tensor::Gradients;
use comer::weights::{Tensor as Plain, Weights};
use comer_train::model::Comer;

/// Numbers between -1 and 1.
pub fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2654435761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The gradients of a model under the names of its parameters.
pub fn by_name(model: &Comer, gradients: &Gradients) -> Weights {
    struct Reader<'a>(&'a Gradients, Vec<String>, Weights);
    impl ModuleVisitor for Reader<'_> {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.1.push(name.into());
        }

        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.1.pop();
        }

        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = param.val().grad(self.0) {
                let name = self.1.join(".").replace("densenet.", "");
                let data = gradient.into_data().try_to_vec().unwrap();
                self.2.insert(name, Plain { shape: param.dims().to_vec(), data });
            }
        }
    }
    let mut reader = Reader(gradients, Vec::new(), Weights::new());
    model.visit(&mut reader);
    reader.2
}
