"""Models met at many sizes, beside ONNX Runtime: the first run of each, all of them once, memory.

    python benchmarks/dynamic.py [NAME ...] [--shapes 40] [--runs 100] [--threads 2] [--flat 0]

Each engine has a process of its own, which makes a session of the file with open sizes and runs it
at every shape once, in one order for all, then ``--runs`` times at some of the shapes. For each
model it prints: ONNX Runtime's time for all shapes once divided by hagane's; hagane's first run of
a shape over its hundredth (over the last of ``--runs``), in the mean and at worst; the ratio of the
engines at one shape; and peak memory. With ``--flat N`` hagane's memory after N shapes is set
against that after 20. Nothing else should use the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from training import peak, resident  # of benchmarks

Feed = Mapping[str, np.ndarray]
CACHE = Path.home() / ".cache" / "hagane"
OCR = "rapidocr-onnxruntime==1.4.4"
OCR_MODELS = ("rapidocr_onnxruntime", "models")
# So many shapes are run again and again.
_REPEATED = 5


@dataclass(frozen=True)
class Case:
    """A model and the shapes that it is met at.

    Attributes:
        path: Returns the file.
        dims: For each input the shape with names for open sizes; empty where the file has them.
        shape: Returns the sizes of the named dimensions of shape number i of n.
    """

    path: Callable[[], Path]
    dims: Mapping[str, Sequence[int | str]]
    shape: Callable[[int, int], Mapping[str, int]]


def _made(name: str) -> Callable[[], Path]:
    def path() -> Path:
        from models import make  # of benchmarks; needs PyTorch

        return make(name, CACHE / "benchmarks")[0]

    return path


def _ocr(name: str) -> Callable[[], Path]:
    def path() -> Path:
        from models import _package

        return _package(OCR, *OCR_MODELS, name)

    return path


def _sequences(name: str) -> Callable[[], Path]:
    def path() -> Path:
        from dynamic_models import written

        return written(name, CACHE / "benchmarks")

    return path


def _between(low: int, high: int, step: int, i: int, n: int) -> int:
    """Return one of n sizes from ``low`` to ``high``, in an order without neighbours."""
    at = (i * 17 + 3) % n
    return (low + (high - low) * at // max(1, n - 1)) // step * step


def _pictures(low: int, high: int, step: int) -> Callable[[int, int], Mapping[str, int]]:
    def shape(i: int, n: int) -> Mapping[str, int]:
        sizes = _between(low, high, step, i, n), _between(low, high, step, 2 * i + 1, n)
        return {"n": 1, "h": sizes[0], "w": sizes[1]}

    return shape


CASES: Mapping[str, Case] = {
    "ocr-rec": Case(
        _ocr("ch_PP-OCRv4_rec_infer.onnx"),
        {"x": ["n", 3, 48, "w"]},
        lambda i, n: {"n": 1, "w": _between(32, 640, 4, i, n)},
    ),
    "ocr-det": Case(
        _ocr("ch_PP-OCRv4_det_infer.onnx"),
        {"x": ["n", 3, "h", "w"]},
        _pictures(160, 640, 32),
    ),
    "ocr-cls": Case(
        _ocr("ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        {"x": ["n", 3, 48, 192]},
        lambda i, n: {"n": 1 + i % 32},
    ),
    "mobilenet-batch": Case(
        _made("MobileNetV2"), {"": ["n", 3, 224, 224]}, lambda i, n: {"n": 1 + i % 16}
    ),
    "mobilenet": Case(_made("MobileNetV2"), {"": ["n", 3, "h", "w"]}, _pictures(96, 320, 8)),
    "resnet50-batch": Case(
        _made("ResNet-50"), {"": ["n", 3, 224, 224]}, lambda i, n: {"n": 1 + i % 8}
    ),
    "resnet50": Case(_made("ResNet-50"), {"": ["n", 3, "h", "w"]}, _pictures(96, 320, 8)),
    "mnist": Case(_made("MNIST CNN"), {"": ["n", 1, 28, 28]}, lambda i, n: {"n": 1 + i % 32}),
    "yolo": Case(_made("YOLOv3-tiny"), {"": ["n", 3, "h", "w"]}, _pictures(160, 416, 32)),
    "unet": Case(_made("U-Net"), {"": ["n", 3, "h", "w"]}, _pictures(96, 288, 16)),
    "minilm": Case(
        _made("MiniLM"), {"*": ["n", "s"]}, lambda i, n: {"n": 1, "s": _between(1, 256, 1, i, n)}
    ),
    "gpt2-step": Case(_made("GPT-2 step"), {}, lambda i, n: {"past": 64 + i}),
    "tagger": Case(
        _sequences("tagger"), {}, lambda i, n: {"n": 1 + i % 3, "s": _between(3, 120, 1, i, n)}
    ),
    "vocoder": Case(
        _sequences("vocoder"), {}, lambda i, n: {"n": 1, "t": _between(10, 120, 1, i, n)}
    ),
}


def opened(case: Case, path: Path) -> onnx.ModelProto:
    """Return the model with names for its open sizes."""
    model = onnx.load(path)
    known = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in known]
    for number, value in enumerate(inputs):
        shape = case.dims.get(value.name) or case.dims.get("*")
        shape = shape or (case.dims.get("") if number == 0 else None)
        for dim, given in zip(value.type.tensor_type.shape.dim, shape or (), strict=False):
            dim.Clear()
            if isinstance(given, str):
                dim.dim_param = given
            else:
                dim.dim_value = given
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    del model.graph.value_info[:]
    return model


def feeds(model: onnx.ModelProto, case: Case, count: int) -> Iterator[Feed]:
    """Yield a feed for each shape."""
    random = np.random.default_rng(0)
    known = {each.name for each in model.graph.initializer}
    for i in range(count):
        sizes = case.shape(i, count)
        feed: dict[str, np.ndarray] = {}
        for value in model.graph.input:
            if value.name in known:
                continue
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            dims = value.type.tensor_type.shape.dim
            shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims]
            if kind == np.float32:
                feed[value.name] = random.standard_normal(shape).astype(kind)
            else:
                feed[value.name] = random.integers(0, 2, shape).astype(kind)
        yield feed


def session_of(engine: str, model: bytes, threads: int) -> Callable[[Feed], Any]:
    """Return a session's run as a function of a feed."""
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    else:
        import hagane

        own = hagane.SessionOptions()
        own.intra_op_num_threads = threads
        session = hagane.InferenceSession(model, own)
    return lambda feed: session.run(None, feed)


def measure(engine: str, name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the times of one engine, in seconds, and its peak memory in bytes."""
    case = CASES[name]
    model = opened(case, arguments.file)
    all_feeds = list(feeds(model, case, arguments.shapes))
    content = model.SerializeToString()
    start = time.perf_counter()
    run = session_of(engine, content, arguments.threads)
    load = time.perf_counter() - start
    firsts = [_timed(run, feed) for feed in all_feeds]
    hundredth: list[float] = []
    for feed in all_feeds[:_REPEATED]:
        times = [_timed(run, feed) for _ in range(arguments.runs)]
        hundredth.append(statistics.median(times[-max(1, len(times) // 5) :]))
    most = peak()  # (``ru_maxrss`` counts the process that started this one too.)
    found: dict[str, Any] = {
        "load": load, "firsts": firsts, "hundredth": hundredth, "peak": most,
    }  # fmt: skip
    if arguments.flat and engine == "hagane":
        found["flat"] = _flatness(run, model, case, arguments.flat)
    return found


def _timed(run: Callable[[Feed], Any], feed: Feed) -> float:
    start = time.perf_counter()
    run(feed)
    return time.perf_counter() - start


def _flatness(run: Callable[[Feed], Any], model: onnx.ModelProto, case: Case, count: int) -> float:
    """Return resident memory after many shapes over that after 20."""
    after_some = 0
    for number, feed in enumerate(feeds(model, case, count)):
        run(feed)
        if number == 19:
            after_some = resident()
    return resident() / after_some


def compare(name: str, arguments: argparse.Namespace) -> float:
    """Measure both engines, print what was found, and return the ratio over all shapes."""
    found: dict[str, dict[str, Any]] = {}
    # (Made here: an engine's process is spared PyTorch, and the time that Python's collector takes
    # to look through it.)
    file = CASES[name].path()
    for engine in ("onnxruntime", "hagane"):
        command = [
            *(sys.executable, __file__, name, "--engine", engine, "--file", str(file)),
            *("--shapes", str(arguments.shapes), "--runs", str(arguments.runs)),
            *("--threads", str(arguments.threads), "--flat", str(arguments.flat)),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[engine] = json.loads(done.stdout.splitlines()[-1])
    own, other = found["hagane"], found["onnxruntime"]
    once = sum(other["firsts"]) / sum(own["firsts"])
    ratios = [a / b for a, b in zip(own["firsts"], own["hundredth"], strict=False)]
    steady = statistics.geometric_mean(
        a / b for a, b in zip(other["hundredth"], own["hundredth"], strict=True)
    )
    print(
        f"{name}: {arguments.shapes} shapes once {once:.2f}, at one shape {steady:.2f}, first over "
        f"hundredth {statistics.geometric_mean(ratios):.2f} (worst {max(ratios):.2f}), peak memory "
        f"{own['peak'] / other['peak']:.2f}, load {own['load']:.1f} s and {other['load']:.1f} s"
        + (f", memory after {arguments.flat} shapes {own['flat']:.2f}" if "flat" in own else ""),
        flush=True,
    )
    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", choices=[*CASES, []], metavar="NAME")
    parser.add_argument("--shapes", type=int, default=40, help="how many shapes are met")
    parser.add_argument("--runs", type=int, default=100, help="of some shapes afterwards")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flat", type=int, default=0, help="shapes to run for growing memory")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=["hagane", "onnxruntime"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        print(json.dumps(measure(arguments.engine, arguments.names[0], arguments)))
        return
    ratios = [compare(name, arguments) for name in arguments.names or CASES]
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"all shapes once, geometric mean: {mean:.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
