//! One decoding step as an ONNX graph: a token and the state in, logits and the new state out.

use comer::internal::ModelFile;
use comer::internal::config::{Coverage, ModelConfig};

use super::encoder::encode;
use super::layers::{Layers, scale_rows};
use super::onnx::{Attribute, Dim, ElementType, Graph};

/// The graph of a model's decoder, for any number of hypotheses at once.
///
/// | input | shape | |
/// |---|---|---|
/// | `token` | `[beam]` | the last token of each hypothesis; at first the start token |
/// | `self_keys`, `self_values` | `[layers, beam, heads, steps, width]` | of the earlier steps; at first none |
/// | `coverage` | `[layers - 1, beam, maps, rows, columns]` | sums of earlier attention; at first zero; not for BTTR |
/// | `memory_keys`, `memory_values` | | as the encoder gives them |
///
/// Outputs: `logits` `[beam, tokens]`, `new_self_keys`, `new_self_values` and `new_coverage`.
pub fn graph(model: &ModelFile) -> Graph {
    let mut layers = Layers { graph: Graph::default(), weights: &model.weights };
    let config = &model.config;
    declare_inputs(&mut layers.graph, config);
    let mut x = embed(&mut layers, config);
    let mut state = State::default();
    let mut previous = None;
    for layer in 0..config.decoder_layers {
        let path = format!("decoder.layers.{layer}");
        let attended = self_attention(&mut layers, config, layer, &x, &mut state);
        x = add_and_norm(&mut layers, &x, &attended, &format!("{path}.self_attention_norm"));
        let (attended, weights) =
            cross_attention(&mut layers, config, layer, &x, previous.as_deref(), &mut state);
        previous = Some(weights);
        x = add_and_norm(&mut layers, &x, &attended, &format!("{path}.cross_attention_norm"));
        let inner = layers.linear(&x, &format!("{path}.expand"));
        let inner = layers.graph.node("Relu", &[&inner], &[]);
        let inner = layers.linear(&inner, &format!("{path}.contract"));
        x = add_and_norm(&mut layers, &x, &inner, &format!("{path}.feed_forward_norm"));
    }
    let logits = layers.linear(&x, "decoder.output");
    let mut graph = layers.graph;
    graph.node_named("Identity", &[&logits], "logits", &[]);
    graph.output("logits", ElementType::F32, &[Dim::Named("beam"), Dim::Fixed(model.vocab.len())]);
    state.declare_outputs(&mut graph, config);
    graph
}

/// The new state of every layer, in order.
#[derive(Default)]
struct State {
    keys: Vec<String>,
    values: Vec<String>,
    coverage: Vec<String>,
}

impl State {
    fn declare_outputs(self, graph: &mut Graph, config: &ModelConfig) {
        let cache = cache_shape(config, "new_steps");
        let coverage = coverage_shape(config);
        for (parts, name, shape) in [
            (self.keys, "new_self_keys", cache),
            (self.values, "new_self_values", cache),
            (self.coverage, "new_coverage", coverage),
        ] {
            if parts.is_empty() {
                continue;
            }
            let first = graph.ints(&[0]);
            let parts: Vec<String> =
                parts.iter().map(|part| graph.node("Unsqueeze", &[part, &first], &[])).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            graph.node_named("Concat", &parts, name, &[("axis", Attribute::Int(0))]);
            graph.output(name, ElementType::F32, &shape);
        }
    }
}

fn cache_shape(config: &ModelConfig, steps: &'static str) -> [Dim; 5] {
    let width = config.d_model / config.heads;
    let (layers, heads) = (Dim::Fixed(config.decoder_layers), Dim::Fixed(config.heads));
    [layers, Dim::Named("beam"), heads, Dim::Named(steps), Dim::Fixed(width)]
}

fn coverage_shape(config: &ModelConfig) -> [Dim; 5] {
    let (layers, maps) = (Dim::Fixed(config.decoder_layers - 1), Dim::Fixed(config.coverage_inputs()));
    [layers, Dim::Named("beam"), maps, Dim::Named("rows"), Dim::Named("columns")]
}

fn declare_inputs(graph: &mut Graph, config: &ModelConfig) {
    let (layers, heads) = (Dim::Fixed(config.decoder_layers), Dim::Fixed(config.heads));
    let (width, cells) = (Dim::Fixed(config.d_model / config.heads), Dim::Named("cells"));
    graph.input("token", ElementType::I64, &[Dim::Named("beam")]);
    for name in ["self_keys", "self_values"] {
        graph.input(name, ElementType::F32, &cache_shape(config, "steps"));
    }
    if is_refined(config) {
        graph.input("coverage", ElementType::F32, &coverage_shape(config));
    }
    graph.input("memory_keys", ElementType::F32, &[layers, heads, width, cells]);
    graph.input("memory_values", ElementType::F32, &[layers, heads, cells, width]);
}

/// Whether any layer has a refinement: the first one has none.
fn is_refined(config: &ModelConfig) -> bool {
    config.coverage != Coverage::None && config.decoder_layers > 1
}

/// Token and position: `[beam, d_model]`
fn embed(layers: &mut Layers, config: &ModelConfig) -> String {
    let table = layers.graph.constant(&layers.weights["decoder.embedding.weight"]);
    let words = layers.graph.node("Gather", &[&table, "token"], &[]);
    let words = layers.layer_norm(&words, "decoder.embedding_norm");
    let graph = &mut layers.graph;
    // The position is the number of earlier steps.
    let (shape, axis) = (graph.node("Shape", &["self_keys"], &[]), graph.ints(&[3]));
    let steps = graph.node("Gather", &[&shape, &axis], &[]);
    let steps = graph.node("Cast", &[&steps], &[("to", Attribute::Int(ElementType::F32 as i64))]);
    let encoded = encode(graph, &steps, config.d_model);
    let row = graph.ints(&[1, config.d_model as i64]);
    let position = graph.node("Reshape", &[&encoded, &row], &[]);
    let sum = graph.node("Add", &[&words, &position], &[]);
    layers.layer_norm(&sum, "decoder.input_norm")
}

/// Attention to the formula so far: `[beam, d_model]`
fn self_attention(
    layers: &mut Layers,
    config: &ModelConfig,
    layer: usize,
    x: &str,
    state: &mut State,
) -> String {
    let path = format!("decoder.layers.{layer}.self_attention");
    let queries = split_heads(layers, config, x, &path, 0);
    let [keys, values] = [(1, "self_keys"), (2, "self_values")].map(|(part, earlier)| {
        let new = split_heads(layers, config, x, &path, part);
        let earlier = nth(&mut layers.graph, earlier, layer);
        layers.graph.node("Concat", &[&earlier, &new], &[("axis", Attribute::Int(2))])
    });
    let graph = &mut layers.graph;
    let turned = graph.node("Transpose", &[&keys], &[("perm", Attribute::Ints(&[0, 1, 3, 2]))]);
    let energies = graph.node("MatMul", &[&queries, &turned], &[]);
    let weights = softmax(graph, &energies);
    let mixed = graph.node("MatMul", &[&weights, &values], &[]);
    state.keys.push(keys);
    state.values.push(values);
    join_heads(layers, config, &mixed, &path)
}

/// Attention to the picture, refined from the second layer on: `[beam, d_model]`, and the weights used,
/// `[beam, heads, 1, cells]`.
fn cross_attention(
    layers: &mut Layers,
    config: &ModelConfig,
    layer: usize,
    x: &str,
    previous: Option<&str>,
    state: &mut State,
) -> (String, String) {
    let path = format!("decoder.layers.{layer}.cross_attention");
    let queries = split_heads(layers, config, x, &path, 0);
    let keys = nth(&mut layers.graph, "memory_keys", layer);
    let energies = layers.graph.node("MatMul", &[&queries, &keys], &[]);
    let mut weights = softmax(&mut layers.graph, &energies);
    if let Some(previous) = previous.filter(|_| is_refined(config)) {
        let coverage = nth(&mut layers.graph, "coverage", layer - 1);
        let refinement = refine(layers, config, &coverage);
        let graph = &mut layers.graph;
        let refined = graph.node("Sub", &[&energies, &refinement], &[]);
        let refined = softmax(graph, &refined);
        let attention = match config.coverage {
            Coverage::Fusion => graph.node("Concat", &[previous, &weights], &[("axis", Attribute::Int(1))]),
            Coverage::Cross => previous.to_string(),
            Coverage::SelfOnly | Coverage::None => weights.clone(),
        };
        let shape = graph.node("Shape", &[&coverage], &[]);
        let maps = graph.node("Reshape", &[&attention, &shape], &[]);
        state.coverage.push(graph.node("Add", &[&coverage, &maps], &[]));
        weights = refined;
    }
    let values = nth(&mut layers.graph, "memory_values", layer);
    let mixed = layers.graph.node("MatMul", &[&weights, &values], &[]);
    (join_heads(layers, config, &mixed, &path), weights)
}

/// The refinement term of a coverage `[beam, maps, rows, columns]`: `[beam, heads, 1, cells]`
fn refine(layers: &mut Layers, config: &ModelConfig, coverage: &str) -> String {
    let tensor = |name: &str| &layers.weights[&format!("decoder.refinement.{name}")];
    let (kernel, bias) = (tensor("conv.weight"), &tensor("conv.bias").data);
    let (scale, shift) = layers.folded_norm("decoder.refinement.norm");
    let projection = scale_rows(tensor("projection.weight"), &scale);
    let hidden = layers.convolution(coverage, kernel, bias, 1);
    let hidden = layers.graph.node("Relu", &[&hidden], &[]);
    let refined = layers.convolution(&hidden, &projection, &shift, 1);
    let shape = layers.graph.ints(&[0, config.heads as i64, 1, -1]);
    layers.graph.node("Reshape", &[&refined, &shape], &[])
}

/// Queries (part 0, scaled), keys (1) or values (2): `[beam, d_model]` to `[beam, heads, 1, width]`
fn split_heads(layers: &mut Layers, config: &ModelConfig, x: &str, path: &str, part: usize) -> String {
    let (d, width) = (config.d_model, config.d_model / config.heads);
    let factor = if part == 0 { (width as f32).powf(-0.5) } else { 1.0 };
    let projected = layers.linear_rows(x, &format!("{path}.packed"), part * d..(part + 1) * d, factor);
    let shape = layers.graph.ints(&[-1, config.heads as i64, 1, width as i64]);
    layers.graph.node("Reshape", &[&projected, &shape], &[])
}

/// `[beam, heads, 1, width]` to `[beam, d_model]`, projected.
fn join_heads(layers: &mut Layers, config: &ModelConfig, mixed: &str, path: &str) -> String {
    let shape = layers.graph.ints(&[-1, config.d_model as i64]);
    let joined = layers.graph.node("Reshape", &[mixed, &shape], &[]);
    layers.linear(&joined, &format!("{path}.output"))
}

fn add_and_norm(layers: &mut Layers, x: &str, branch: &str, norm: &str) -> String {
    let sum = layers.graph.node("Add", &[x, branch], &[]);
    layers.layer_norm(&sum, norm)
}

fn softmax(graph: &mut Graph, energies: &str) -> String {
    graph.node("Softmax", &[energies], &[("axis", Attribute::Int(-1))])
}

/// One layer's part of an input.
fn nth(graph: &mut Graph, input: &str, layer: usize) -> String {
    let index = graph.int(layer as i64);
    graph.node("Gather", &[input, &index], &[("axis", Attribute::Int(0))])
}
