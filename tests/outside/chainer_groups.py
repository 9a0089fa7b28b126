"""Run Chainer's own tests group by group on hagane and on Chainer, and print how many pass.

    python tests/outside/chainer_groups.py FOLDER [--chainer] [--lock FILE] [--keep FOLDER] [GROUP]

``FOLDER`` holds a source tree of Chainer 7.8.1; the Python is that of ``chainer_suite.py``, which
runs each file of a group in a process of its own. With ``--chainer`` Chainer itself is tested. With
``--lock`` a file waits for the lock to be free, as ``flock`` has it. ``--keep`` takes the whole
outputs; a file whose output lies there already is counted from it, and not run again.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

SUITE = Path(__file__).with_name("chainer_suite.py")
FUNCTIONS = (
    *("activation", "array", "connection", "evaluation", "loss", "math", "noise"),
    *("normalization", "pooling", "rnn", "util"),
)
LINKS = ("activation", "connection", "loss", "model", "normalization", "rnn", "theano")
TOP = (
    *("backprop", "backprop_utils", "chainer_objects", "computational_graph", "configuration"),
    *("function", "function_and_function_node", "function_hook", "function_node"),
    *("gradient_check", "init", "initializer", "link", "link_hook", "optimizer", "reporter"),
    *("sequential", "variable"),
)
GROUPS = {
    **{f"functions {name}": (f"functions_tests/{name}_tests",) for name in FUNCTIONS},
    **{f"links {name}": (f"links_tests/{name}_tests",) for name in LINKS},
    **{
        name: (f"{name}_tests",)
        for name in (
            *("optimizers", "optimizer_hooks", "initializer", "serializers", "dataset", "datasets"),
            *("distributions", "utils", "function_hooks", "link_hooks", "iterators", "training"),
        )
    },
    "top": tuple(f"test_{name}.py" for name in TOP),
}
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)")
SECONDS = 3600


def files(group: str, folder: Path) -> list[str]:
    """Return the files of a group, by their paths below the folder of tests."""
    tests = folder / "tests" / "chainer_tests"
    found: list[Path] = []
    for each in GROUPS[group]:
        place = tests / each
        found += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    return [str(place.relative_to(tests)) for place in found if place.exists()]


def run(file: str, folder: Path, chainer: bool) -> str:
    """Return the output of pytest on a file."""
    flag = ["--chainer"] if chainer else []
    command = [sys.executable, str(SUITE), *flag, str(folder), "--tb=line", "-rfE", file]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False
    )  # fmt: skip
    return done.stdout + done.stderr


def counted(text: str) -> dict[str, int]:
    """Return the numbers of pytest's last line."""
    found = [line for line in text.splitlines() if COUNTS.search(line) and " in " in line]
    pairs = COUNTS.findall(found[-1]) if found else []
    return {name.rstrip("s") if name == "errors" else name: int(n) for n, name in pairs}


def main() -> None:
    """Run the groups."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chainer", action="store_true")
    parser.add_argument("--lock", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("groups", nargs="*")
    options = parser.parse_intermixed_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    for group in options.groups or GROUPS:
        counts: Counter[str] = Counter()
        for file in files(group, options.folder.resolve()):
            kept = options.keep and options.keep / f"{file.replace('/', '_')}.txt"
            if kept is not None and kept.exists():
                text = kept.read_text()
            else:
                with ExitStack() as held:
                    if options.lock is not None:
                        fcntl.flock(held.enter_context(options.lock.open("w")), fcntl.LOCK_EX)
                    text = run(file, options.folder.resolve(), options.chainer)
                if kept is not None:
                    kept.write_text(text)
            counts.update(counted(text))
        passed = counts.get("passed", 0)
        whole = passed + counts.get("failed", 0) + counts.get("error", 0)
        share = f"{passed / whole:.1%}" if whole else "-"
        print(f"{group}: {passed:,} of {whole:,} ({share})", flush=True)


if __name__ == "__main__":
    main()
