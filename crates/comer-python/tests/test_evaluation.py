"""Scores: the figures of comer-eval on dictionaries, lists and files."""

import comer
import pytest

TRUTH = {"a": "x ^ { 2 }", "b": r"\frac { 1 } { 2 }", "c": "a + b"}


def test_dictionaries_lists_and_files_agree(tmp_path):
    predictions = {"a": "x^2", "b": r"\frac{1}{3}", "c": "a +"}
    report = comer.evaluate(predictions, TRUTH)
    assert report["files"] == 3 and report["missing"] == 0 and report["official"] is None
    assert report["caption"]["exp_rate"] == pytest.approx(100 / 3)
    assert report["caption"]["le1"] == pytest.approx(200 / 3)
    assert report["token_error_rate"] > 0
    assert comer.evaluate(list(predictions.values()), list(TRUTH.values())) == report
    captions, table = tmp_path / "caption.txt", tmp_path / "predictions.tsv"
    captions.write_text("".join(f"{name}\t{formula}\n" for name, formula in TRUTH.items()))
    table.write_text("".join(f"{name}\t{formula}\n" for name, formula in predictions.items()))
    assert comer.evaluate(table, captions) == report
    assert comer.evaluate(str(table), str(captions)) == report


def test_missing_and_unreadable_predictions_are_wrong():
    report = comer.evaluate({"a": "x^2", "b": "{"}, TRUTH)
    assert report["missing"] == 1 and report["unreadable"] == 1
    assert report["caption"]["exp_rate"] == pytest.approx(100 / 3)


def test_recognitions_are_predictions(recognizer, square):
    results = recognizer.recognize_batch([square], greedy=True)
    truth = "x ^ { 2 } + 1"
    assert comer.evaluate(results, [truth])["token"]["exp_rate"] == 100
    assert comer.score(results[0], truth)["correct"]


def test_scores_of_one_prediction():
    assert comer.score("x^2", "x ^ { 2 }") == {
        "correct": True,
        "errors": 0,
        "same_structure": True,
        "token_errors": 2,
        "unreadable": None,
    }
    wrong = comer.score("x^3", "x^2")
    assert not wrong["correct"] and wrong["errors"] == 1 and wrong["same_structure"] and wrong["token_errors"] == 1
    assert comer.score("{", "x")["unreadable"]


def test_errors():
    with pytest.raises(ValueError, match="none of the 1 predictions"):
        comer.evaluate({"z": "x"}, TRUTH)
    with pytest.raises(TypeError, match="dictionary"):
        comer.evaluate(7, TRUTH)
    with pytest.raises(FileNotFoundError):
        comer.evaluate("missing.tsv", TRUTH)
