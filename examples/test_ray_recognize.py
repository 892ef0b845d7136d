"""Ray's answers are those of the command line, also if a worker is killed. Not run by check: Ray is large.

    pip install comer "ray[data]" pytest
    COMER=target/release/comer PICTURES=folder pytest examples/test_ray_recognize.py

`PICTURES` is a folder of pictures (default: the samples of the repository). With a few hundred pictures a worker is killed on the
way; fewer are read before that.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

REPOSITORY = Path(__file__).parents[1]
PICTURES = Path(os.environ.get("PICTURES", REPOSITORY / "samples"))
FILES = sorted(path for path in PICTURES.iterdir() if path.suffix in (".bmp", ".png", ".inkml"))
# A batch of 8 pictures is a task; this many tasks keep two workers busy long enough to kill one.
ENOUGH = 100


def expected():
    """What `comer recognize` answers for each path."""
    program = os.environ.get("COMER", REPOSITORY / "target/release/comer")
    command = [program, "recognize", "--json", *map(str, FILES)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    answers = map(json.loads, lines)
    return {answer["name"]: (answer.get("latex"), answer.get("confidence")) for answer in answers}


def workers():
    """The processes of the actors of Ray that are at work, by what they call themselves."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::MapWorker(") and b"Reader" in command and b".submit" in command:
            found.append(int(folder.name))
    return found


def run(pictures, answers, kill=False):
    """Runs the example; with `kill`, ends one of its workers at work. Returns all workers seen, and the one that was killed."""
    command = [sys.executable, REPOSITORY / "examples/ray_recognize.py", pictures, answers, "--workers", "2", "--batch", "8"]
    log = answers.with_suffix(".log")
    # Ray's workers give way to everything else, which takes long on a busy machine.
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    seen, killed = set(), None
    with open(log, "w") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
        while process.poll() is None:
            at_work = workers()
            seen.update(at_work)
            if kill and killed is None and len(seen) == 2 and at_work:
                killed = at_work[0]
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.05)
    assert process.returncode == 0, log.read_text()
    return seen, killed


def check(answers):
    table = pyarrow.parquet.read_table(answers).to_pylist()
    found = {row["path"]: (row["latex"], row["confidence"]) for row in table}
    assert len(table) == len(found) == len(FILES)
    for path, (latex, confidence) in expected().items():
        assert found[path][0] == latex, path
        assert found[path][1] == pytest.approx(confidence, abs=1e-6), path
    assert all(row["warnings"] == [] or isinstance(row["warnings"][0], str) for row in table)
    assert not any(row["error"] for row in table)


def test_a_folder(tmp_path):
    kill = len(FILES) >= ENOUGH
    seen, killed = run(PICTURES, tmp_path / "answers", kill)
    check(tmp_path / "answers")
    if kill:
        assert killed is not None and len(seen) >= 3, f"killed {killed}, seen {seen}: no worker took its place"


def test_parquet_and_damaged_pictures(tmp_path):
    rows = [{"path": str(path), "bytes": path.read_bytes()} for path in FILES[:12]]
    rows.append({"path": "damaged.png", "bytes": b"\x89PNG\r\n\x1a\nnothing"})
    pictures = tmp_path / "pictures.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), pictures)
    run(pictures, tmp_path / "answers")
    found = {row["path"]: row for row in pyarrow.parquet.read_table(tmp_path / "answers").to_pylist()}
    assert len(found) == len(rows)
    damaged = found.pop("damaged.png")
    assert damaged["latex"] is None and "image" in damaged["error"].lower()
    assert all(row["latex"] and not row["error"] for row in found.values())
