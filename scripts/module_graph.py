#!/usr/bin/env python3
"""Proves that the modules of every crate form a graph without cycles.

A module is a top-level file or directory of `crates/*/src`; `lib.rs` and `main.rs` join them and do not count. An edge is
a path that starts with `crate::` (or with `super::` in a file directly below `src`), anywhere in the code but in comments
and in test modules. Directories are checked inside as well: their files may use each other, but not in a circle.

usage: scripts/module_graph.py [--print] [CRATE...]
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOTS = {"lib", "main"}


def code(path):
    """The text of a file without comments, strings that hold paths, and test modules."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def first_names(text, prefix):
    """The first path segment after each occurrence of `prefix`, with groups in braces opened."""
    names = set()
    for match in re.finditer(prefix, text):
        rest = text[match.end():]
        if not rest.startswith("{"):
            names.update(re.findall(r"^\w+", rest))
            continue
        depth, start = 0, True
        for token in re.findall(r"[{},]|\w+|[^\w{},]+", rest):
            if token == "{":
                depth += 1
                start = depth == 1
            elif token == "}":
                depth -= 1
                if depth == 0:
                    break
            elif token == "," and depth == 1:
                start = True
            elif start and re.match(r"\w", token):
                names.add(token)
                start = False
    return names


def modules(folder):
    """The modules of a folder with their files, tests left out."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix == ".rs":
            found.setdefault(path.stem, []).append(path)
        elif path.is_dir():
            found.setdefault(path.name, []).extend(sorted(path.rglob("*.rs")))
    for name in ROOTS | {"mod", "tests"}:
        found.pop(name, None)
    return {
        name: [path for path in files if "tests" not in path.relative_to(folder).with_suffix("").parts]
        for name, files in found.items()
    }


def edges(folder, path_from_crate):
    """Which module of `folder` uses which; `path_from_crate` is the Rust path of the folder."""
    members = modules(folder)
    absolute = "crate::" + "".join(f"{part}::" for part in path_from_crate)
    graph = {}
    for name, files in members.items():
        used = set()
        for path in files:
            text = code(path)
            used |= first_names(text, r"\b" + absolute)
            inside = len(path.relative_to(folder).with_suffix("").parts)
            depth = inside - (1 if path.stem == "mod" else 0)
            used |= first_names(text, r"(?<![\w:])" + "super::" * depth)
        graph[name] = {other for other in used if other in members and other != name}
    return graph


def cycle(graph):
    """A cycle of the graph as a list of modules, or None."""
    state = {}

    def visit(node, path):
        state[node] = "open"
        for other in sorted(graph[node]):
            if state.get(other) == "open":
                return path[path.index(other):] + [other]
            if other not in state:
                found = visit(other, path + [other])
                if found:
                    return found
        state[node] = "done"
        return None

    for node in sorted(graph):
        if node not in state:
            found = visit(node, [node])
            if found:
                return found
    return None


def check(crate, verbose):
    """The number of cycles found in a crate; prints them."""
    source = crate / "src"
    if not source.is_dir():
        return 0
    failed = 0
    folders = [source] + sorted(path for path in source.rglob("*") if path.is_dir() and path.name != "tests")
    for folder in folders:
        path = folder.relative_to(source).parts
        graph = edges(folder, path)
        name = "::".join([crate.name, *path])
        if verbose:
            for module, used in graph.items():
                print(f"{name}::{module} -> {', '.join(sorted(used)) or '-'}")
        found = cycle(graph)
        if found:
            failed += 1
            print(f"{name}: modules use each other in a circle: {' -> '.join(found)}")
    return failed


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--print"]
    crates = [ROOT / "crates" / name for name in arguments] or sorted((ROOT / "crates").iterdir())
    failed = sum(check(crate, "--print" in sys.argv) for crate in crates if crate.is_dir())
    if failed:
        return 1
    print(f"checked: the module graphs of {len(crates)} crates have no cycle")
    return 0


if __name__ == "__main__":
    sys.exit(main())
