"""Shared fixtures: one recogniser for all tests, and the samples of the repository."""

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


SQUARE = "x^{2} + 1"
