"""How many models of torchvision and timm become a graph with open batch, beside torch.export.

    python benchmarks/capture.py [--library torchvision] [--only resnet18,vgg11]

Models have random weights and small inputs. "agrees" counts the models whose one graph returns
what the model returns for three batches, in ONNX Runtime; "torch.export" those that it exports
(``strict=False``, open batch) and that agree likewise. Obstacles follow, the most frequent first.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
import torch

import hagane
from hagane.graph import to_proto

BATCHES = (2, 3, 5)
_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
TORCHVISION = {
    "alexnet": 64, "vgg11": 32, "vgg13_bn": 32, "resnet18": 32, "resnet50": 32,
    "resnext50_32x4d": 32, "wide_resnet50_2": 32, "squeezenet1_1": 64, "densenet121": 32,
    "googlenet": 64, "inception_v3": 80, "mobilenet_v2": 32, "mobilenet_v3_small": 32,
    "mnasnet0_5": 32, "shufflenet_v2_x0_5": 32, "efficientnet_b0": 32, "efficientnet_v2_s": 32,
    "regnet_x_400mf": 32, "regnet_y_400mf": 32, "convnext_tiny": 32, "vit_b_32": 224, "swin_t": 32,
    "swin_v2_t": 64, "maxvit_t": 224,
}  # fmt: skip
TIMM = {
    "resnet18": 32, "resnet50d": 32, "resnetv2_50": 32, "seresnet18": 32, "ecaresnet26t": 32,
    "efficientnet_b0": 32, "mobilenetv3_small_100": 32, "mobilenetv4_conv_small": 32,
    "convnext_atto": 32, "convnextv2_atto": 32, "vit_tiny_patch16_224": 224,
    "deit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224, "mixer_s32_224": 224,
    "resmlp_12_224": 224, "gmlp_s16_224": 224, "poolformer_s12": 64, "regnety_002": 32,
    "densenet121": 32, "ghostnet_050": 32, "hrnet_w18_small": 64, "levit_128s": 224,
    "xcit_nano_12_p16_224": 224, "cait_xxs24_224": 224, "coat_tiny": 224, "crossvit_tiny_240": 240,
    "edgenext_xx_small": 64, "efficientformer_l1": 224, "fastvit_t8": 64, "repvgg_a0": 32,
}  # fmt: skip


def torchvision_models() -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Yield names, makers and sizes of pictures."""
    try:
        import torchvision
    except RuntimeError:  # its operators are built for another PyTorch: classifiers need none
        for name in ("nms", "qnms"):
            text = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            _OPERATORS.define(text)
        for name in [n for n in sys.modules if n.startswith("torchvision")]:
            del sys.modules[name]
        import torchvision
    for name, size in TORCHVISION.items():
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
    options = parser.parse_args()
    warnings.simplefilter("ignore")
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
