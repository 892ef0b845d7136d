"""The package as a whole: its program, its documentation and its types, and that it reads what `comer` reads."""

import ast
import doctest
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import comer
import pytest
from comer import _comer
from conftest import SQUARE, REPOSITORY


def run(*arguments, **options):
    command = [sys.executable, "-m", "comer", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_the_program_prints_latex(square):
    assert run(square).stdout == SQUARE + "\n"
    with open(square) as file:
        assert run("-", "--nbest", "2", stdin=file).stdout.startswith(SQUARE + "\n")


def test_the_program_reports_errors_and_goes_on(square):
    found = run(square, "missing.png", "--json")
    assert found.returncode == 1 and "missing.png" in found.stderr
    first, second = map(json.loads, found.stdout.splitlines())
    assert first["latex"] == SQUARE and first["name"] == str(square) and "error" in second
    assert run(square, "--model", "missing.safetensors").stderr.startswith("comer: ")


def test_all_samples_are_read_as_by_the_command_line(recognizer, samples):
    """`COMER` names the program; check sets it."""
    program = os.environ.get("COMER")
    if program is None:
        if os.environ.get("COMER_REQUIRE_ALL") == "1":
            pytest.fail("COMER does not name the comer program (COMER_REQUIRE_ALL=1)")
        pytest.skip("COMER does not name the comer program")
    command = [program, "recognize", "--json", "--nbest", "2", *map(str, samples)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    results = recognizer.recognize_batch(samples, nbest=2, alignment=True)
    for line, result in zip(lines, results, strict=True):
        expected = json.loads(line)
        for key in ("name", "milliseconds", "formulas"):
            del expected[key]
        assert result.to_dict() == expected


def documented():
    yield comer
    for name in comer.__all__:
        item = getattr(comer, name)
        if not name.startswith("_"):
            yield item
        if inspect.isclass(item) and not issubclass(item, Exception):
            yield from (getattr(item, method) for method in vars(item) if not method.startswith("_"))


def test_everything_is_documented_and_the_examples_are_right(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    parser, runner, examples = doctest.DocTestParser(), doctest.DocTestRunner(), 0
    for item in documented():
        assert item.__doc__, item
        test = parser.get_doctest(item.__doc__, {"comer": comer}, getattr(item, "__name__", "?"), None, None)
        examples += len(test.examples)
        assert runner.run(test).failed == 0
    assert examples > 10


def test_the_stubs_name_what_there_is():
    stub = ast.parse((Path(comer.__file__).parent / "_comer.pyi").read_text())
    types_only = {"Region", "Rates", "Report", "Score"}
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    classes = {name: node for name, node in classes.items() if not name.startswith("_") and name not in types_only}
    functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in comer.__all__ if not name.startswith("_")}
    assert set(classes) | functions == public
    for name, node in classes.items():
        declared = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__new__"}
        existing = {method for method in vars(getattr(_comer, name)) if not method.startswith("__")}
        assert declared == existing, name
    for item, arguments in [(comer.Recognizer.recognize, "recognize"), (comer.Recognizer.recognize_batch, "recognize_batch")]:
        declared = next(
            node for node in classes["Recognizer"].body if isinstance(node, ast.FunctionDef) and node.name == arguments
        )
        names = [argument.arg for argument in declared.args.args + declared.args.kwonlyargs]
        assert names == list(inspect.signature(item).parameters)


def test_it_works_without_numpy(square):
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "import comer; print(comer.Recognizer().recognize(sys.argv[1], greedy=True, alignment=True).latex)"
    )
    found = subprocess.run([sys.executable, "-c", program, str(square)], capture_output=True, text=True)
    assert found.stdout.strip() == SQUARE, found.stderr


def test_the_notebook_runs(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    notebook = json.loads((REPOSITORY / "examples" / "recognize.ipynb").read_text())
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["report"]["caption"]["exp_rate"] == 100
