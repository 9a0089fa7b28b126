"""Draw a graph as a self-contained SVG: one box a node, layers from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import onnx_ir as ir

from hagane.graph.walk import read_values

_BOX_HEIGHT, _GAP_X, _GAP_Y, _CHARACTER = 38, 24, 34, 6.6
_COLOURS = {
    "weights": "#d9c5f0",
    "shape": "#e8e8e8",
    "input": "#c8e6c9",
    "output": "#ffd9b3",
    "other": "#cfe2ff",
}
_WEIGHTED = frozenset(
    {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "Attention", "Einsum"}
)
_SHAPED = frozenset(
    {
        "Cast",
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Shape",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)


@dataclass(slots=True)
class _Box:
    title: str
    subtitle: str
    kind: str
    layer: int
    x: float = 0.0

    @property
    def width(self) -> float:
        return max(len(self.title) * 7.6, len(self.subtitle) * _CHARACTER) + 20

    @property
    def y(self) -> float:
        return 20 + self.layer * (_BOX_HEIGHT + _GAP_Y)


def to_svg(model: ir.Model) -> str:
    """Return the main graph of ``model`` as the text of an SVG file."""
    boxes, edges = _boxes(model.graph)
    layers = _ordered(boxes, edges)
    width = max((sum(b.width + _GAP_X for b in layer) for layer in layers), default=0) + 40
    for layer in layers:
        at = (width - sum(b.width + _GAP_X for b in layer) + _GAP_X) / 2
        for box in layer:
            box.x = at
            at += box.width + _GAP_X
    height = 40 + len(layers) * (_BOX_HEIGHT + _GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif">',
        f"<title>{escape(model.graph.name or 'model')}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        *(_edge(boxes[a], boxes[b], name) for a, b, name in edges),
        *map(_box, boxes),
        "</svg>",
    ]
    return "\n".join(parts)


def _boxes(graph: ir.Graph) -> tuple[list[_Box], list[tuple[int, int, str]]]:
    boxes: list[_Box] = []
    edges: list[tuple[int, int, str]] = []
    source: dict[ir.Value, int] = {}
    for value in graph.inputs:
        if value.name not in graph.initializers:
            source[value] = len(boxes)
            boxes.append(_Box(str(value.name), _type(value), "input", 0))
    for node in graph:
        if node.op_type == "Constant" and not node.domain:
            continue
        used = [value for value in read_values(node) if value in source]
        layer = 1 + max((boxes[source[value]].layer for value in used), default=0)
        edges += [(source[value], len(boxes), str(value.name)) for value in dict.fromkeys(used)]
        kind = "weights" if node.op_type in _WEIGHTED else "shape"
        kind = kind if node.op_type in _WEIGHTED | _SHAPED else "other"
        shape = _type(node.outputs[0]) if node.outputs else ""
        for value in node.outputs:
            source[value] = len(boxes)
        boxes.append(_Box(node.op_type, shape, kind, layer))
    for value in graph.outputs:
        if value in source:
            edges.append((source[value], len(boxes), str(value.name)))
            layer = boxes[source[value]].layer + 1
            boxes.append(_Box(str(value.name), _type(value), "output", layer))
    return boxes, edges


def _type(value: ir.Value) -> str:
    if value.shape is None:
        return ""
    return "×".join(str(dim) for dim in value.shape) or "scalar"


def _ordered(boxes: Sequence[_Box], edges: Sequence[tuple[int, int, str]]) -> list[list[_Box]]:
    """Return the boxes by layer, each near the middle of what it reads."""
    count = 1 + max((box.layer for box in boxes), default=-1)
    layers: list[list[int]] = [[] for _ in range(count)]
    for index, box in enumerate(boxes):
        layers[box.layer].append(index)
    above: dict[int, list[int]] = {}
    for a, b, _ in edges:
        above.setdefault(b, []).append(a)
    place: dict[int, float] = {}
    for layer in layers:
        middle = {
            index: sum(place[a] for a in above[index]) / len(above[index])
            if index in above
            else float(position)
            for position, index in enumerate(layer)
        }
        layer.sort(key=middle.__getitem__)
        place |= {index: float(position) for position, index in enumerate(layer)}
    return [[boxes[index] for index in layer] for layer in layers]


def _edge(a: _Box, b: _Box, name: str) -> str:
    x1, y1 = a.x + a.width / 2, a.y + _BOX_HEIGHT
    x2, y2 = b.x + b.width / 2, b.y
    bend = (y2 - y1) / 2
    return (
        f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} '
        f'{x2:.1f},{y2:.1f}" fill="none" stroke="#888"><title>{escape(name)}</title></path>'
    )


def _box(box: _Box) -> str:
    middle = box.x + box.width / 2
    return (
        f'<g><rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{_BOX_HEIGHT}" rx="6" fill="{_COLOURS[box.kind]}" stroke="#666"/>'
        f'<text x="{middle:.1f}" y="{box.y + 16:.1f}" font-size="13" text-anchor="middle">'
        f"{escape(box.title)}</text>"
        f'<text x="{middle:.1f}" y="{box.y + 31:.1f}" font-size="11" fill="#444" '
        f'text-anchor="middle">{escape(box.subtitle)}</text></g>'
    )
