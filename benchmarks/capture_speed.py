"""``benchmarks/capture.py --speed``: compiled programs beside CPython and ``torch.compile``.

Each engine runs in a process of its own, with empty caches; rounds alternate. The first call is
timed apart: from the call of ``compile`` to the first result. Ratios are the peer's time over
hagane's; above 1 hagane is faster.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def serve(engine: str, name: str, threads: int) -> None:
    """Make a program ready, then time bursts of runs for each line that is read."""
    import numpy as np
    import torch
    from compiled_programs import PROGRAMS

    import hagane

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    program = PROGRAMS[name]
    model, inputs = program.make(), program.inputs()
    if isinstance(model, torch.nn.Module):
        model.eval()
    run, started = model, time.perf_counter()
    with torch.inference_mode(engine == "torch.compile"), torch.no_grad():
        if engine == "hagane":
            run = hagane.compile(model)
        elif engine == "torch.compile":
            run = torch.compile(model)
        result = run(*inputs)
        first = time.perf_counter() - started
        again = time.perf_counter()
        run(*inputs)
        second = time.perf_counter() - again
        flat = result if isinstance(result, tuple) else (result,)
        total = [float(np.abs(np.asarray(item, dtype=np.float64)).sum()) for item in flat]
        notes = list(getattr(run, "captures", [])) if engine == "hagane" else []
        print(
            json.dumps({"first": first, "second": second, "sums": total, "notes": notes}),
            flush=True,
        )
        for line in sys.stdin:
            until, times = time.perf_counter() + float(line), []
            while time.perf_counter() < until or len(times) < 3:
                begun = time.perf_counter()
                run(*inputs)
                times.append(time.perf_counter() - begun)
            print(json.dumps(statistics.median(times)), flush=True)


class Served:
    """An engine in a process of its own, with empty caches."""

    def __init__(self, engine: str, name: str, threads: int, folder: Path):
        cache = folder / engine
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(cache),
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        }
        command = [sys.executable, str(HERE / "capture.py"), "--serve", engine, "--only", name]
        command += ["--threads", str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.ready = self._read()

    def time(self, seconds: float) -> float:
        """Return the median time of runs over some seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        found = self._read()
        assert isinstance(found, float)
        return found

    def _read(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                return json.loads(line)
            except ValueError:
                sys.stderr.write(line)  # of the engine itself
        raise SystemExit(f"{self._process.args} ended with {self._process.wait()}")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(names: Sequence[str], threads: int, rounds: int, seconds: float) -> None:
    """Print a table of ratios."""
    from compiled_programs import PROGRAMS

    models: list[float] = []
    print(f"{'program':26} {'peer':14} {'ratio':>6} {'goal':>5} {'first call':>11}   ms")
    for name in names:
        program = PROGRAMS[name]
        with tempfile.TemporaryDirectory() as folder:
            ours = Served("hagane", name, threads, Path(folder))
            theirs = Served(program.peer, name, threads, Path(folder))
            a, b = ours.ready["sums"], theirs.ready["sums"]
            if not all(math.isclose(x, y, rel_tol=1e-3) for x, y in zip(a, b, strict=True)):
                print(f"{name}: results differ, {a} and {b}")
            pairs = [(ours.time(seconds), theirs.time(seconds)) for _ in range(rounds)]
            ours.close()
            theirs.close()
        ratio = statistics.median(y / x for x, y in pairs)
        first = theirs.ready["first"] / ours.ready["first"]
        mine, peer = (statistics.median(each) * 1e3 for each in zip(*pairs, strict=True))
        if program.goal == 1.2:
            models.append(ratio)
        print(
            f"{name:26} {program.peer:14} {ratio:6.2f} {program.goal:5} {first:11.2f}   "
            f"{mine:.3f} and {peer:.3f}; first {ours.ready['first']:.1f} s and "
            f"{theirs.ready['first']:.1f} s; graphs {len(ours.ready['notes'])}",
            flush=True,
        )
    if models:
        print(f"models, geometric mean: {statistics.geometric_mean(models):.2f}")
