"""How many models of torchvision and timm become a graph with open batch, beside torch.export.

    python benchmarks/capture.py [--library torchvision] [--only resnet18,vgg11]
    python benchmarks/capture.py --speed [--only "LSTM;ResNet-18"] [--threads 2] [--rounds 7]

Models have random weights and small inputs. "agrees" counts the models whose one graph returns
what the model returns for three batches, in ONNX Runtime; "torch.export" those that it exports
(``strict=False``, open batch) and that agree likewise. Obstacles follow, the most frequent first.
``--speed`` times ``hagane.compile`` beside CPython and ``torch.compile`` instead, each engine in a
process of its own (``capture_speed.py``).
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
import capture_speed
from compiled_programs import PROGRAMS
from library_models import CLASSIFIERS, TIMM, import_torchvision

import hagane
from hagane.graph import to_proto

BATCHES = (2, 3, 5)


def torchvision_models() -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Yield names, makers and sizes of pictures."""
    import_torchvision()
    import torchvision

    for name, size in CLASSIFIERS.items():
        settings = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}

        def make(name: str = name, settings: dict[str, Any] = settings) -> Any:
            return torchvision.models.get_model(name, weights=None, **settings)

        yield name, make, size


def timm_models() -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Yield names, makers and sizes of pictures."""
    import timm

    for name, size in TIMM.items():
        yield name, lambda name=name: timm.create_model(name, pretrained=False), size


LIBRARIES = {"torchvision": torchvision_models, "timm": timm_models}


def agrees(model: Any, run: Callable[[Any], Any], size: int) -> str:
    """Return how a graph differs from its model, empty if it does not."""
    for batch in BATCHES:
        x = torch.randn(batch, 3, size, size)
        expected = model(x)
        found = run(x)
        expected = expected if isinstance(expected, torch.Tensor) else next(iter(expected))
        scale = float(expected.abs().max()) or 1.0
        worst = float((torch.as_tensor(found) - expected).abs().max()) / scale
        if not worst < 1e-3:
            return f"differs by {worst:.2g} at batch {batch}"
    return ""


def captured(model: Any, size: int) -> str:
    """Return what became of a capture: empty, or the first problem."""
    try:
        graph = hagane.capture(model, f"float32[batch, 3, {size}, {size}]")
        session = onnxruntime.InferenceSession(to_proto(graph).SerializeToString())
        name = session.get_inputs()[0].name
        return agrees(model, lambda x: session.run(None, {name: np.asarray(x)})[0], size)
    except hagane.errors.CaptureError as error:
        return error.problems[0]
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def exported(model: Any, size: int) -> str:
    """Return what became of torch.export: empty, or why not."""
    try:
        batch = torch.export.Dim("batch")
        program = torch.export.export(
            model, (torch.randn(2, 3, size, size),), dynamic_shapes=({0: batch},), strict=False
        )
        module = program.module()
        return agrees(model, lambda x: _first(module(x)), size)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"


def _first(value: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else next(iter(value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="torchvision")
    parser.add_argument("--only", default="")
    parser.add_argument("--no-export", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.serve:
        capture_speed.serve(options.serve, options.only, options.threads)
        return
    if options.speed:
        wanted = [word.strip().lower() for word in options.only.split(";") if word.strip()]
        names = [n for n in PROGRAMS if not wanted or any(w in n.lower() for w in wanted)]
        capture_speed.compare(names, options.threads, options.rounds, options.seconds)
        return
    only = {*filter(None, options.only.split(","))}
    obstacles: collections.Counter[str] = collections.Counter()
    counts = collections.Counter[str]()
    for name, make, size in LIBRARIES[options.library]():
        if only and name not in only:
            continue
        torch.manual_seed(0)
        model = make().eval()
        with torch.no_grad():
            start = time.perf_counter()
            ours = captured(model, size)
            seconds = time.perf_counter() - start
            theirs = "" if options.no_export else exported(model, size)
        counts["models"] += 1
        counts["captured"] += not ours
        counts["exported"] += not theirs and not options.no_export
        if ours:
            obstacles[ours.partition(": ")[2] or ours] += 1
        print(f"{name:28} {seconds:6.1f} s  {ours[:200] or 'agrees':60}  {theirs[:80]}", flush=True)
    print(f"captured and agrees: {counts['captured']} of {counts['models']}", end="")
    print("" if options.no_export else f", torch.export: {counts['exported']}")
    for text, count in obstacles.most_common():
        print(f"{count:3}  {text[:240]}")


if __name__ == "__main__":
    main()
