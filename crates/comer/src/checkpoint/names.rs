//! The names that the authors' implementation gives to our tensors.

/// What our tensor `name` is called in a checkpoint, without the leading `comer_model.`.
pub(super) fn checkpoint_name(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let number = |text: &str| text.parse::<usize>().map_or(0, |n| n + 1);
    match parts.as_slice() {
        ["encoder", "stem", "conv", leaf] => format!("encoder.model.conv1.{leaf}"),
        ["encoder", "stem", "norm", leaf] => format!("encoder.model.norm1.{}", norm_leaf(leaf)),
        ["encoder", "blocks", block, layer, half, kind, leaf] => {
            let index = if *half == "reduce" { 1 } else { 2 };
            format!("encoder.model.dense{}.{layer}.{}", number(block), conv_or_norm(kind, index, leaf))
        }
        ["encoder", "transitions", block, kind, leaf] => {
            format!("encoder.model.trans{}.{}", number(block), conv_or_norm(kind, 1, leaf))
        }
        ["encoder", "last_norm", leaf] => format!("encoder.model.post_norm.{}", norm_leaf(leaf)),
        ["encoder", "projection", leaf] => format!("encoder.feature_proj.{leaf}"),
        ["decoder", "embedding", leaf] => format!("decoder.word_embed.0.{leaf}"),
        ["decoder", "embedding_norm", leaf] => format!("decoder.word_embed.1.{leaf}"),
        ["decoder", "input_norm", leaf] => format!("decoder.norm.{leaf}"),
        ["decoder", "layers", layer, rest @ ..] => {
            format!("decoder.model.layers.{layer}.{}", layer_name(rest))
        }
        ["decoder", "refinement", "norm", leaf] => {
            format!("decoder.model.arm.post_norm.bn.{}", norm_leaf(leaf))
        }
        ["decoder", "refinement", "projection", leaf] => format!("decoder.model.arm.proj.{leaf}"),
        ["decoder", "refinement", rest @ ..] => format!("decoder.model.arm.{}", rest.join(".")),
        ["decoder", "output", leaf] => format!("decoder.proj.{leaf}"),
        _ => name.to_string(),
    }
}

/// Whether a checkpoint's tensor is computed from others or counts steps: nothing that a model needs.
pub(super) fn is_derived(name: &str) -> bool {
    name.ends_with(".num_batches_tracked") || name == "decoder.pos_enc.pe"
}

fn layer_name(rest: &[&str]) -> String {
    let attention = |name: &str| if name == "self_attention" { "self_attn" } else { "multihead_attn" };
    match rest {
        [name, "packed", leaf] => format!("{}.in_proj_{leaf}", attention(name)),
        [name, "output", leaf] => format!("{}.out_proj.{leaf}", attention(name)),
        ["self_attention_norm", leaf] => format!("norm1.{leaf}"),
        ["cross_attention_norm", leaf] => format!("norm2.{leaf}"),
        ["feed_forward_norm", leaf] => format!("norm3.{leaf}"),
        ["expand", leaf] => format!("linear1.{leaf}"),
        ["contract", leaf] => format!("linear2.{leaf}"),
        _ => rest.join("."),
    }
}

fn conv_or_norm(kind: &str, index: usize, leaf: &str) -> String {
    if kind == "conv" { format!("conv{index}.{leaf}") } else { format!("bn{index}.{}", norm_leaf(leaf)) }
}

fn norm_leaf(leaf: &str) -> &str {
    match leaf {
        "mean" => "running_mean",
        "variance" => "running_var",
        other => other,
    }
}
