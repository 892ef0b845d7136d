#!/usr/bin/env python3
"""How many of the formulas in samples/ the program reads when they are tilted.

    python3 benches/tilt.py [--comer target/release/comer] [--model FILE] [--angles 10,20,30]

Each sample is rotated by the angle in both directions and recognised with the default search.
"""
import argparse
import math
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def rotate(inkml: str, degrees: float) -> str:
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))

    def trace(match: re.Match) -> str:
        points = (tuple(map(float, point.split()[:2])) for point in match[2].split(","))
        turned = (f"{cosine * x - sine * y:.2f} {sine * x + cosine * y:.2f}" for x, y in points)
        return match[1] + ", ".join(turned) + match[3]

    return re.sub(r"(<trace\b[^>]*>)([^<]*)(</trace>)", trace, inkml)


def recognize(arguments: argparse.Namespace, inkml: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".inkml") as file:
        file.write(inkml)
        file.flush()
        model = ["--model", arguments.model] if arguments.model else []
        command = [arguments.comer, "recognize", "-q", *model, file.name]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comer", default=ROOT / "target/release/comer")
    parser.add_argument("--model")
    parser.add_argument("--angles", default="10,20,30")
    arguments = parser.parse_args()
    samples = {path.stem: path.read_text() for path in sorted((ROOT / "samples").glob("*.inkml"))}
    upright = {name: recognize(arguments, inkml) for name, inkml in samples.items()}
    for angle in [0.0] + [float(angle) for angle in arguments.angles.split(",")]:
        for degrees in sorted({-angle, angle}):
            wrong = [
                name
                for name, inkml in samples.items()
                if recognize(arguments, rotate(inkml, degrees)) != upright[name]
            ]
            print(f"{degrees:+5.0f} degrees: {len(samples) - len(wrong)} of {len(samples)} as upright", *wrong)


if __name__ == "__main__":
    main()
