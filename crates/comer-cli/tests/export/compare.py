"""Prints the largest difference between ONNX Runtime's features and log-probabilities and those of a file of cases."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))
from onnx_greedy import Recognizer  # noqa: E402

recognizer = Recognizer(sys.argv[1])
worst = 0.0
for case in json.loads(Path(sys.argv[2]).read_text()):
    pixels = np.array(case["pixels"]).reshape(case["height"], case["width"])
    features, state = recognizer.start(pixels)
    worst = max(worst, np.abs(features.ravel() - np.array(case["features"])).max())
    for token, expected in zip(case["tokens"], case["logarithms"], strict=True):
        logits, state = recognizer.step(token, state)
        logarithms = logits - np.log(np.exp(logits.astype(np.float64)).sum())
        worst = max(worst, np.abs(logarithms - np.array(expected)).max())
print(worst)
