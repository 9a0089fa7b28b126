"""8-bit models of three quantisers, each in the engine that it was written for.

    python benchmarks/quantizers.py [NAME …] [--threads 1 2]

``hagane quantize``, ONNX Runtime's ``quantize_static`` (LSTM: ``quantize_dynamic``) and NNCF for
OpenVINO, of the same method: extremes of two random feeds, a scale for each channel of weights.
Needs PyTorch, onnxruntime, openvino and nncf. Processes take turns; medians, and the time of each
engine over hagane's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from qdq import quantised

from ship import CASES, models_folder

Feed = dict[str, np.ndarray]
NAMES = ("MobileNetV2", "ResNet-50", "MiniLM", "LSTM")
ENGINES = ("hagane", "onnxruntime", "openvino")
ROUNDS, SECONDS = 5, 0.4


def feeds_of(name: str) -> list[Feed]:
    """Return two feeds of equal sizes."""
    first = CASES[name](models_folder(), name).feeds[0]
    random = np.random.default_rng(1)
    return [
        first,
        {
            key: random.standard_normal(x.shape).astype(x.dtype)
            if x.dtype.kind == "f"
            else x[:, ::-1]
            for key, x in first.items()
        },
    ]


def quantised_by(engine: str, name: str) -> Path:
    """Return the file of a quantiser, made if it is not there."""
    source = CASES[name](models_folder(), name).path
    form = "xml" if engine == "openvino" else "onnx"
    made = source.with_name(f"{source.stem}_by_{engine}.{form}")
    if made.exists():
        return made
    feeds = feeds_of(name)
    if engine == "hagane":
        from hagane.ship.quantize import QuantizeOptions, Scheme, quantize

        scheme = Scheme(dynamic=name == "LSTM")
        quantize(source, lambda: feeds, made, QuantizeOptions(scheme=scheme))
    elif engine == "onnxruntime" and name == "LSTM":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(str(source), str(made), weight_type=QuantType.QInt8)
    elif engine == "onnxruntime":
        quantised(source, {key: x.shape for key, x in feeds[0].items()}).rename(made)
    else:
        import nncf
        import openvino

        model = openvino.Core().read_model(source)
        kind = nncf.ModelType.TRANSFORMER if name == "MiniLM" else None
        found = nncf.quantize(model, nncf.Dataset(feeds), subset_size=len(feeds), model_type=kind)
        openvino.save_model(found, made, compress_to_fp16=False)
    return made


def opened(engine: str, path: Path, threads: int) -> Callable[[Feed], Any]:
    """Return a function that runs a file once."""
    if engine == "openvino":
        import openvino

        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        return openvino.Core().compile_model(path, "CPU", settings).create_infer_request().infer
    module = __import__(engine)
    options = module.SessionOptions()
    options.intra_op_num_threads = threads
    session = module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def serve(engine: str, path: Path, name: str, threads: int) -> None:
    """Time runs for as many seconds as each line of the input says."""
    run, feed = opened(engine, path, threads), feeds_of(name)[0]
    for _ in range(5):
        run(feed)
    for line in sys.stdin:
        end, times = time.perf_counter() + float(line), []
        while time.perf_counter() < end or not times:
            start = time.perf_counter()
            run(feed)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


def measure(name: str, threads: int) -> None:
    """Print a line of the table."""
    command = [sys.executable, __file__, "--serve"]
    count = {"OMP_NUM_THREADS": str(threads)}
    workers = {
        engine: subprocess.Popen(
            [*command, engine, str(quantised_by(engine, name)), name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | count,
        )
        for engine in ENGINES
    }
    times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for turn in range(ROUNDS + 1):
        for engine, worker in workers.items():
            assert worker.stdin is not None
            assert worker.stdout is not None
            print(SECONDS, file=worker.stdin, flush=True)
            found = json.loads(worker.stdout.readline())
            times[engine] += found if turn else []
    for worker in workers.values():
        worker.kill()
    ours, *theirs = (statistics.median(times[engine]) for engine in ENGINES)
    ratios = " | ".join(f"{each / ours:.2f}" for each in theirs)
    print(f"| {name} | {threads} | {ours * 1e3:.3f} | {ratios} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        engine, path, name, threads = sys.argv[2:]
        serve(engine, Path(path), name, int(threads))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    print("| model | threads | hagane, ms | ONNX Runtime ÷ hagane | OpenVINO ÷ hagane |")
    print("|---|---|---|---|---|", flush=True)
    for name in given.names:
        for threads in given.threads:
            measure(name, threads)


if __name__ == "__main__":
    main()
