"""Scan as it was in opset 8: over a batch, with lengths a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.passes.legalise.rewrite import Site


def scan_9(site: Site) -> None:
    """A batched Scan becomes a Scan over the batch whose body is the Scan over time.

    The outer scan has no state: each batch entry's initial state is one of its scanned inputs,
    and each final state one of its scanned outputs.
    """
    node = site.node
    if node.inputs[0] is not None:
        site.refuse("sequence_lens has no current form")
    outputs = len(node.outputs)
    n_scanned = node.attributes["num_scan_inputs"].as_int()
    entries = [value for value in node.inputs[1:] if value is not None]
    directions, body = site.take("directions"), site.take("body")

    def over_time(*entry: ir.Value) -> Sequence[ir.Value]:
        return _scan(
            entry, outputs, body=body, num_scan_inputs=n_scanned, scan_input_directions=directions
        )

    site.replace(*_scan(entries, outputs, body=over_time, num_scan_inputs=len(entries)))


def _scan(inputs: Sequence[ir.Value], outputs: int, **attributes: Any) -> Sequence[ir.Value]:
    made = op("Scan", *inputs, outputs=outputs, **attributes)
    return made if isinstance(made, tuple) else (made,)
