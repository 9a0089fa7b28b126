"""Peak memory of a process that makes a session and runs it, beside ONNX Runtime.

    python benchmarks/memory.py [MODEL ...]

Each figure is the median over fresh processes; kernels are in the cache. Ratios are hagane over
ONNX Runtime, so below 1 hagane needs less.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

from models import NAMES, make

ROUNDS = 3

PROGRAM = """
import ENGINE as engine, json, sys
import numpy as np
shapes = json.loads(sys.argv[2])
options = engine.SessionOptions()
options.intra_op_num_threads = 2
session = engine.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
feed = {}
for item in session.get_inputs():
    shape = shapes.get(item.name) or [d if isinstance(d, int) else 1 for d in item.shape]
    feed[item.name] = np.ones(shape, kinds[item.type])
for _ in range(3):
    session.run(None, feed)
# Of this program alone: getrusage would count what the parent held when it started this.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) / 1024)
"""


def peak(engine: str, path: Path, shapes: dict[str, tuple[int, ...]]) -> float:
    """Return the peak of resident memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("ENGINE", engine), str(path), json.dumps(shapes)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    folder = Path.home() / ".cache" / "hagane" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    ratios = []
    print("| model | hagane MiB | ONNX Runtime MiB | ratio |\n| --- | --- | --- | --- |")
    for name in sys.argv[1:] or NAMES:
        path, shapes = make(name, folder)
        peak("hagane", path, shapes)  # compiles
        ours, theirs = (
            statistics.median(peak(engine, path, shapes) for _ in range(ROUNDS))
            for engine in ("hagane", "onnxruntime")
        )
        ratios.append(ours / theirs)
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
