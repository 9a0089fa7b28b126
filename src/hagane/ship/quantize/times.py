"""The time that layers take in floats and in bytes, on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx

from hagane.runtime import InferenceSession
from hagane.ship.quantize.calibrate import Feed
from hagane.ship.quantize.graph import Layer

_RUNS = 10
_LABEL = re.compile(r"'(.*)'$")


def layer_times(
    model: onnx.ModelProto, layers: Sequence[Layer], feed: Feed
) -> tuple[dict[str, float], float]:
    """Return the milliseconds of the kernels of each layer by its name, and those of a whole run.

    Functions that are computed with a layer count; layers that a pass has joined with others are
    left out, and so are roundings apart from a layer, which the whole has.

    Args:
        model: The model, or a form of it that has bytes in some layers.
        layers: Those to look for.
        feed: Inputs.
    """
    named = onnx.ModelProto()
    named.CopyFrom(model)
    names = {layer.node.output[0]: layer.name for layer in layers}
    for node in named.graph.node:
        node.name = names.get(node.output[0] if node.output else "", node.name)
    report = InferenceSession(named).profile(feed, _RUNS)
    known, found = set(names.values()), dict[str, float]()
    for kernel in report.kernels:
        label = _LABEL.search(kernel.name)
        if label is not None and label[1] in known:
            found[label[1]] = found.get(label[1], 0.0) + 1e3 * kernel.seconds
    return found, 1e3 * report.seconds
