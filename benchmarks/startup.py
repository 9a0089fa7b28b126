"""Import, first run and memory of a sentence encoder, beside ONNX Runtime.

    python benchmarks/startup.py

Each figure is the median over alternating fresh processes; ratios are hagane over ONNX Runtime,
so below 1 hagane needs less.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from minilm import minilm

ROUNDS = 5
ENGINES = ("hagane", "onnxruntime")

PROGRAM = """
import json, sys, time
begun = time.perf_counter()
import ENGINE as engine
imported = time.perf_counter()
import numpy as np
session = engine.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
ids = np.arange(32).reshape(1, 32)
session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
ran = time.perf_counter()
# Of this program alone: getrusage would count what the parent held when it started this.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"import ms": (imported - begun) * 1e3, "load ms": (loaded - imported) * 1e3,
                  "first run ms": (ran - loaded) * 1e3, "peak MiB": peak}))
"""


def main() -> None:
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in ENGINES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "minilm.onnx"
        onnx.save(minilm(), path)
        for _ in range(ROUNDS):
            for name in ENGINES:
                program = PROGRAM.replace("ENGINE", name)
                done = subprocess.run(
                    [sys.executable, "-c", program, str(path)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                for figure, value in json.loads(done.stdout.splitlines()[-1]).items():
                    figures[name].setdefault(figure, []).append(value)
    print(f"{'':14}" + "".join(f"{name:>14}" for name in ENGINES) + f"{'ratio':>10}")
    for figure in figures["hagane"]:
        ours, theirs = (statistics.median(figures[name][figure]) for name in ENGINES)
        print(f"{figure:14}{ours:>14.1f}{theirs:>14.1f}{ours / theirs:>10.2f}")


if __name__ == "__main__":
    main()
