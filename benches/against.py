"""The encoder beside ONNX Runtime and PyTorch in one run, on the same image sizes.

    pip install numpy onnx onnxruntime torch             # torch may be left out
    cargo bench -p comer --bench encoder --no-run        # prints the path of the program
    python benches/against.py PROGRAM
    python benches/against.py PROGRAM --isa avx2 --threads 2

The network is the paper's, with random weights and every batch norm folded into the convolution before it, as all three
programs would run it. Everything takes its turn in each round and the best round counts, so that other load affects all
alike. One thread is measured in CPU time, several in wall time.
"""

import argparse
import json
import subprocess
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

try:
    import torch
    from torch.nn import functional as F
except ModuleNotFoundError:
    torch = None

SIZES = [(384, 128), (265, 95), (668, 172)]
GROWTH, LAYERS, WIDTH = 24, 16, 256


def convolutions():
    """(inputs, outputs, side) of each convolution, in order."""
    channels = 2 * GROWTH
    found = [(1, channels, 7)]
    for block in range(3):
        for _ in range(LAYERS):
            found += [(channels, 4 * GROWTH, 1), (4 * GROWTH, GROWTH, 3)]
            channels += GROWTH
        if block < 2:
            found.append((channels, channels // 2, 1))
            channels //= 2
    return found + [(channels, WIDTH, 1)]


def random_weights():
    generator = np.random.default_rng(1)
    shapes = [(o, i, s, s) for i, o, s in convolutions()]
    draw = lambda shape: generator.standard_normal(shape, np.float32) * (2 / np.prod(shape[1:])) ** 0.5
    return [(draw(shape).astype(np.float32), np.zeros(shape[0], np.float32)) for shape in shapes]


class Pytorch:
    """The network in PyTorch, in the faster of its two memory formats."""

    def __init__(self, weights, threads):
        torch.set_num_threads(threads)
        self.weights = {}
        for form in (torch.contiguous_format, torch.channels_last):
            tensors = [(torch.from_numpy(w).contiguous(memory_format=form), torch.from_numpy(b)) for w, b in weights]
            self.weights[form] = tensors

    def forward(self, x, weights):
        weights = iter(weights)
        conv = lambda x, **options: F.relu(F.conv2d(x, *next(weights), **options), inplace=True)
        x = F.max_pool2d(conv(x, stride=2, padding=3), 2, ceil_mode=True)
        for block in range(3):
            for _ in range(LAYERS):
                x = torch.cat([x, conv(conv(x), padding=1)], 1)
            if block < 2:
                x = F.avg_pool2d(conv(x), 2, ceil_mode=True)
        return F.conv2d(x, *next(weights))

    def run(self, image, clock):
        best = float("inf")
        for form, weights in self.weights.items():
            x = torch.from_numpy(image).contiguous(memory_format=form)
            with torch.inference_mode():
                start = clock()
                self.forward(x, weights)
                best = min(best, clock() - start)
        return best


class OnnxRuntime:
    def __init__(self, weights, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        model = onnx_model(weights).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(self, image, clock):
        start = clock()
        self.session.run(None, {"image": image})
        return clock() - start


def onnx_model(weights):
    nodes, tensors, count = [], [], 0

    def add(kind, inputs, **attributes):
        nonlocal count
        count += 1
        nodes.append(helper.make_node(kind, inputs, [f"x{count}"], **attributes))
        return f"x{count}"

    remaining = iter(weights)

    def conv(x, relu=True, **attributes):
        names = [f"w{len(tensors)}", f"b{len(tensors)}"]
        tensors.extend(numpy_helper.from_array(t, name) for t, name in zip(next(remaining), names))
        x = add("Conv", [x] + names, **attributes)
        return add("Relu", [x]) if relu else x

    pool = dict(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    x = add("MaxPool", [conv("image", strides=[2, 2], pads=[3] * 4)], **pool)
    for block in range(3):
        for _ in range(LAYERS):
            x = add("Concat", [x, conv(conv(x), pads=[1] * 4)], axis=1)
        if block < 2:
            x = add("AveragePool", [conv(x)], **pool)
    x = conv(x, relu=False)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, "height", "width"])
    features = helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, WIDTH, "rows", "columns"])
    graph = helper.make_graph(nodes, "encoder", [image], [features], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program", help="the program of `cargo bench -p comer --bench encoder --no-run`")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--isa", help="instruction set of ours")
    arguments = arguments.parse_args()
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    weights = random_weights()
    rivals = {"ONNX Runtime": OnnxRuntime(weights, arguments.threads)}
    images = {size: np.random.default_rng(2).random((1, 1, size[1], size[0]), np.float32) for size in SIZES}
    if torch:
        rivals["PyTorch"] = Pytorch(weights, arguments.threads)
        expected = rivals["ONNX Runtime"].session.run(None, {"image": images[SIZES[1]]})[0]
        with torch.inference_mode():
            plain = next(iter(rivals["PyTorch"].weights.values()))
            found = rivals["PyTorch"].forward(torch.from_numpy(images[SIZES[1]]), plain).numpy()
        assert np.abs(expected - found).max() < 1e-3 * np.abs(expected).max(), "the networks differ"

    command = [arguments.program, "--json", "--rounds", "2", "--threads", str(arguments.threads)]
    command += ["--isa", arguments.isa] if arguments.isa else []
    best = {}
    for _ in range(arguments.rounds):
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for size in SIZES:
            times = {"comer": ours[f"{size[0]}x{size[1]}"]}
            for name, rival in rivals.items():
                times[name] = 1000 * min(rival.run(images[size], clock) for _ in range(2))
            for name, spent in times.items():
                best[name, size] = min(best.get((name, size), spent), spent)
    versions = [f"onnxruntime {onnxruntime.__version__}", f"torch {torch.__version__}" if torch else "no torch"]
    print(f"{', '.join(versions)}, {arguments.threads} thread(s)")
    print(f"{'ms':14}" + "".join(f"{f'{w} x {h}':>14}" for w, h in SIZES))
    for name in ["comer", *rivals]:
        print(f"{name:14}" + "".join(f"{best[name, size]:14.1f}" for size in SIZES))
    for name in rivals:
        ratios = (best["comer", size] / best[name, size] for size in SIZES)
        print(f"{f'comer / {name}':22}" + "".join(f"{ratio:14.2f}"[(8 if i == 0 else 0):] for i, ratio in enumerate(ratios)))


if __name__ == "__main__":
    main()
