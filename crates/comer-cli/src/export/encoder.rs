//! The encoder as an ONNX graph: a picture of any size to features, and to the keys and values of cross-attention.

use std::f32::consts::TAU;

use comer::internal::ModelFile;
use comer::internal::config::BLOCKS;
use comer::internal::weights::Tensor;

use super::layers::Layers;
use super::onnx::{Attribute, Dim, ElementType, Graph};

/// The graph of a model's encoder. Input: `image` `[1, 1, height, width]`, white ink (1.0) on black (0.0). Outputs:
/// `features` `[1, rows, columns, d_model]`, `memory_keys` `[layers, heads, width, cells]` and `memory_values` `[layers,
/// heads, cells, width]`.
pub fn graph(model: &ModelFile) -> Graph {
    let mut layers = Layers { graph: Graph::default(), weights: &model.weights };
    let config = &model.config;
    layers.graph.input(
        "image",
        ElementType::F32,
        &[Dim::Fixed(1), Dim::Fixed(1), Dim::Named("height"), Dim::Named("width")],
    );

    let mut x = layers.unit("image", "encoder.stem", 2);
    x = layers.pool("MaxPool", &x);
    for block in 0..BLOCKS {
        for layer in 0..config.layers_per_block {
            let path = format!("encoder.blocks.{block}.{layer}");
            let reduced = layers.unit(&x, &format!("{path}.reduce"), 1);
            let new = layers.unit(&reduced, &format!("{path}.grow"), 1);
            x = layers.graph.node("Concat", &[&x, &new], &[("axis", Attribute::Int(1))]);
        }
        if block + 1 < BLOCKS {
            x = layers.unit(&x, &format!("encoder.transitions.{block}"), 1);
            x = layers.pool("AveragePool", &x);
        }
    }
    x = project(&mut layers, &x);
    let cells = layers.graph.node("Transpose", &[&x], &[("perm", Attribute::Ints(&[0, 2, 3, 1]))]);
    let positions = positions(&mut layers.graph, &cells, config.d_model);
    let sum = layers.graph.node("Add", &[&cells, &positions], &[]);
    let features = layers.layer_norm(&sum, "encoder.norm");
    let graph = &mut layers.graph;
    graph.node_named("Identity", &[&features], "features", &[]);
    let (rows, columns) = (Dim::Named("rows"), Dim::Named("columns"));
    graph.output("features", ElementType::F32, &[Dim::Fixed(1), rows, columns, Dim::Fixed(config.d_model)]);
    memory(&mut layers, model, &features);
    layers.graph
}

/// The last batch norm and the projection to the decoder's width, as one convolution.
fn project(layers: &mut Layers, x: &str) -> String {
    let (scale, shift) = layers.folded_norm("encoder.last_norm");
    let weight = &layers.weights["encoder.projection.weight"];
    let inputs = scale.len();
    let mut folded = weight.clone();
    let mut bias = layers.weights["encoder.projection.bias"].data.clone();
    for (row, bias) in folded.data.chunks_exact_mut(inputs).zip(&mut bias) {
        for ((weight, scale), shift) in row.iter_mut().zip(&scale).zip(&shift) {
            *bias += *weight * shift;
            *weight *= scale;
        }
    }
    let (weight, bias) = (layers.graph.constant(&folded), layers.graph.floats(&bias));
    layers.graph.node("Conv", &[x, &weight, &bias], &[])
}

/// The positional encodings of cells `[1, rows, columns, d_model]`: the half for x before the half for y.
fn positions(graph: &mut Graph, cells: &str, d_model: usize) -> String {
    let shape = graph.node("Shape", &[cells], &[]);
    let half = d_model / 2;
    let mut part = |axis: i64, placed: [i64; 4]| {
        let index = graph.int(axis);
        let length = graph.node("Gather", &[&shape, &index], &[]);
        let (zero, one) = (graph.int(0), graph.float(1.0));
        let step = graph.int(1);
        let range = graph.node("Range", &[&zero, &length, &step], &[]);
        let float = [("to", Attribute::Int(ElementType::F32 as i64))];
        let range = graph.node("Cast", &[&range], &float);
        let place = graph.node("Add", &[&range, &one], &[]);
        let length = graph.node("Cast", &[&length], &float);
        let tiny = graph.float(1e-6);
        let length = graph.node("Add", &[&length, &tiny], &[]);
        let share = graph.node("Div", &[&place, &length], &[]);
        let turn = graph.float(TAU);
        let angle = graph.node("Mul", &[&share, &turn], &[]);
        let encoded = encode(graph, &angle, half);
        let shape = graph.ints(&placed);
        graph.node("Reshape", &[&encoded, &shape], &[])
    };
    let x = part(2, [1, 1, -1, half as i64]);
    let y = part(1, [1, -1, 1, half as i64]);
    let (first, last, axis) = (graph.ints(&[0]), graph.ints(&[3]), graph.ints(&[0]));
    let lengths = graph.node("Slice", &[&shape, &first, &last, &axis], &[]);
    let width = graph.ints(&[half as i64]);
    let size = graph.node("Concat", &[&lengths, &width], &[("axis", Attribute::Int(0))]);
    let (x, y) = (graph.node("Expand", &[&x, &size], &[]), graph.node("Expand", &[&y, &size], &[]));
    graph.node("Concat", &[&x, &y], &[("axis", Attribute::Int(3))])
}

/// Sines and cosines, interleaved, of each angle `[n]` times the frequencies of `width / 2` pairs: `[n, width / 2, 2]`
pub fn encode(graph: &mut Graph, angle: &str, width: usize) -> String {
    let pairs = width / 2;
    let frequencies = (0..pairs).map(|i| 10000f64.powf(-2.0 * i as f64 / width as f64) as f32).collect();
    let frequencies = graph.constant(&Tensor { shape: vec![1, pairs], data: frequencies });
    let column = graph.ints(&[-1, 1]);
    let angle = graph.node("Reshape", &[angle, &column], &[]);
    let angles = graph.node("Mul", &[&angle, &frequencies], &[]);
    let last = graph.ints(&[2]);
    let [sine, cosine] = ["Sin", "Cos"].map(|kind| {
        let values = graph.node(kind, &[&angles], &[]);
        graph.node("Unsqueeze", &[&values, &last], &[])
    });
    graph.node("Concat", &[&sine, &cosine], &[("axis", Attribute::Int(2))])
}

/// The keys and values of every layer's cross-attention, which do not change from step to step.
fn memory(layers: &mut Layers, model: &ModelFile, features: &str) {
    let config = &model.config;
    let (d, heads) = (config.d_model, config.heads);
    let rows = layers.graph.ints(&[-1, d as i64]);
    let cells = layers.graph.node("Reshape", &[features, &rows], &[]);
    let split = layers.graph.ints(&[1, -1, heads as i64, (d / heads) as i64]);
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for layer in 0..config.decoder_layers {
        let path = format!("decoder.layers.{layer}.cross_attention.packed");
        for (part, order, list) in [(1, [0, 2, 3, 1], &mut keys), (2, [0, 2, 1, 3], &mut values)] {
            let projected = layers.linear_rows(&cells, &path, part * d..(part + 1) * d, 1.0);
            let heads = layers.graph.node("Reshape", &[&projected, &split], &[]);
            list.push(layers.graph.node("Transpose", &[&heads], &[("perm", Attribute::Ints(&order))]));
        }
    }
    let (count, width, cells) =
        (Dim::Fixed(config.decoder_layers), Dim::Fixed(d / heads), Dim::Named("cells"));
    let heads = Dim::Fixed(heads);
    for (list, name, shape) in [
        (keys, "memory_keys", [count, heads, width, cells]),
        (values, "memory_values", [count, heads, cells, width]),
    ] {
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        layers.graph.node_named("Concat", &list, name, &[("axis", Attribute::Int(0))]);
        layers.graph.output(name, ElementType::F32, &shape);
    }
}
