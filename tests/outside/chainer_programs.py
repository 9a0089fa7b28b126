"""Draw whole define-by-run programs, run each on Chainer and on hagane, and compare all they note.

    python tests/outside/chainer_programs.py --chainer PYTHON [--show] [FIRST [COUNT]]

``PYTHON`` is that of an environment with Chainer 7.8.1 (``chainer_oracle.py`` says how to make
one). A program (``tests/nn/drawn``) follows from its number: a model with branches, loops, links
and a user's own functions, an optimizer with hooks, and steps of training in many styles:
penalties on gradients, parts cut off, frozen or copied, snapshots that are written and read
in the middle. It notes losses, gradients, parameters and saved values, which have to agree in name,
element type, shape and value, as have the errors in which programs end. ``--show`` prints the
texts of those that differ. Status 1 if there are any. ``serve`` as the only argument runs the
programs of standard input, a line of JSON each.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60


def serve() -> int:
    """Run the program of each line of the input; answer with what it noted."""
    import chainer
    import numpy as np

    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        notes: list[Any] = []

        def note(name: str, value: Any, notes: list[Any] = notes) -> None:
            array = getattr(value, "array", value)
            if array is None:
                notes.append([name, None, None, None])
                return
            array = np.ascontiguousarray(array).reshape(np.shape(array))
            coded = base64.b64encode(array.tobytes()).decode()
            notes.append([name, str(array.dtype), list(array.shape), coded])

        answer: dict[str, Any] = {"notes": notes, "error": None}
        config = chainer.config.dtype
        try:
            exec(compile(json.loads(line), "program", "exec"), {"note": note})
        except Exception as error:
            stack = traceback.extract_tb(error.__traceback__)
            places = [one.lineno for one in stack if one.filename == "program"]
            kinds = [one.__name__ for one in type(error).__mro__]
            answer["error"] = [kinds, " ".join(str(error).split())[:300], places]
        chainer.config.dtype = config
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def array_of(note: list[Any]) -> Any:
    """Return a noted array."""
    import numpy as np

    return np.frombuffer(base64.b64decode(note[3]), note[1]).reshape(note[2])


def _said(error: list[Any] | None) -> str:
    return "no error" if error is None else f"{error[0][0]} at {error[2]}: {error[1]}"


def compare(ours: dict[str, Any], theirs: dict[str, Any], bound: float) -> str | None:
    """Return what differs first between two runs by more than a share, None if nothing does."""
    import numpy as np

    step = "start"
    for mine, other in zip(ours["notes"], theirs["notes"], strict=False):
        if mine[0].startswith("step"):
            step = mine[0]
        # NumPy before 2 widens arrays without axes beside numbers of Python.
        count = 3 if mine[2] else 1
        if mine[:count] != other[:count] or mine[2] != other[2]:
            return f"{step}: {mine[:3]}, Chainer {other[:3]}"
        if mine[1] is None or mine[1] == "object":
            continue
        a, b = array_of(mine), array_of(other)
        if a.dtype.kind not in "fc":
            if not np.array_equal(a, b):
                return f"{step}: {mine[0]}: {a}, Chainer {b}"
            continue
        if mine[0] == "loss" and np.isnan(a).all() and np.isnan(b).all():
            return None  # and so is all that follows
        if not np.allclose(a, b, rtol=bound, atol=bound * max(1e-2, np.abs(b).max(initial=0)),
                           equal_nan=True):  # fmt: skip
            gap = np.abs(a - b).max()
            return f"{step}: {mine[0]}: differs by {gap:.1e} at most, of {np.abs(b).max():.1e}"
    mine, other = ours["error"], theirs["error"]
    if (mine is None) != (other is None) or (mine and other and other[0][0] not in mine[0]):
        return f"{_said(mine)}, Chainer {_said(other)}"
    if len(ours["notes"]) != len(theirs["notes"]):
        counts = len(ours["notes"]), len(theirs["notes"])
        return f"{counts[0]} values, {_said(mine)}; Chainer {counts[1]}, {_said(other)}"
    return None


def main() -> int:
    """Compare the programs; return 1 if any differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chainer", required=True)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=100)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from tests.nn.drawn.program import write

    runners = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=ROOT,
        )
        for command in (
            [sys.executable, "-m", "hagane", "chainer", __file__, "serve"],
            [options.chainer, __file__, "serve"],
        )
    ]  # fmt: skip
    counts: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        source = write(seed)
        for runner in runners:
            assert runner.stdin is not None
            print(json.dumps(source), file=runner.stdin, flush=True)
        ours, theirs = (json.loads(runner.stdout.readline()) for runner in runners)  # type: ignore[union-attr]
        # Errors of rounding grow from step to step.
        wrong = compare(ours, theirs, 1e-6 if "dtype('float64')" in source else 2e-3)
        if wrong is None:
            counts["both end in an error" if ours["error"] else "agree"] += 1
            continue
        refused = theirs["error"] is not None and ours["error"] is None
        counts["refused by Chainer alone" if refused else "differ"] += 1
        print(f"{seed}: {wrong}", flush=True)
        if options.show:
            print(source)
    for runner in runners:
        runner.terminate()
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return int(counts["differ"] > 0)


if __name__ == "__main__":
    raise SystemExit(serve() if sys.argv[1:] == ["serve"] else main())
