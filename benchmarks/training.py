"""One step of training beside PyTorch, eager and compiled, on the models of ``training_models.py``.

``python benchmarks/training.py [--models NAME …] [--threads 2 1] [--rounds 5] [--vs eager inductor]
[--clock cpu] [--compared 200] [--precision bf16] [--chainer PYTHON]`` prints a Markdown table: the
median time of a step, the ratios to it, the time until the first step is done (capture and
compilation included), and the peak of the memory that steps take beyond what was there before the
first. Each engine runs in a process of its own, rounds alternate; loss, module, optimizer and batch
are the same in all. Losses of the first steps are compared. float32; with ``--precision bf16``
products multiply bfloat16, in PyTorch under ``torch.autocast``.

``--chainer`` names the Python of an environment with Chainer 7.8.1 (NumPy below 2, SciPy), whose
steps are those of ``training_chainer.py``; they begin with the same weights, and have no part in
the better of the others.

On a machine that others use: ``--lock FILE`` holds a lock during rounds, not while engines compile,
and ``--real-time`` gives the threads of a worker real-time priority for its rounds.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

ENGINES = ("hagane", "eager", "inductor")


def resident() -> int:
    """Return the bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def forget_peak() -> None:
    """Let the peak of resident memory begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak() -> int:
    """Return the most bytes that this process had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def keep(name: str, path: str) -> None:
    """Write the first weights, the batch and the optimizer's settings of a model to a file."""
    import numpy as np
    import torch
    from training_models import CASES

    case = CASES[name]
    torch.manual_seed(0)
    module, (x, target) = case.make(), case.batch()
    settings = case.optimizer(module.parameters()).defaults
    numbers = {f"o.{key}": value for key, value in settings.items() if type(value) in (int, float)}
    weights = {f"w.{key}": value.numpy() for key, value in module.state_dict().items()}
    np.savez(path, x=x.numpy(), target=target.numpy(), **numbers, **weights)


def stepper(engine: str, name: str, threads: int, precision: str, start: str) -> Any:
    """Return a function that does one step and returns its loss."""
    if engine == "chainer":
        import training_chainer

        return training_chainer.stepper(name, start)
    import torch
    from training_models import CASES

    case = CASES[name]
    torch.manual_seed(0)
    module, batch = case.make(), case.batch()
    optimizer = case.optimizer(module.parameters())
    if engine == "hagane":
        from hagane.runtime import SessionOptions
        from hagane.training.step import TorchStep

        options = SessionOptions(intra_op_num_threads=threads)
        lower = None if precision == "fp32" else precision
        compiled = TorchStep(case.loss, optimizer, options, precision=lower)
        return lambda: float(compiled(module, *batch))
    run = torch.compile(case.loss) if engine == "inductor" else case.loss
    mixed = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

    def step() -> float:
        optimizer.zero_grad()
        with mixed:
            loss = run(module, *batch)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def work(
    engine: str, name: str, threads: int, clock: str, compared: int, precision: str, start: str
) -> None:
    """Answer requests on standard input: ``first``, or a number of seconds."""
    now = time.process_time if clock == "cpu" else time.perf_counter
    answers = os.fdopen(os.dup(1), "w")  # (Libraries may print.)
    os.dup2(2, 1)
    if engine != "chainer":
        import torch

        torch.set_num_threads(threads)
    step = stepper(engine, name, threads, precision, start)
    for line in sys.stdin:
        answer: dict[str, Any] = {}
        if line.strip() == "first":
            before = resident()
            started = time.perf_counter()
            losses = [step()]
            answer["seconds"] = time.perf_counter() - started
            losses += [step() for _ in range(compared - 1)]
            forget_peak()  # of what compiled
            step()
            answer |= {"losses": losses, "bytes": peak() - before}
        else:
            times: list[float] = []
            limit = time.perf_counter() + float(line)
            while not times or time.perf_counter() < limit:
                started = now()
                step()
                times.append(now() - started)
            answer["times"] = times
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that trains with one engine."""

    def __init__(
        self, python: str, engine: str, name: str, threads: int, clock: str, compared: int,
        precision: str, start: str,
    ):  # fmt: skip
        self.process = subprocess.Popen(
            [python, __file__, "--worker", engine, name, str(threads), clock,
             str(compared), precision, start],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip

    def ask(self, request: str) -> dict[str, Any]:
        """Return the answer to a request; empty if the process ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {}
        line = self.process.stdout.readline()
        return dict(json.loads(line)) if line else {}

    @contextmanager
    def real_time(self) -> Iterator[None]:
        """Give all threads of the process real-time priority for a while."""
        tasks = [int(one.name) for one in Path(f"/proc/{self.process.pid}/task").iterdir()]
        self._schedule(tasks, os.SCHED_FIFO, 50)
        try:
            yield
        finally:
            self._schedule(tasks, os.SCHED_OTHER, 0)

    @staticmethod
    def _schedule(tasks: Sequence[int], policy: int, priority: int) -> None:
        for task in tasks:
            with suppress(ProcessLookupError):  # a thread may have ended
                os.sched_setscheduler(task, policy, os.sched_param(priority))

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def measured(
    name: str,
    engines: Sequence[str],
    threads: int,
    rounds: int,
    seconds: float,
    clock: str,
    compared: int,
    lock: Path | None,
    real_time: bool,
    precision: str,
    chainer: str | None,
    start: str,
) -> dict[str, dict[str, Any]]:
    """Return what was measured of each engine that could train the model."""
    found: dict[str, dict[str, Any]] = {}
    pythons = dict.fromkeys(engines, sys.executable)
    if chainer:
        pythons["chainer"] = chainer
        keep(name, start)
    workers = {
        engine: Worker(python, engine, name, threads, clock, compared, precision, start)
        for engine, python in pythons.items()
    }
    try:
        for engine, worker in workers.items():
            first = worker.ask("first")
            if first:
                found[engine] = {**first, "times": []}
            else:
                print(f"{name}: {engine} failed", file=sys.stderr)
        with ExitStack() as held:
            if lock is not None:
                fcntl.flock(held.enter_context(lock.open("w")), fcntl.LOCK_EX)
            for _ in range(rounds):
                for engine, values in found.items():
                    with workers[engine].real_time() if real_time else nullcontext():
                        values["times"] += workers[engine].ask(str(seconds))["times"]
    finally:
        for worker in workers.values():
            worker.close()
    for values in found.values():
        values["median"] = statistics.median(values["times"])
    return found


def apart(own: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest share by which losses of the same steps differ."""
    return max(abs(a - b) / abs(b) for a, b in zip(own, other, strict=True))


def row(name: str, threads: int, found: dict[str, dict[str, Any]], engines: Sequence[str]) -> str:
    """Return a line of the table."""
    own = found["hagane"]
    cells = [name, str(threads), f"{own['median'] * 1e3:.2f}"]
    for engine in engines[1:]:
        other = found.get(engine)
        cells.append("" if other is None else f"{other['median'] / own['median']:.2f}")
    cells.append(" / ".join(f"{found[e]['seconds']:.1f}" if e in found else "" for e in engines))
    cells.append(
        " / ".join(f"{found[e]['bytes'] / 1e6:.0f}" if e in found else "" for e in engines)
    )
    cells.append(" / ".join(
        f"{apart(own['losses'], found[other]['losses']):.0e}" if other in found else ""
        for other in engines[1:]
    ))  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def print_rows(given: argparse.Namespace, engines: Sequence[str], threads: int, start: str) -> None:
    """Print the lines of some number of threads, and their means."""
    best: list[float] = []
    chainer: list[float] = []
    for name in given.models:
        found = measured(
            name, engines[: 1 + len(given.vs)], threads, given.rounds, given.seconds, given.clock,
            given.compared, given.lock, given.real_time, given.precision, given.chainer, start,
        )  # fmt: skip
        if "hagane" not in found:
            continue
        print(row(name, threads, found, engines), flush=True)
        own = found["hagane"]["median"]
        others = [found[other]["median"] for other in given.vs if other in found]
        if others:
            best.append(min(others) / own)
        if "chainer" in found:
            chainer.append(found["chainer"]["median"] / own)
    for title, ratios in (("the better of the others", best), ("Chainer", chainer)):
        if ratios:
            print(
                f"\n{title} ÷ hagane, {threads} threads: geometric mean "
                f"{statistics.geometric_mean(ratios):.2f}, worst {min(ratios):.2f}\n",
                flush=True,
            )


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--worker"]:
        engine, name, threads, clock, compared, precision, start = sys.argv[2:]
        work(engine, name, int(threads), clock, int(compared), precision, start)
        return
    from training_models import CASES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--vs", nargs="*", default=["eager", "inductor"], choices=ENGINES[1:])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall",
        help="cpu: the time of the process on all cores, where others use the machine",
    )  # fmt: skip
    parser.add_argument("--compared", type=int, default=4, help="steps whose losses are compared")
    parser.add_argument("--lock", type=Path, help="a file that is locked during rounds")
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--chainer", help="the Python of an environment with Chainer")
    given = parser.parse_args()
    if given.chainer and given.precision != "fp32":
        parser.error("Chainer's steps are float32")
    compared = [*given.vs, *["chainer"] * bool(given.chainer)]
    engines = ("hagane", *compared)
    titles = ["model", "threads", "hagane ms", *(f"{other} ÷ hagane" for other in compared)]
    titles += [f"first step, s ({' / '.join(engines)})", f"memory, MB ({' / '.join(engines)})"]
    titles.append(f"losses differ by ({' / '.join(compared)})")
    print("|", " | ".join(titles), "|")
    print("|", " | ".join(["---"] * len(titles)), "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for threads in given.threads:
            print_rows(given, engines, threads, str(Path(folder) / "start.npz"))


if __name__ == "__main__":
    main()
