"""Results, options, batches, threads and interruption."""

import concurrent.futures
import multiprocessing
import signal
import threading
import time
import xml.etree.ElementTree

import comer
import numpy as np
import pytest
from conftest import SQUARE


def test_a_result_has_its_formula_in_every_form(recognizer, square):
    result = recognizer.recognize(square, nbest=3)
    assert result.latex == str(result) == SQUARE
    assert result.tokens == ["x", "^", "{", "2", "}", "+", "1"]
    assert len(result.token_confidences) == len(result.tokens)
    inked = [confidence is not None for confidence in result.symbol_confidences]
    assert inked == [token not in "{}^_" for token in result.tokens]
    assert all(0 <= confidence <= 1 for confidence in [result.confidence, *result.token_confidences])
    scores = [candidate.score for candidate in result.candidates]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and scores[0] == result.score
    math = xml.etree.ElementTree.fromstring(result.mathml)
    assert "".join(math.itertext()).replace(" ", "") == "x2+1"
    assert repr(result).startswith("Recognition(latex=")
    assert result.alignment is None


def test_a_page_has_a_result_for_each_formula(recognizer, square_strokes):
    left, top, right, bottom = recognizer.recognize(square_strokes).box
    down = 4 * (bottom - top)
    page = square_strokes + [[(x, y + down) for x, y in stroke] for stroke in square_strokes]
    first, second = recognizer.recognize_all(page)
    assert first.latex == second.latex == SQUARE
    assert first.box == (left, top, right, bottom)
    assert second.box == pytest.approx((left, top + down, right, bottom + down))
    assert second.to_dict()["strokes"] == list(range(len(square_strokes), 2 * len(square_strokes)))


def test_doubts_are_warnings(recognizer, square):
    assert recognizer.recognize(square).warnings == []
    rng = np.random.default_rng(3)
    scrawl = [[tuple(point) for point in rng.uniform(0, 300, (40, 2))] for _ in range(3)]
    result = recognizer.recognize(scrawl)
    assert result.confidence < 0.5
    assert any("confidence" in warning for warning in result.warnings)
    assert [warning["message"] for warning in result.to_dict()["warnings"]] == result.warnings


def test_alignment_is_arrays(recognizer, square):
    result = recognizer.recognize(square, alignment=True)
    attention, strokes = result.alignment.attention, result.alignment.strokes
    height, width = result.image.shape
    assert attention.dtype == np.float32 and attention.flags.writeable
    assert attention.shape == (len(result.tokens), -(-height // 16), -(-width // 16))
    assert np.allclose(attention.sum((1, 2)), 1, atol=1e-4)
    assert strokes.shape[0] == len(result.tokens) and strokes.shape[1] >= 4
    # x is written to the left of 1.
    centre = lambda token: (attention[result.tokens.index(token)].sum(0) * np.arange(attention.shape[2])).sum()
    assert centre("x") < centre("1")
    assert 0 <= result.alignment.unread <= 1 and 0 <= result.alignment.reread <= 1
    assert sum(region["unread"] for region in result.alignment.regions) == 0
    assert recognizer.align(square, SQUARE).attention == pytest.approx(attention, abs=1e-5)
    with pytest.raises(comer.ComerError, match="not in the vocabulary"):
        recognizer.align(square, r"\nonsense")


def test_jupyter_shows_formula_and_attention(recognizer, square):
    result = recognizer.recognize(square)
    assert result._repr_latex_() == f"$\\displaystyle {SQUARE}$"
    html = result._repr_html_()
    page = xml.etree.ElementTree.fromstring(html)
    panels = page.findall(".//figure")
    shown = [panel.find("figcaption").text.strip() for panel in panels]
    assert shown == [token for token in result.tokens if token not in "{}^"]
    assert all(panel.find(".//rect") is not None for panel in panels)
    assert "<msup" in html
    # All results of a notebook are in one document: their ids differ.
    ids = {xml.etree.ElementTree.fromstring(result._repr_html_()).find(".//path").get("id") for _ in range(2)}
    assert len(ids) == 2


def test_dictionaries(recognizer, square):
    found = recognizer.recognize(square, nbest=2, alignment=True).to_dict()
    assert found["latex"] == SQUARE and len(found["alternatives"]) == 1
    assert found["tokens"][0]["token"] == "x" and set(found["ink"]) == {"unread", "reread"}


def test_batches_keep_the_order_and_equal_single_inputs(recognizer, samples):
    single = [recognizer.recognize(path, greedy=True) for path in samples]
    for threads in [1, 2, None]:
        batch = recognizer.recognize_batch(samples, greedy=True, threads=threads)
        assert [result.latex for result in batch] == [result.latex for result in single]
        assert [result.confidence for result in batch] == [result.confidence for result in single]
    assert recognizer.recognize_batch([]) == []
    assert len(recognizer.recognize_batch((path for path in samples[:2]), greedy=True)) == 2


def test_errors_in_batches(recognizer, square):
    inputs = [square, b"nothing", square, 7]
    found = recognizer.recognize_batch(inputs, greedy=True, errors="return")
    assert [type(item).__name__ for item in found] == ["Recognition", "InputError", "Recognition", "TypeError"]
    with pytest.raises(comer.InputError):
        recognizer.recognize_batch(inputs[:3], greedy=True)
    with pytest.raises(ValueError, match="errors"):
        recognizer.recognize_batch(inputs, errors="ignore")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"threads": 0}, "threads"), ({"beam": 0}, "beam"), ({"timeout": -1}, "timeout"), ({"timeout": float("nan")}, "timeout")],
)
def test_options_out_of_range(recognizer, square, options, message):
    with pytest.raises(ValueError, match=message):
        recognizer.recognize(square, **options)


def test_a_timeout(recognizer, square):
    with pytest.raises(TimeoutError, match="deadline"):
        recognizer.recognize(square, timeout=0)


def test_models(recognizer, tmp_path):
    assert len(recognizer.vocabulary) == 113 or r"\frac" in recognizer.vocabulary
    assert recognizer.parameters > 1_000_000 and isinstance(recognizer.provenance, dict)
    bad = tmp_path / "model.safetensors"
    bad.write_bytes(b"nothing")
    with pytest.raises(comer.ModelError, match="model.safetensors"):
        comer.Recognizer(bad)
    with pytest.raises(FileNotFoundError):
        comer.Recognizer("missing.safetensors")
    with pytest.raises(comer.ModelError, match="language model"):
        comer.Recognizer(language_model=bad)


def test_the_gil_is_released(recognizer, samples):
    """A Python thread runs while a batch is recognised."""
    done, counted = threading.Event(), [0]

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = counted[0]
    recognizer.recognize_batch(samples, threads=1)
    during = counted[0] - before
    done.set()
    counter.join()
    assert during > 5


def test_threads_share_a_recognizer(recognizer, samples):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda path: recognizer.recognize(path, greedy=True).latex, samples))
    assert found == [result.latex for result in recognizer.recognize_batch(samples, greedy=True)]


def read_in_child(recognizer, path, queue):
    queue.put((recognizer.recognize(path, greedy=True).latex, comer.Recognizer().recognize(path, greedy=True).latex))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_recognise(recognizer, square):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=read_in_child, args=(recognizer, square, queue))
    child.start()
    assert queue.get(timeout=60) == (SQUARE, SQUARE)
    child.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_ctrl_c_interrupts_a_batch(recognizer, samples):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            recognizer.recognize_batch(samples * 1000)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_lines_are_aligned(recognizer, square):
    lines = [recognizer.recognize(square), "= 5"]
    assert comer.aligned(lines) == rf"\begin{{aligned}} {SQUARE} \\ &= 5 \end{{aligned}}"
    assert comer.aligned([]) == ""
    with pytest.raises(TypeError):
        comer.aligned([3])
