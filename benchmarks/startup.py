"""Import, session and first run in new processes, beside ONNX Runtime; and a start without kernels.

    python benchmarks/startup.py [NAME ...] [--rounds 5] [--threads 2] [--cold]

For each model of ``models.py`` (PyTorch writes them) both engines start in turns, each time in a
new process, with the session of hagane in its cache. *Import* is that of NumPy, the engine and its
names. Figures are medians; ratios are ONNX Runtime over hagane, so above 1 hagane needs less.
``--cold`` adds hagane's start with an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from models import make

NAMES = ("ResNet-50", "BERT-base", "PP-OCR rec", "MNIST CNN", "MiniLM")
ENGINES = ("hagane", "onnxruntime")
PROGRAM = """
import json, sys, time
begun = time.perf_counter()
import numpy as np
import ENGINE as engine
options = engine.SessionOptions()
engine.InferenceSession  # names may load their modules now
imported = time.perf_counter()
shapes, threads = json.loads(sys.argv[2]), int(sys.argv[3])
options.intra_op_num_threads = threads
at = time.perf_counter()
session = engine.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
feed = {}
for item in session.get_inputs():
    shape = shapes.get(item.name) or [dim if isinstance(dim, int) else 1 for dim in item.shape]
    feed[item.name] = np.ones(shape, np.float32 if "float" in item.type else np.int64)
ready = time.perf_counter()
session.run(None, feed)
ran = time.perf_counter()
# Of this program alone: getrusage would count what the parent held when it started this.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
import resource
spent = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"import ms": (imported - begun) * 1e3, "load ms": (loaded - at) * 1e3,
                  "first run ms": (ran - ready) * 1e3,
                  "together ms": (imported - begun + loaded - at + ran - ready) * 1e3,
                  "processor ms": (spent.ru_utime + spent.ru_stime) * 1e3, "peak MiB": peak}))
"""


def start(
    engine: str, path: Path, shapes: Mapping[str, tuple[int, ...]], threads: int, **settings: str
) -> dict[str, float]:
    """Return the figures of one start in a new process."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", PROGRAM.replace("ENGINE", engine)),
            *(str(path), json.dumps(shapes), str(threads)),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **settings},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cold", action="store_true", help="also start with an empty cache")
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache" / "hagane" / "benchmarks"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        path, shapes = make(name, arguments.folder)
        start("hagane", path, shapes, arguments.threads)  # now it is in the cache
        figures: dict[str, dict[str, list[float]]] = {engine: {} for engine in ENGINES}
        for _ in range(arguments.rounds):
            for engine in ENGINES:
                for figure, value in start(engine, path, shapes, arguments.threads).items():
                    figures[engine].setdefault(figure, []).append(value)
        print(f"{name:20}" + "".join(f"{engine:>14}" for engine in ENGINES) + f"{'ratio':>10}")
        for figure in figures["hagane"]:
            ours, theirs = (statistics.median(figures[engine][figure]) for engine in ENGINES)
            print(f"  {figure:18}{ours:>14.1f}{theirs:>14.1f}{theirs / ours:>10.2f}", flush=True)
        if arguments.cold:
            with tempfile.TemporaryDirectory() as empty:
                cold = start("hagane", path, shapes, arguments.threads, XDG_CACHE_HOME=empty)
            load, first = cold["load ms"] / 1e3, cold["first run ms"]
            print(f"  cold: load {load:.2f} s, first run {first:.0f} ms")


if __name__ == "__main__":
    main()
