"""Computes a file of cases with ONNX Runtime on one thread, and prints JSON.

Cases with tokens: `worst` is the largest difference to their features and log-probabilities. Other cases are decoded to
`formulas`, in `seconds` of CPU time.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[4] / "examples"))
from onnx_greedy import Recognizer  # noqa: E402

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
recognizer = Recognizer(sys.argv[1], options)
worst, formulas, seconds = 0.0, [], 0.0
for case in json.loads(Path(sys.argv[2]).read_text()):
    pixels = np.array(case["pixels"], np.uint8).reshape(case["height"], case["width"])
    if "tokens" not in case:
        start = time.process_time()
        formulas.append(recognizer.recognize(pixels))
        seconds += time.process_time() - start
        continue
    features, state = recognizer.start(pixels)
    worst = max(worst, np.abs(features.ravel() - np.array(case["features"])).max())
    for token, expected in zip(case["tokens"], case["log_probs"], strict=True):
        logits, state = recognizer.step(token, state)
        log_probs = logits - np.log(np.exp(logits.astype(np.float64)).sum())
        worst = max(worst, np.abs(log_probs - np.array(expected)).max())
print(json.dumps({"worst": worst, "formulas": formulas, "seconds": seconds}))
