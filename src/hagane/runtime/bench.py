"""Time one model in several engines: a process each, alternating rounds, medians, ratios."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from hagane.errors import HaganeError, InvalidArgument
from hagane.machine import NoCompiler, best_level, usable_cores
from hagane.native.tuning.peak import peak_flops
from hagane.ops import infer_types
from hagane.ops.cost import flops
from hagane.runtime.options import Precision
from hagane.runtime.pipeline import ReadModel, read
from hagane.runtime.settings import Settings
from hagane.runtime.values.feeds import check_sizes, feed_shapes, random_feed
from hagane.symbolic import Dim

ENGINES = ("hagane", "onnxruntime", "openvino", "torch")
# The beginning of an engine's name that is a build of the model.
BUILD = "build"
_MODULES = {"onnxruntime": "onnxruntime", "openvino": "openvino"}


def compare(
    model: Path,
    engines: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    threads: int,
    rounds: int,
    seconds: float,
    advance: Callable[[], None] = lambda: None,
    precision: Precision = "fp32",
    prepare: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Return times and ratios of ``model`` in all ``engines``.

    An engine ``build:FOLDER`` is a build of the model. ``precision`` is hagane's, and OpenVINO's;
    ONNX Runtime computes as the model is written. ``prepare`` is called in each process before the
    model is read, to register operators for instance; it has to be picklable.
    Each engine runs in a process of its own, with ``threads`` threads, on the same random
    inputs; in each round the engines take turns, so that a change of the machine's load meets
    all of them.

    Returns:
        ``model``, ``threads``, ``shapes`` (of the inputs), ``results`` (``engine``, ``version``,
        ``precision``, ``median_ms``, ``min_ms``, ``peak_share``: achieved over measured peak FLOP/s
        of a matrix product on as many threads), ``ratios`` (``"other/hagane"``: the other's median
        over ours), ``skipped`` (engine to reason).

    Raises:
        InvalidArgument: An engine cannot run the model, or ``shapes`` leaves a size open.
    """
    found = read(model, Settings())
    initializers = found.model.graph.initializers
    inputs = [item for name, item in found.arguments.items() if name not in initializers]
    check_sizes(inputs, shapes)
    skipped = {
        name: f"not installed: pip install {name}"
        for name in engines
        if name in _MODULES and importlib.util.find_spec(_MODULES[name]) is None
    }
    if "torch" in engines:
        skipped["torch"] = "PyTorch does not read ONNX models"
    present = [name for name in engines if name not in skipped]
    workers = {name: _Worker(name, model, shapes, threads, precision, prepare) for name in present}
    times: dict[str, list[float]] = {name: [] for name in present}
    peaks: list[float] = []
    try:
        for _ in range(rounds):
            for name in present:
                times[name] += workers[name].ask("time", seconds)
                advance()
            peaks.append(workers["hagane"].ask("peak", None))
        versions = {name: workers[name].ask("version", None) for name in present}
    finally:
        for worker in workers.values():
            worker.stop()
    work = _work(found, shapes)
    peak = max(peaks)
    results = []
    for name in present:
        median = statistics.median(times[name])
        results.append(
            {
                "engine": name,
                "version": versions[name],
                "precision": "fp32" if name == "onnxruntime" else precision,
                "median_ms": median * 1000,
                "min_ms": min(times[name]) * 1000,
                "peak_share": None if work is None else work / median / peak,
            }
        )
    medians = {str(row["engine"]): float(str(row["median_ms"])) for row in results}
    return {
        "model": str(model),
        "threads": threads,
        "shapes": feed_shapes(inputs, shapes),
        "results": results,
        "ratios": {
            f"{name}/hagane": medians[name] / medians["hagane"]
            for name in present
            if name != "hagane"
        },
        "skipped": skipped,
    }


def time_build(
    folder: Path,
    shapes: Mapping[str, tuple[int, ...]],
    threads: int,
    rounds: int,
    seconds: float,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Return the times of a build alone, as ``compare`` has them; the share of the peak is None.

    Raises:
        InvalidArgument: It cannot be run, or ``shapes`` leaves a size open.
    """
    import hagane

    with hagane.load_built(folder) as built:
        inputs, precision = built.get_inputs(), str(built.manifest["precision"])
    check_sizes(inputs, shapes)
    worker = _Worker(f"{BUILD}:{folder}", folder, shapes, threads, "fp32", None)
    times: list[float] = []
    try:
        for _ in range(rounds):
            times += worker.ask("time", seconds)
            advance()
        version = worker.ask("version", None)
    finally:
        worker.stop()
    return {
        "model": str(folder),
        "threads": threads,
        "shapes": feed_shapes(inputs, shapes),
        "results": [
            {
                "engine": BUILD,
                "version": version,
                "precision": precision,
                "median_ms": statistics.median(times) * 1000,
                "min_ms": min(times) * 1000,
                "peak_share": None,
            }
        ],
        "ratios": {},
        "skipped": {},
    }


def _work(found: ReadModel, shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return the arithmetic of one run, or None where a size is not known before it."""
    given: dict[str, Sequence[Dim | str]] = dict(shapes)
    types = infer_types(found.model, shapes=given, lenient=True).types
    total: Dim = 0
    for node in found.model.graph:
        total = total + (flops(node, types) or 0)
    return total if isinstance(total, int) else None


class _Worker:
    """An engine in a process of its own."""

    def __init__(
        self,
        engine: str,
        model: Path,
        shapes: Mapping[str, tuple[int, ...]],
        threads: int,
        precision: Precision,
        prepare: Callable[[], None] | None,
    ):
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(other, engine, str(model), dict(shapes), threads, precision, prepare),
            daemon=True,
        )
        # Libraries size their thread pools when they load, which the child does after this.
        kept = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
        try:
            self._process.start()
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        other.close()
        self._engine = engine
        self.ask("ready", None)

    def ask(self, what: str, argument: Any) -> Any:
        """Return the answer to a request, or raise the engine's error."""
        try:
            self._pipe.send((what, argument))
            kind, answer = self._pipe.recv()
        except (EOFError, BrokenPipeError):
            raise HaganeError(f"the process of {self._engine} ended unexpectedly") from None
        if kind == "error":
            raise InvalidArgument(f"{self._engine} cannot run the model: {answer}")
        return answer

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _serve(
    pipe: Connection,
    engine: str,
    model: str,
    shapes: dict[str, tuple[int, ...]],
    threads: int,
    precision: Precision,
    prepare: Callable[[], None] | None,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    try:
        if prepare is not None:
            prepare()
        kind, _, folder = engine.partition(":")
        if kind == BUILD:
            version, run = _build(folder, shapes, threads)
        else:
            version, run = ENGINE_OPENERS[engine](model, shapes, threads, precision)
        run()
    except Exception as error:  # told to the parent as text
        pipe.recv()
        pipe.send(("error", str(error)))
        return
    while True:
        try:
            what, argument = pipe.recv()
        except EOFError:  # the parent is gone
            return
        if what == "time":
            pipe.send(("ok", time_runs(run, argument)))
        elif what == "peak":
            pipe.send(("ok", _peak(threads)))
        else:
            pipe.send(("ok", version))


def time_runs(run: Callable[[], Any], seconds: float) -> list[float]:
    """Return the times of the runs that fit into some time, in seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times


def _peak(threads: int) -> float:
    """Return the best FLOP/s of float32 that registers or NumPy's matrix product reached."""
    size = 1024
    a = np.ones((size, size), dtype=np.float32)
    a @ a
    best = 2 * size**3 / min(time_runs(lambda: a @ a, 0.05))
    with suppress(NoCompiler):
        best = max(best, peak_flops(best_level(), threads or usable_cores()))
    return best


Opened = tuple[str, Callable[[], Any]]
Shapes = Mapping[str, tuple[int, ...]]


def _hagane(model: str, shapes: Shapes, threads: int, precision: Precision) -> Opened:
    import hagane
    from hagane.runtime.options import SessionOptions
    from hagane.runtime.session import InferenceSession

    options = SessionOptions(intra_op_num_threads=threads, precision=precision)
    session = InferenceSession(model, options)
    feed = random_feed(session.get_inputs(), shapes, np.random.default_rng(0))
    return hagane.__version__, lambda: session.run(None, feed)


def _build(folder: str, shapes: Shapes, threads: int) -> Opened:
    import hagane

    built = hagane.load_built(folder, threads=threads)
    feed = random_feed(built.get_inputs(), shapes, np.random.default_rng(0))
    return str(built.manifest["hagane"]), lambda: built.run(None, feed)


def _onnxruntime(model: str, shapes: Shapes, threads: int, _: Precision) -> Opened:
    import onnxruntime

    from hagane.runtime.session import InferenceSession

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs = InferenceSession(model).get_inputs()
    feed = random_feed(inputs, shapes, np.random.default_rng(0))
    return str(onnxruntime.__version__), lambda: session.run(None, feed)


def _openvino(model: str, shapes: Shapes, threads: int, precision: Precision) -> Opened:
    import openvino

    from hagane.runtime.session import InferenceSession

    inputs = InferenceSession(model).get_inputs()
    feed = random_feed(inputs, shapes, np.random.default_rng(0))
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision],
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(model), "CPU", settings)
    request = compiled.create_infer_request()
    return str(openvino.__version__), lambda: request.infer(feed)


ENGINE_OPENERS: Mapping[str, Callable[[str, Shapes, int, Precision], Opened]] = {
    "hagane": _hagane,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
