"""Upsample, and Resize as it was in opset 10."""

from __future__ import annotations

import numpy as np

from hagane.graph.legalise.rewrite import Site

# Before opset 11, output pixel i came from input coordinate i / scale, rounded down.
_OLD_COORDINATES = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def resize_11(site: Site) -> None:
    """Resize(x, scales) becomes Resize(x, roi, scales) with the old coordinates spelt out."""
    x, scales = site.node.inputs
    for name, value in _OLD_COORDINATES.items():
        site.put(name, value)
    site.set_input(1, None)
    site.set_input(2, scales)
    site.set_input(0, x)


def upsample(site: Site) -> None:
    """Upsample, whose scales are an attribute until opset 9, is a Resize."""
    scales = site.take("scales")
    source = site.node.inputs[1] if scales is None else site.constant(scales, np.float32)
    mode = site.take("mode", "nearest")
    site.replace(
        "Resize",
        [site.node.inputs[0], None, source],
        {"mode": {"bilinear": "linear"}.get(mode, mode), **_OLD_COORDINATES},
    )
