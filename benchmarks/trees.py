"""Two source trees of hagane side by side: opening, running, and whether results differ.

    git worktree add ../before COMMIT
    python benchmarks/trees.py ../before . ResNet-50 MobileNetV2 BERT-base Add

Processes of the two trees alternate. Ratios are before over after: above 1, the second tree is
faster. *Open* is the CPU time of imports and of opening a session with one thread and kernels in
the cache, *run* the least time of a run; of rounds the least counts, for others on the machine only
ever add. *Difference* is the largest between outputs, over the largest absolute output.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from models import NAMES, make

PROGRAM = """
import json, sys, time
import numpy as np
begun = time.process_time()
import hagane
path, shapes, threads, outputs = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4]
options = hagane.SessionOptions()
options.intra_op_num_threads = threads
session = hagane.InferenceSession(path, options)
opened = time.process_time() - begun
try:
    from hagane.runtime.values.feeds import random_feed
except ImportError:  # an older tree
    from hagane.runtime.feeds import random_feed
random = np.random.default_rng(0)
feed = random_feed(session.get_inputs(), {n: tuple(s) for n, s in shapes.items()}, random)
results = session.run(None, feed)
np.savez(outputs, *[r for r in results if isinstance(r, np.ndarray) and r.dtype.kind == "f"])
begun = time.perf_counter()
session.run(None, feed)
count = min(2000, max(5, int(0.5 / (time.perf_counter() - begun))))
times = []
for _ in range(count):
    begun = time.perf_counter()
    session.run(None, feed)
    times.append(time.perf_counter() - begun)
print(json.dumps({"open": opened, "run": min(times)}))
"""


def main() -> None:
    """Print a row for each model, and the geometric means of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="a source tree of hagane")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("models", nargs="*", default=["ResNet-50", "BERT-base", "MNIST CNN", "Add"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if unknown := set(given.models) - set(NAMES):
        parser.error(f"no such models: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    folder = Path.home() / ".cache" / "hagane" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    print("| model | open | run | difference |\n|---|---|---|---|")
    rows = []
    for name in given.models:
        path, shapes = make(name, folder)
        row = compare((given.before, given.after), path, shapes, given.threads, given.rounds)
        rows.append(row)
        print(f"| {name} | {row[0]:.2f} | {row[1]:.3f} | {row[2]:.1e} |", flush=True)
    opens, runs, differences = zip(*rows, strict=True)
    means = statistics.geometric_mean(opens), statistics.geometric_mean(runs)
    print(f"| all | {means[0]:.2f} | {means[1]:.3f} | {max(differences):.1e} |")


def compare(
    trees: tuple[Path, Path],
    path: Path,
    shapes: dict[str, tuple[int, ...]],
    threads: int,
    rounds: int,
) -> tuple[float, float, float]:
    """Return the ratios of opening and running, and the largest difference of outputs."""
    least = [{"open": math.inf, "run": math.inf} for _ in trees]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{i}.npz" for i in range(2)]
        for number in range(rounds + 1):  # the first fills the cache
            for i in (0, 1) if number % 2 == 0 else (1, 0):
                arguments = (str(path), json.dumps(shapes), str(threads), str(outputs[i]))
                found = measure(trees[i], arguments)
                if number:
                    least[i] = {key: min(least[i][key], found[key]) for key in found}
        with np.load(outputs[0]) as before, np.load(outputs[1]) as after:
            difference = max((apart(before[key], after[key]) for key in before), default=0.0)
    return (
        least[0]["open"] / least[1]["open"],
        least[0]["run"] / least[1]["run"],
        difference,
    )


def measure(tree: Path, arguments: tuple[str, ...]) -> dict[str, float]:
    """Return the times of one process on a tree."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tree.resolve() / "src")},
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def apart(before: np.ndarray, after: np.ndarray) -> float:
    """Return the largest difference over the largest absolute value."""
    if before.shape != after.shape:
        return math.inf
    scale = np.abs(before).max(initial=0.0)
    return float(np.abs(before - after).max(initial=0.0) / (scale or 1.0))


if __name__ == "__main__":
    main()
