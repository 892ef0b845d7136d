"""Shared fixtures: one recogniser for all tests, and the samples of the repository."""

import xml.etree.ElementTree
from pathlib import Path

import comer
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def recognizer():
    return comer.Recognizer()


@pytest.fixture(scope="session")
def samples():
    return sorted((REPOSITORY / "samples").glob("*.inkml"))


@pytest.fixture(scope="session")
def square():
    return REPOSITORY / "samples" / "square.inkml"


@pytest.fixture(scope="session")
def square_strokes(square):
    traces = xml.etree.ElementTree.parse(square).iter("{http://www.w3.org/2003/InkML}trace")
    return [[tuple(map(float, point.split()[:2])) for point in trace.text.split(",")] for trace in traces]


SQUARE = "x^{2} + 1"
