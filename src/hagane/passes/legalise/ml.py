"""Old forms of ``ai.onnx.ml``."""

from __future__ import annotations

import onnx_ir as ir

from hagane.passes.legalise.rewrite import Site


def label_encoder_2(site: Site) -> None:
    """One list of strings with their positions becomes explicit keys and values."""
    classes = site.take("classes_strings") or ()
    default_int = site.take("default_int64", -1)
    default_string = site.take("default_string", "_Unused")
    source = site.node.inputs[0]
    if source is None or source.dtype is None:
        site.refuse("the element type of its input is not declared")
    positions = list(range(len(classes)))
    if source is not None and source.dtype == ir.DataType.STRING:
        site.put("keys_strings", list(classes))
        site.put("values_int64s", positions)
        site.put("default_int64", default_int)
    else:
        site.put("keys_int64s", positions)
        site.put("values_strings", list(classes))
        site.put("default_string", default_string)
