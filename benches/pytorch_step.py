"""The rival of `cargo bench -p comer-train --bench step`: the same network and the same training step in PyTorch.

    pip install torch numpy
    python benches/pytorch_step.py --threads 1
    python benches/pytorch_step.py --threads 1 --data crohme.zip --every 20 --write batches.json
    cargo bench -p comer-train --bench step -- --threads 1 --batches batches.json

Prints CPU milliseconds a step, the best of several rounds, and the peak memory. With --data it makes the paper's batches of
the training set (pictures of similar area, at most 8 and at most 320 000 pixels) and takes every N-th one once, as an epoch
would; --write keeps their sizes for the bench.
"""

import argparse
import json
import resource
import struct
import time
import zipfile

import torch
from torch import nn
from torch.nn import functional as F

PAD, VOCAB = 0, 113


class DenseLayer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.reduce = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.reduce_norm = nn.BatchNorm2d(4 * growth)
        self.grow = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        self.grow_norm = nn.BatchNorm2d(growth)

    def forward(self, x):
        y = F.dropout(F.relu(self.reduce_norm(self.reduce(x)), inplace=True), 0.2)
        y = F.dropout(F.relu(self.grow_norm(self.grow(y)), inplace=True), 0.2)
        return torch.cat([x, y], 1)


class Transition(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels // 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels // 2)

    def forward(self, x):
        return F.avg_pool2d(F.dropout(F.relu(self.norm(self.conv(x)), inplace=True), 0.2), 2, ceil_mode=True)


class Encoder(nn.Module):
    def __init__(self, growth=24, layers=16, width=256):
        super().__init__()
        channels = 2 * growth
        self.stem = nn.Conv2d(1, channels, 7, stride=2, padding=3, bias=False)
        self.stem_norm = nn.BatchNorm2d(channels)
        blocks = []
        for block in range(3):
            for _ in range(layers):
                blocks.append(DenseLayer(channels, growth))
                channels += growth
            if block < 2:
                blocks.append(Transition(channels))
                channels //= 2
        self.blocks = nn.Sequential(*blocks)
        self.last_norm = nn.BatchNorm2d(channels)
        self.projection = nn.Conv2d(channels, width, 1)
        self.norm = nn.LayerNorm(width)

    def forward(self, pictures, padding):
        x = F.max_pool2d(F.relu(self.stem_norm(self.stem(pictures)), inplace=True), 2, ceil_mode=True)
        x = self.projection(self.last_norm(self.blocks(x))).permute(0, 2, 3, 1)
        for _ in range(4):
            padding = padding[:, ::2, ::2]
        return self.norm(x + positions(padding, x.shape[-1])), padding


def waves(values, width):
    frequencies = 10000 ** (-torch.arange(0, width, 2) / width)
    angles = values[..., None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


def positions(padding, width):
    present = (~padding).float()
    y, x = present.cumsum(1), present.cumsum(2)
    y = y / (y[:, -1:] + 1e-6) * 2 * torch.pi
    x = x / (x[:, :, -1:] + 1e-6) * 2 * torch.pi
    return torch.cat([waves(x, width // 2), waves(y, width // 2)], -1)


class Refinement(nn.Module):
    def __init__(self, heads=8, channels=32):
        super().__init__()
        self.conv = nn.Conv2d(2 * heads, channels, 5, padding=2)
        self.projection = nn.Conv2d(channels, heads, 1, bias=False)
        self.norm = nn.BatchNorm1d(heads)

    def forward(self, previous, own, padding):
        batch, heads, steps, _ = own.shape
        height, width = padding.shape[1:]
        attention = torch.cat([previous, own], 1)
        coverage = attention.cumsum(2) - attention
        maps = coverage.transpose(1, 2).reshape(batch * steps, 2 * heads, height, width)
        hidden = padding.repeat(batch // len(padding), 1, 1).repeat_interleave(steps, 0)[:, None]
        x = self.projection(F.relu(self.conv(maps), inplace=True).masked_fill(hidden, 0.0))
        x = x.permute(0, 2, 3, 1)
        present = ~hidden[:, 0]
        normal = x.clone()
        normal[present] = self.norm(x[present])
        return normal.permute(0, 3, 1, 2).reshape(batch, steps, heads, height * width).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width=256, heads=8):
        super().__init__()
        self.heads = heads
        self.packed = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, query, memory, hidden, refine=None):
        width = query.shape[-1]
        weights, biases = self.packed.weight.chunk(3), self.packed.bias.chunk(3)
        split = lambda x: x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q = split(F.linear(query, weights[0], biases[0])) * (width // self.heads) ** -0.5
        k, v = (split(F.linear(memory, w, b)) for w, b in zip(weights[1:], biases[1:]))
        energies = q @ k.transpose(2, 3)
        weigh = lambda e: F.dropout(e.masked_fill(hidden, float("-inf")).softmax(-1), 0.3)
        attention = weigh(energies)
        if refine is not None:
            attention = weigh(energies - refine(attention))
        return self.output((attention @ v).transpose(1, 2).flatten(2)), attention


class DecoderLayer(nn.Module):
    def __init__(self, width=256, inner=1024):
        super().__init__()
        self.own, self.cross = Attention(), Attention()
        self.expand, self.contract = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory, hidden_words, hidden_cells, refine):
        x = self.norms[0](x + F.dropout(self.own(x, x, hidden_words)[0], 0.3))
        read, attention = self.cross(x, memory, hidden_cells, refine)
        x = self.norms[1](x + F.dropout(read, 0.3))
        inner = F.dropout(F.relu(self.expand(x)), 0.3)
        return self.norms[2](x + F.dropout(self.contract(inner), 0.3)), attention


class Comer(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.encoder = Encoder()
        self.embedding = nn.Embedding(VOCAB, width)
        self.embedding_norm, self.input_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(3))
        self.refinement = Refinement()
        self.output = nn.Linear(width, VOCAB)

    def forward(self, pictures, padding, tokens):
        features, padding = self.encoder(pictures, padding)
        features = features.repeat(2, 1, 1, 1)
        memory = features.flatten(1, 2)
        steps = tokens.shape[1]
        future = torch.ones(steps, steps, dtype=torch.bool).triu(1)
        hidden_words = future | (tokens == PAD)[:, None, None]
        hidden_cells = padding.flatten(1).repeat(2, 1)[:, None, None]
        x = self.embedding_norm(self.embedding(tokens)) + waves(torch.arange(steps).float(), memory.shape[-1])
        x, previous = self.input_norm(x), None
        for layer in self.layers:
            refine = None
            if previous is not None:
                refine = lambda own, previous=previous: self.refinement(previous, own, padding)
            x, previous = layer(x, memory, hidden_words, hidden_cells, refine)
        return self.output(x)


def batch(sizes):
    """Random pictures of these (height, width, tokens), padded, with random formulas in both directions."""
    height, width = max(s[0] for s in sizes), max(s[1] for s in sizes)
    steps = max(s[2] for s in sizes) + 1
    pictures = torch.zeros(len(sizes), 1, height, width)
    padding = torch.ones(len(sizes), height, width, dtype=torch.bool)
    tokens = torch.zeros(2 * len(sizes), steps, dtype=torch.long)
    for i, (h, w, n) in enumerate(sizes):
        pictures[i, :, :h, :w] = (torch.rand(h, w) < 0.1).float()
        padding[i, :h, :w] = False
        for row in (i, i + len(sizes)):
            tokens[row, : n + 1] = torch.randint(3, VOCAB, (n + 1,))
    return pictures, padding, tokens


def step(model, optimizer, data):
    pictures, padding, tokens = data
    loss = F.cross_entropy(model(pictures, padding, tokens).flatten(0, 1), tokens.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def crohme_batches(path, split="train"):
    """The paper's batches: by area, at most 8 pictures and 320 000 pixels, from a CROHME zip."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        captions = next(n for n in names if n.endswith(f"{split}/caption.txt"))
        folder = captions[: -len("caption.txt")]
        samples = []
        for line in archive.read(captions).decode().splitlines():
            name, caption = line.split("\t")
            with archive.open(f"{folder}img/{name}.bmp") as file:
                width, height = struct.unpack("<ii", file.read(26)[18:])
            samples.append((abs(height), width, len(caption.split())))
    batches, current = [], []
    for sample in sorted(samples, key=lambda s: s[0] * s[1]):
        area = sample[0] * sample[1]
        if area > 320_000 or sample[2] > 200 or max(sample[0] / 256, sample[1] / 1024) > 1:
            continue
        if current and (len(current) == 8 or area * (len(current) + 1) > 320_000):
            batches.append(current)
            current = []
        current.append(sample)
    return batches + [current]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--data")
    arguments.add_argument("--every", type=int, default=20)
    arguments.add_argument("--write")
    arguments = arguments.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(arguments.threads)
    model = Comer().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    if arguments.data:
        batches = crohme_batches(arguments.data)[:: arguments.every]
        if arguments.write:
            with open(arguments.write, "w") as file:
                json.dump(batches, file)
        step(model, optimizer, batch(batches[0]))
        start = time.process_time()
        for sizes in batches:
            step(model, optimizer, batch(sizes))
        spent = time.process_time() - start
        pictures = sum(map(len, batches))
        print(f"{len(batches)} batches, {pictures} pictures: {1000 * spent / pictures:.0f} ms a picture")
    else:
        for sizes in [[(128, 384, 40)] * 8, [(96, 200, 16)] * 16]:
            data = batch(sizes)
            times = []
            for _ in range(arguments.rounds + 1):
                start = time.process_time()
                step(model, optimizer, data)
                times.append(time.process_time() - start)
            h, w, n = sizes[0]
            print(f"{len(sizes)} pictures of {h} x {w} with {n} tokens, {arguments.threads} thread(s): "
                  f"{1000 * min(times[1:]):.0f} ms of CPU")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
