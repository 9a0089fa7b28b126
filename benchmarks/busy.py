"""Runs on a machine that other processes keep busy, beside ONNX Runtime.

``python benchmarks/busy.py [NAME …] [--threads 2] [--seconds 1] [--rounds 3]`` prints a Markdown
table: for each model, and each number of other processes that compute without end, ONNX Runtime's
mean time of a run over hagane's, and the medians. ``nice`` is the priority of the engines' own
processes; the others have the usual one. ``cores`` is the quota of a control group, if those are
writable: the engines then run within it, without other processes. Engines take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx

from hagane.runtime.bench import ENGINE_OPENERS, time_runs
from models import make

# Names of models of models.py; those of MNIST with a number of rows.
NAMES = ("MNIST CNN × 4", "MNIST CNN × 32", "MiniLM", "ResNet-50")
ENGINES = ("hagane", "onnxruntime")
_CPU = Path("/sys/fs/cgroup/cpu")  # version 1
_UNIFIED = Path("/sys/fs/cgroup")  # version 2
_PERIOD_US = 100_000


def prepared(name: str, folder: Path) -> tuple[Path, Mapping[str, tuple[int, ...]]]:
    """Return the file of a model, with another number of rows if one is named, and its shapes."""
    plain, _, rows = name.partition(" × ")
    path, shapes = make(plain, folder)
    if not rows:
        return path, shapes
    made = path.with_stem(f"{path.stem}_{rows}")
    if not made.exists():
        model = onnx.load(path)
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = int(rows)
        del model.graph.value_info[:]
        onnx.save(model, made)
    return made, {}


def serve(engine: str, name: str, folder: str, threads: str, nice: str, group: str) -> None:
    """Time runs whenever a line with a number of seconds is read; an empty one ends."""
    if group:
        (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    os.nice(int(nice))
    path, shapes = prepared(name, Path(folder))
    _, run = ENGINE_OPENERS[engine](str(path), shapes, int(threads), "fp32")
    for _ in range(20):
        run()
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, "\n"):
        times = time_runs(run, float(line))
        print(statistics.fmean(times), statistics.median(times), max(times), flush=True)


@contextmanager
def quota(cores: float) -> Iterator[str]:
    """Yield the folder of a control group with so much time, or nothing where there can be none."""
    version2 = (_UNIFIED / "cgroup.controllers").exists()
    folder = (_UNIFIED if version2 else _CPU) / f"hagane_benchmark_{os.getpid()}"
    try:
        folder.mkdir()
        limit = int(cores * _PERIOD_US)
        if version2:
            (folder / "cpu.max").write_text(f"{limit} {_PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(limit))
    except OSError:
        folder = Path()
    try:
        yield "" if folder == Path() else str(folder)
    finally:
        if folder != Path():
            folder.rmdir()


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Have so many processes compute meanwhile."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])  # at the usual priority
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(
    name: str, arguments: argparse.Namespace, nice: int, others: int, group: str = ""
) -> Mapping[str, list[tuple[float, float, float]]]:
    """Return mean, median and maximum of each round of each engine, in seconds."""
    found: dict[str, list[tuple[float, float, float]]] = {engine: [] for engine in ENGINES}
    workers = {
        engine: subprocess.Popen(
            [sys.executable, __file__, "--serve", engine, name, str(arguments.folder),
             str(arguments.threads), str(nice), group],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for engine in ENGINES
    }  # fmt: skip
    try:
        for worker in workers.values():
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        time.sleep(0.5)  # threads that wait for work go to sleep
        with busy(others):
            for _ in range(arguments.rounds):
                for engine, worker in workers.items():
                    assert worker.stdin is not None
                    assert worker.stdout is not None
                    worker.stdin.write(f"{arguments.seconds}\n")
                    worker.stdin.flush()
                    mean, median, most = map(float, worker.stdout.readline().split())
                    found[engine].append((mean, median, most))
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    return found


def row(
    name: str, cells: Sequence[Any], found: Mapping[str, list[tuple[float, float, float]]]
) -> str:
    """Return a line of the table: ratios of means and of medians, then hagane's times."""
    mean, median, most = (
        {engine: statistics.median(each[i] for each in found[engine]) for engine in ENGINES}
        for i in range(3)
    )
    ratios = [mean["onnxruntime"] / mean["hagane"], median["onnxruntime"] / median["hagane"]]
    numbers = [f"{ratio:.2f}" for ratio in ratios]
    numbers += [f"{1000 * each['hagane']:.2f}" for each in (mean, median, most)]
    return " | ".join(["", name, *map(str, cells), *numbers, ""]).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--others", type=int, nargs="*", default=[0, 1, 2, 4, 16])
    parser.add_argument("--nice", type=int, nargs="*", default=[0, 10, 19])
    parser.add_argument("--cores", type=float, nargs="*", default=[0.5, 1.0, 1.5])
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache" / "hagane" / "benchmarks"
    )
    arguments = parser.parse_args()
    header = ["model", "others", "nice", "cores", "ORT ÷ hagane, mean", "median"]
    header += ["hagane mean ms", "median ms", "longest ms"]
    print("|", " | ".join(header), "|")
    print("|", " | ".join(["---"] * len(header)), "|", flush=True)
    for name in arguments.names:
        for others in arguments.others:
            for nice in arguments.nice if others else [0]:
                found = measure(name, arguments, nice, others)
                print(row(name, [others, nice, ""], found), flush=True)
        for cores in arguments.cores:
            with quota(cores) as group:
                if not group:
                    print("control groups are not writable", file=sys.stderr)
                    break
                found = measure(name, arguments, 0, 0, group)
                print(row(name, [0, 0, cores], found), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
