"""Upsample, and Resize as it was in opset 10."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.passes.edit import given
from hagane.passes.legalise.rewrite import Site

# Before opset 11, output pixel i came from input coordinate i / scale, rounded down.
_OLD_COORDINATES = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def resize_11(site: Site) -> None:
    """Resize(x, scales) becomes Resize(x, roi, scales) with the old coordinates spelt out.

    Opset 10 did not say how coordinates round. ONNX Runtime rounds down where it enlarges and up
    where it shrinks; a node that does both becomes two.
    """
    x, scales = site.node.inputs
    known = _known(scales)
    for name, value in _OLD_COORDINATES.items():
        site.put(name, value)
    if known is not None and np.any(known < 1):
        if np.any(known > 1):
            enlarge = np.maximum(known, 1).astype(np.float32)
            x = op("Resize", x, None, enlarge, **given(site.node))
            scales = site.constant(np.minimum(known, 1), np.float32)
        site.put("nearest_mode", "ceil")
    site.set_input(1, None)
    site.set_input(2, scales)
    site.set_input(0, x)


def _known(value: ir.Value | None) -> np.ndarray | None:
    """Return the numbers of a constant, or None."""
    if value is None:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def upsample(site: Site) -> None:
    """Upsample, whose scales are an attribute until opset 9, is a Resize."""
    scales = site.take("scales")
    if scales is None and len(site.node.inputs) < 2:
        site.refuse("expected 'scales'; height_scale and width_scale have no current form")
    source = site.node.inputs[1] if scales is None else np.float32(scales)
    mode = site.take("mode", "nearest")
    for name, value in _OLD_COORDINATES.items():
        site.put(name, value)
    site.put("mode", {"bilinear": "linear"}.get(mode, mode))
    site.replace(op("Resize", site.node.inputs[0], None, source, **given(site.node)))
