"""Recognises a formula with the files of `comer export` and ONNX Runtime, by greedy decoding from the left.

    pip install onnxruntime pillow numpy
    comer export onnx
    python3 examples/onnx_greedy.py onnx formula.png

The picture must be white ink on black as in CROHME (ink about 3 pixels wide, symbols about 28 high), at most 256 pixels high
and 1024 wide. `comer recognize --debug-image formula.png` writes such a picture for any photograph or ink.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image


class Recognizer:
    def __init__(self, folder, options=None):
        folder, providers = Path(folder), ["CPUExecutionProvider"]
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx", options, providers)
        self.decoder = onnxruntime.InferenceSession(folder / "decoder_step.onnx", options, providers)
        self.vocab = json.loads((folder / "vocab.json").read_text())

    def start(self, pixels):
        """Encodes a picture (height x width, 0 to 255) and returns the decoder's first state."""
        image = (np.asarray(pixels, np.float32) / 255)[None, None]
        features, keys, values = self.encoder.run(["features", "memory_keys", "memory_values"], {"image": image})
        state = {"memory_keys": keys, "memory_values": values}
        for tensor in self.decoder.get_inputs():
            if tensor.name in ("self_keys", "self_values"):
                layers, _, heads, _, width = tensor.shape
                state[tensor.name] = np.zeros((layers, 1, heads, 0, width), np.float32)
            elif tensor.name == "coverage":
                layers, _, maps, _, _ = tensor.shape
                state[tensor.name] = np.zeros((layers, 1, maps, *features.shape[1:3]), np.float32)
        return features, state

    def step(self, token, state):
        """Feeds one token; returns the logits of the next one and the new state."""
        names = [output.name for output in self.decoder.get_outputs()]
        outputs = dict(zip(names, self.decoder.run(names, {"token": np.array([token]), **state})))
        new = {name.removeprefix("new_"): value for name, value in outputs.items() if name != "logits"}
        return outputs["logits"][0], {**state, **new}

    def recognize(self, pixels, most=200):
        _, state = self.start(pixels)
        token, tokens = self.vocab["sos"], []
        while len(tokens) < most:
            logits, state = self.step(token, state)
            token = int(logits.argmax())
            if token == self.vocab["eos"]:
                break
            tokens.append(self.vocab["tokens"][token])
        return " ".join(tokens)


if __name__ == "__main__":
    print(Recognizer(sys.argv[1]).recognize(Image.open(sys.argv[2]).convert("L")))
