"""A graph as a page: its blocks one below the other, each of which opens to its drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape

import onnx_ir as ir

from hagane.graph.blocks import Block, blocks_of
from hagane.graph.draw import drawing_of

_STYLE = """
:root { color-scheme: light dark; }
body { font-family: sans-serif; margin: 1em auto; max-width: 70em; padding: 0 1em; }
details { border: 1px solid #999; border-radius: 6px; margin: 0.4em 0; }
summary { cursor: pointer; padding: 0.5em; background: #79c2; border-radius: 6px; }
details > div { overflow-x: auto; padding: 0.5em; }
svg { max-width: 100%; height: auto; background: white; }
.shape, .count { opacity: 0.8; font-size: 90%; }
"""


def to_html(model: ir.Model) -> str:
    """Return the main graph of ``model`` as a page that needs no other file and no script."""
    graph = model.graph
    title = escape(graph.name or "model")
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width">',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>takes {_values(inputs)}</p>",
        *(_block(graph, block) for block in blocks_of(graph)),
        f"<p>gives {_values(graph.outputs)}</p>",
        "</body></html>",
    ]
    return "\n".join(parts)


def _block(graph: ir.Graph, block: Block) -> str:
    kinds = Counter(node.op_type for node in block.nodes)
    named = ", ".join(f"{kind} ×{n}" if n > 1 else kind for kind, n in kinds.most_common())
    last = block.nodes[-1].outputs[0] if block.nodes[-1].outputs else None
    weights = sum(
        int(value.const_value.size)
        for value in {v for node in block.nodes for v in node.inputs if v is not None}
        if value.is_initializer() and value.const_value is not None
    )
    shape = "" if last is None else f' <span class="shape">→ {escape(_shape(last))}</span>'
    plural = "" if weights == 1 else "s"
    count = f"{weights:,} parameter{plural}" if weights else "no parameters"
    return (
        f"<details><summary><b>{escape(block.name)}</b> {escape(named)}{shape} "
        f'<span class="count">{count}</span></summary>'
        f"<div>{drawing_of(graph, block.nodes, block.name)}</div></details>"
    )


def _values(values: Iterable[ir.Value]) -> str:
    found = [f"<b>{escape(str(value.name))}</b> {escape(_shape(value))}" for value in values]
    return ", ".join(found) or "nothing"


def _shape(value: ir.Value) -> str:
    if value.shape is None:
        return "?"
    return "×".join(str(dim) for dim in value.shape) or "scalar"
