"""Recognises many pictures on one machine or a Ray cluster: a folder of pictures or parquet files in, parquet files out.

    pip install comer "ray[data]"
    python3 examples/ray_recognize.py pictures/ answers/ --workers 8
    python3 examples/ray_recognize.py pictures.parquet answers/ --workers 64 --address auto

A folder is searched for pictures and ink; parquet files need the columns `path` and `bytes`. Each worker is an actor with one
recogniser on one core. The answers have the columns `path`, `latex`, `confidence`, `warnings` (what may be wrong with the
picture) and `error` (null if the picture was read). Ray restarts workers that die and gives their pictures to others.
"""

import argparse

import comer
import pyarrow
import ray

SUFFIXES = ["bmp", "gif", "inkml", "jpeg", "jpg", "png", "tif", "tiff", "webp"]


class Reader:
    """One recogniser, in a process of its own."""

    def __init__(self, model=None, greedy=False):
        self.recognizer = comer.Recognizer(model)
        self.options = {"greedy": greedy, "threads": 1, "errors": "return"}

    def __call__(self, batch):
        """Recognises a table with the columns `path` and `bytes`."""
        results = self.recognizer.recognize_batch(batch["bytes"].to_pylist(), **self.options)
        found = [not isinstance(result, Exception) for result in results]
        pairs = list(zip(found, results))
        columns = {
            "path": batch["path"],
            "latex": pyarrow.array([result.latex if ok else None for ok, result in pairs], pyarrow.string()),
            "confidence": pyarrow.array([result.confidence if ok else None for ok, result in pairs], pyarrow.float32()),
            "warnings": pyarrow.array([warnings(result) if ok else [] for ok, result in pairs], pyarrow.list_(pyarrow.string())),
            "error": pyarrow.array([None if ok else str(result) for ok, result in pairs], pyarrow.string()),
        }
        return pyarrow.table(columns)


def warnings(result):
    """What the recogniser says about the picture, as text."""
    found = result.to_dict().get("warnings", [])
    return [warning if isinstance(warning, str) else warning["message"] for warning in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", help="a folder of pictures, or parquet files (path ends in .parquet)")
    parser.add_argument("answers", help="the folder for the parquet files")
    parser.add_argument("--workers", type=int, default=2, help="number of recognisers, one core each")
    parser.add_argument("--batch", type=int, default=16, help="pictures per task: what is repeated if a worker dies")
    parser.add_argument("--address", help="a running cluster, such as auto (default: start Ray on this machine)")
    parser.add_argument("--model", help="model file, on all machines (default: the bundled model)")
    parser.add_argument("--greedy", action="store_true", help="the fastest search")
    options = parser.parse_args()

    if options.address:
        ray.init(options.address)
    else:
        # Reading and writing take little: a share of a core beside the workers.
        ray.init(num_cpus=options.workers + 1, object_store_memory=200 << 20, include_dashboard=False)
    if options.pictures.endswith(".parquet"):
        pictures = ray.data.read_parquet(options.pictures, columns=["path", "bytes"])
    else:
        pictures = ray.data.read_binary_files(options.pictures, include_paths=True, file_extensions=SUFFIXES)
    answers = pictures.map_batches(
        Reader,
        fn_constructor_kwargs={"model": options.model, "greedy": options.greedy},
        batch_size=options.batch,
        batch_format="pyarrow",
        concurrency=options.workers,
        num_cpus=1,
    )
    answers.write_parquet(options.answers)


if __name__ == "__main__":
    main()
