"""Scan as it was in opset 8: over a batch, with lengths a sequence."""

from __future__ import annotations

import onnx_ir as ir

from hagane.passes.legalise.rewrite import Site


def scan_9(site: Site) -> None:
    """A batched Scan becomes a Scan over the batch whose body is the Scan over time.

    The outer scan has no state: each batch entry's initial state is one of its scanned inputs,
    and each final state one of its scanned outputs.
    """
    node = site.node
    if node.inputs[0] is not None:
        site.refuse("sequence_lens has no current form")
    body = node.attributes["body"].as_graph()
    n_scanned = node.attributes["num_scan_inputs"].as_int()
    entries = [value for value in node.inputs[1:] if value is not None]
    directions = site.take("directions")

    inner_inputs = [ir.Value(name=f"{value.name}.entry{site.number()}") for value in entries]
    attributes = {"body": body, "num_scan_inputs": n_scanned}
    if directions is not None:
        attributes["scan_input_directions"] = directions
    inner = ir.node("Scan", inner_inputs, attributes, num_outputs=len(node.outputs))
    node.attributes.pop("body")
    for output in inner.outputs:
        output.name = f"legalised.{site.number()}"
    batch_body = ir.Graph(
        inner_inputs, inner.outputs, nodes=[inner], name=f"{body.name}.over_batch"
    )
    site.replace("Scan", entries, {"body": batch_body, "num_scan_inputs": len(entries)})
