"""Writes tiny-gru.safetensors and tiny-gru-stacked.safetensors: the GRU decoder with coverage attention in PyTorch.

The reference for the decoder of kind `gru` in the engine and in the trainer: from the DenseNet's features to logits,
loss, gradients and the weights after three steps of SGD, for two tiny random models. Each picture is in its own size,
each formula in both directions, and everything is computed in float64, sequence by sequence, as the equations read.

    pip install torch safetensors
    python3 make_tiny_gru.py
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

FOLDER = Path(__file__).parent
VOCAB, SOS, EOS, PAD = 20, 1, 2, 0
CHANNELS = 9  # of the DenseNet's features, for growth_rate 4 and one layer per block
SIZES = [(2, 5), (3, 4), (1, 3)]
FORMULAS = [[5, 9, 7, 13], [8], [3, 16, 7, 7, 15, 11, 12]]


def shapes(config):
    """The tensors of the decoder and of the end of the encoder, as in crates/comer/src/weights.rs."""
    d, width, channels = config["d_model"], config["attention_width"], config["coverage_channels"]
    heads, layers = config["heads"], config["decoder_layers"]
    linear = lambda path, out, inputs: {f"{path}.weight": [out, inputs], f"{path}.bias": [out]}
    gru = lambda path: linear(f"{path}.input", 3 * d, d) | linear(f"{path}.state", 3 * d, d)
    result = {"encoder.projection.weight": [d, CHANNELS, 1, 1], "encoder.projection.bias": [d]}
    result |= {"encoder.norm.weight": [d], "encoder.norm.bias": [d], "decoder.embedding.weight": [VOCAB, d]}
    for layer in range(layers):
        result |= linear(f"decoder.initial.{layer}", d, d)
    result |= gru("decoder.token_gru") | linear("decoder.attention.features", width, d)
    result["decoder.attention.state.weight"] = [width, d]
    result["decoder.attention.conv.weight"] = [channels, heads, 11, 11]
    result["decoder.attention.coverage.weight"] = [width, channels]
    result["decoder.attention.energy.weight"] = [heads, width // heads]
    result |= gru("decoder.context_gru")
    for layer in range(1, layers):
        result |= gru(f"decoder.stacked_gru.{layer}")
    return result | linear("decoder.readout", d, 3 * d) | linear("decoder.output", VOCAB, d // 2)


def positions(height, width, d):
    """The encoding of each cell, [cells, d]: the share of the width first, then that of the height."""
    frequencies = 10000.0 ** (-2.0 * torch.arange(d // 4, dtype=torch.float64) / (d // 2))
    def axis(length):
        share = torch.arange(1, length + 1, dtype=torch.float64) / (length + 1e-6) * 2 * math.pi
        angles = share[:, None] * frequencies
        return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
    x, y = axis(width), axis(height)
    return torch.cat([x[None].expand(height, -1, -1), y[:, None].expand(-1, width, -1)], 2).flatten(0, 1)


class Decoder:
    def __init__(self, config, weights):
        self.config, self.weights = config, weights

    def linear(self, path, x):
        return F.linear(x, self.weights[f"{path}.weight"], self.weights[f"{path}.bias"])

    def gru(self, path, x, state):
        weights = [self.weights[f"decoder.{path}.{leaf}"] for leaf in
                   ["input.weight", "state.weight", "input.bias", "state.bias"]]
        return torch.gru_cell(x[None], state[None], *weights)[0]

    def memory(self, features, height, width):
        d = self.config["d_model"]
        projection = self.weights["encoder.projection.weight"].flatten(1)
        cells = F.linear(features, projection, self.weights["encoder.projection.bias"])
        cells = cells + positions(height, width, d)
        return F.layer_norm(cells, [d], self.weights["encoder.norm.weight"], self.weights["encoder.norm.bias"], 1e-5)

    def attend(self, memory, coverage, state):
        """Equations 1 to 4 of the paper, with heads: the context [d] and the weights [heads, height, width]."""
        heads, height, width = coverage.shape
        weights = self.weights
        covered = F.conv2d(coverage[None], weights["decoder.attention.conv.weight"], padding=5)[0]
        covered = F.linear(covered.flatten(1).T, weights["decoder.attention.coverage.weight"])
        hidden = self.linear("decoder.attention.features", memory) + covered
        hidden = torch.tanh(hidden + F.linear(state, weights["decoder.attention.state.weight"]))
        hidden = hidden.view(height * width, heads, -1)
        energies = (hidden * weights["decoder.attention.energy.weight"]).sum(2).T
        attention = energies.softmax(1)
        values = memory.view(height * width, heads, -1)
        context = torch.einsum("hc,chk->hk", attention, values).flatten()
        return context, attention.view(heads, height, width)

    def forward(self, features, size, tokens):
        config, memory = self.config, self.memory(features, *size)
        mean = memory.mean(0)
        layers = range(config["decoder_layers"])
        states = [torch.tanh(self.linear(f"decoder.initial.{layer}", mean)) for layer in layers]
        coverage = torch.zeros(config["heads"], *size, dtype=torch.float64)
        logits, maps = [], []
        for token in tokens:
            token = self.weights["decoder.embedding.weight"][token]
            query = self.gru("token_gru", token, states[0])
            context, attention = self.attend(memory, coverage, query)
            coverage = coverage + attention
            states[0] = self.gru("context_gru", context, query)
            for layer in layers[1:]:
                states[layer] = self.gru(f"stacked_gru.{layer}", states[layer - 1], states[layer])
            readout = self.linear("decoder.readout", torch.cat([token, states[-1], context]))
            logits.append(self.linear("decoder.output", readout.view(-1, 2).max(1).values))
            maps.append(attention.flatten(1))
        return torch.stack(logits), torch.stack(maps)


def sequences():
    """Input and target tokens of each formula from left to right, then from right to left, with its picture."""
    for picture, formula in enumerate(FORMULAS):
        yield picture, [SOS, *formula], [*formula, EOS]
        yield picture, [EOS, *formula[::-1]], [*formula[::-1], SOS]


def write(name, heads, layers):
    torch.manual_seed(21 + layers)
    config = {"decoder": "gru", "d_model": 16, "growth_rate": 4, "layers_per_block": 1, "encoder_dropout": 0.0,
              "heads": heads, "decoder_layers": layers, "feed_forward": 1, "dropout": 0.0, "coverage_channels": 6,
              "attention_width": 24}
    # Large enough that every part of the network matters.
    draw = lambda shape: 0.4 * torch.randn(shape, dtype=torch.float32)
    weights = {name: draw(shape).double().requires_grad_() for name, shape in shapes(config).items()}
    features = [torch.randn(h * w, CHANNELS, dtype=torch.float32) for h, w in SIZES]
    decoder = Decoder(config, weights)

    def run():
        loss, count, outputs = 0, 0, []
        for picture, inputs, targets in sequences():
            logits, maps = decoder.forward(features[picture].double(), SIZES[picture], inputs)
            loss = loss + F.cross_entropy(logits, torch.tensor(targets), reduction="sum")
            count += len(targets)
            outputs.append((logits, maps))
        return loss / count, outputs

    file = {f"weights.{name}": tensor.detach().float().clone() for name, tensor in weights.items()}
    file["input.features"] = torch.cat(features)
    file["input.sizes"] = torch.tensor(SIZES, dtype=torch.int32)
    for index, (_, inputs, targets) in enumerate(sequences()):
        file[f"input.tokens.{index}"] = torch.tensor(inputs, dtype=torch.int32)
        file[f"input.targets.{index}"] = torch.tensor(targets, dtype=torch.int32)
    optimizer = torch.optim.SGD(weights.values(), lr=0.08, momentum=0.9, weight_decay=1e-4)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss, outputs = run()
        loss.backward()
        losses.append(loss.detach())
        if step == 0:
            for index, (logits, maps) in enumerate(outputs):
                file[f"eval.logits.{index}"] = logits.detach().float()
                file[f"eval.attention.{index}"] = maps.detach().float()
            for name_, tensor in weights.items():
                file[f"train.grad.{name_}"] = tensor.grad.float().clone()
        optimizer.step()
    file["train.losses"] = torch.stack(losses).float()
    for name_, tensor in weights.items():
        file[f"train.after3.{name_}"] = tensor.detach().float().clone()
    path = FOLDER / f"tiny-{name}.safetensors"
    save_file({key: tensor.contiguous() for key, tensor in file.items()}, path, {"config": json.dumps(config)})
    print(path.name, path.stat().st_size, "bytes, losses", [round(float(loss), 4) for loss in losses])


write("gru", heads=1, layers=1)
write("gru-stacked", heads=2, layers=2)
