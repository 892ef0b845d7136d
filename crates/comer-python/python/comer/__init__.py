r"""Handwritten mathematics in, LaTeX out.

>>> import comer
>>> recognizer = comer.Recognizer()
>>> recognizer.recognize("samples/quadratic.inkml").latex
'x = \\frac{-b + \\sqrt{b^{2} - 4ac}}{2a}'

`Recognizer.recognize` takes paths, bytes, NumPy arrays, PIL images, InkML and pen strokes; `Recognizer.recognize_batch` takes
many of them. `evaluate` and `score` compute the metrics of the CROHME competition.
"""

from ._comer import (
    Alignment,
    Candidate,
    ComerError,
    InputError,
    ModelError,
    Recognition,
    Recognizer,
    __version__,
    aligned,
    evaluate,
    score,
)

__all__ = [
    "Alignment",
    "Candidate",
    "ComerError",
    "InputError",
    "ModelError",
    "Recognition",
    "Recognizer",
    "__version__",
    "aligned",
    "evaluate",
    "score",
]
