"""Recognises images and ink from the command line: python -m comer photo.jpg"""

import argparse
import json
import sys

from . import Recognizer, __version__


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m comer",
        description="Recognise handwritten formulas: images (png, jpeg, bmp, webp, tiff, gif), InkML, or strokes as JSON.",
        epilog="Prints one line of LaTeX per input, after its name and a tab if there are several.",
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="a file, or - for stdin")
    parser.add_argument("--model", metavar="FILE", help="model file (default: the bundled model)")
    parser.add_argument("--nbest", type=int, default=1, metavar="N", help="print N answers per input, the best first")
    parser.add_argument("--json", action="store_true", help="print one JSON object per input")
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads (default: all cores)")
    parser.add_argument("--version", action="version", version=f"comer {__version__}")
    options = parser.parse_args(arguments)

    inputs = [sys.stdin.buffer.read() if name == "-" else name for name in options.inputs]
    try:
        recognizer = Recognizer(options.model)
        results = recognizer.recognize_batch(
            inputs, nbest=options.nbest, alignment=options.json, threads=options.threads, errors="return"
        )
    except Exception as error:  # Wrong arguments and unusable models: a message instead of a traceback.
        sys.exit(f"comer: {error}")
    failed = 0
    for name, result in zip(options.inputs, results):
        if isinstance(result, Exception):
            failed += 1
            print(f"comer: {name}: {result}", file=sys.stderr)
            if options.json:
                print(json.dumps({"name": name, "error": str(result)}))
        elif options.json:
            print(json.dumps({**result.to_dict(), "name": name}))
        else:
            prefix = f"{name}\t" if len(inputs) > 1 else ""
            for candidate in result.candidates:
                print(prefix + candidate.latex)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
