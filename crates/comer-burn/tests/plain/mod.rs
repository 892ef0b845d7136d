//! The gradients of the reference model by name.

use burn::module::{Module, ModuleVisitor, Param};
use burn::prelude::*;
use burn::tensor::Gradients;
use comer::internal::weights::{Tensor as Plain, Weights};
use comer_burn::model::Comer;

/// The gradients of a model under the names of its parameters.
pub fn by_name(model: &Comer, gradients: &Gradients) -> Weights {
    struct Collector<'a>(&'a Gradients, Vec<String>, Weights);
    impl ModuleVisitor for Collector<'_> {
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
    let mut collector = Collector(gradients, Vec::new(), Weights::new());
    model.visit(&mut collector);
    collector.2
}
