"""Writes opencv-scaling.json: what OpenCV makes of a few patterns, for the test that our scaling agrees with it.

Needs `pip install opencv-python-headless numpy`.
"""
import json
import pathlib

import cv2
import numpy as np


def pattern(width, height):
    """The test's own pattern: neither smooth nor periodic."""
    y, x = np.mgrid[0:height, 0:width].astype(np.uint32)
    value = x * np.uint32(2654435761) + y * np.uint32(2246822519) + x * y * np.uint32(3266489917)
    return (value >> 24).astype(np.uint8)


cases = []
for width, height, factor in [
    (40, 23, 0.7), (40, 23, 1.4), (37, 61, 0.93), (17, 16, 1.0625), (64, 64, 0.5),
    (1500, 90, 1024 / 1500), (300, 400, 256 / 400), (9, 30, 16 / 9), (5, 5, 16 / 5),
]:
    scaled = cv2.resize(pattern(width, height), None, fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
    step = max(1, scaled.size // 600)
    cases.append({
        "width": width, "height": height, "factor": factor,
        "scaled": list(scaled.shape[::-1]), "step": step, "pixels": scaled.ravel()[::step].tolist(),
    })
pathlib.Path(__file__).with_name("opencv-scaling.json").write_text(
    "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
