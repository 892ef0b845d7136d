from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypedDict, Union, overload

import numpy as np
import numpy.typing as npt

__version__: str

class _Array(Protocol):
    """NumPy arrays and PIL images."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

_Path = Union[str, "PathLike[str]"]
_Stroke = Union[Sequence[Sequence[float]], npt.NDArray[Any]]
_Input = Union[_Path, bytes, bytearray, memoryview, _Array, Sequence[_Stroke]]
_Formulas = Union[Mapping[str, Union[str, "Recognition"]], Sequence[Union[str, "Recognition"]], _Path]

class ComerError(Exception): ...
class InputError(ComerError): ...
class ModelError(ComerError): ...

class Region(TypedDict):
    left: int
    top: int
    width: int
    height: int
    attention: float
    unread: bool
    reread: bool

class Alignment:
    @property
    def attention(self) -> npt.NDArray[np.float32]: ...
    @property
    def strokes(self) -> npt.NDArray[np.float32] | None: ...
    @property
    def unread(self) -> float: ...
    @property
    def reread(self) -> float: ...
    @property
    def regions(self) -> list[Region]: ...

class Candidate:
    @property
    def latex(self) -> str: ...
    @property
    def mathml(self) -> str: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def token_confidences(self) -> list[float]: ...
    @property
    def symbol_confidences(self) -> list[float | None]: ...
    @property
    def confidence(self) -> float: ...
    @property
    def score(self) -> float: ...
    def _repr_latex_(self) -> str: ...

class Recognition:
    @property
    def latex(self) -> str: ...
    @property
    def mathml(self) -> str: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def token_confidences(self) -> list[float]: ...
    @property
    def symbol_confidences(self) -> list[float | None]: ...
    @property
    def confidence(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def candidates(self) -> list[Candidate]: ...
    @property
    def alignment(self) -> Alignment | None: ...
    @property
    def box(self) -> tuple[float, float, float, float]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def image(self) -> npt.NDArray[np.uint8]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_latex_(self) -> str: ...
    def _repr_html_(self) -> str: ...

class Recognizer:
    def __new__(cls, model: _Path | None = None, *, language_model: _Path | None = None) -> Recognizer: ...
    def recognize(
        self,
        input: _Input,
        *,
        beam: int = 10,
        nbest: int = 1,
        greedy: bool = False,
        left_to_right: bool = False,
        well_formed: bool = True,
        language_model: bool = True,
        alignment: bool = False,
        raw: bool = False,
        remove_lines: bool = True,
        threads: int | None = None,
        timeout: float | None = None,
    ) -> Recognition: ...
    def recognize_all(
        self,
        input: _Input,
        *,
        beam: int = 10,
        nbest: int = 1,
        greedy: bool = False,
        left_to_right: bool = False,
        well_formed: bool = True,
        language_model: bool = True,
        alignment: bool = False,
        raw: bool = False,
        remove_lines: bool = True,
        threads: int | None = None,
        timeout: float | None = None,
    ) -> list[Recognition]: ...
    @overload
    def recognize_batch(
        self,
        inputs: Iterable[_Input],
        *,
        beam: int = 10,
        nbest: int = 1,
        greedy: bool = False,
        left_to_right: bool = False,
        well_formed: bool = True,
        language_model: bool = True,
        alignment: bool = False,
        raw: bool = False,
        remove_lines: bool = True,
        threads: int | None = None,
        timeout: float | None = None,
        errors: Literal["raise"] = "raise",
    ) -> list[Recognition]: ...
    @overload
    def recognize_batch(
        self,
        inputs: Iterable[_Input],
        *,
        beam: int = 10,
        nbest: int = 1,
        greedy: bool = False,
        left_to_right: bool = False,
        well_formed: bool = True,
        language_model: bool = True,
        alignment: bool = False,
        raw: bool = False,
        remove_lines: bool = True,
        threads: int | None = None,
        timeout: float | None = None,
        errors: Literal["return"],
    ) -> list[Recognition | Exception]: ...
    def align(self, input: _Input, latex: str, *, raw: bool = False, remove_lines: bool = True) -> Alignment: ...
    @property
    def vocabulary(self) -> list[str]: ...
    @property
    def parameters(self) -> int: ...
    @property
    def provenance(self) -> dict[str, Any]: ...

class Rates(TypedDict):
    exp_rate: float
    le1: float
    le2: float
    le3: float
    structure: float

class Report(TypedDict):
    files: int
    missing: int
    unreadable: int
    official: Rates | None
    caption: Rates | None
    token: Rates | None
    token_error_rate: float | None
    bleu4: float | None
    symbols: dict[str, float] | None
    ink: dict[str, float] | None
    by_length: list[dict[str, Any]]
    confusions: list[dict[str, Any]]

class Score(TypedDict):
    correct: bool
    errors: int
    same_structure: bool
    token_errors: int
    unreadable: str | None

def aligned(lines: Iterable[str | Recognition | Candidate]) -> str: ...
def evaluate(predictions: _Formulas, truth: _Formulas, *, split: str | None = None) -> Report: ...
def score(prediction: str | Recognition | Candidate, truth: str) -> Score: ...
