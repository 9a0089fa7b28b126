"""Draw a graph as a self-contained SVG: one box a node, layers from top to bottom.

A deep graph continues in a column to the right, so that the drawing is about as high as wide.
Weights are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import onnx_ir as ir

from hagane.graph.places import place_of
from hagane.graph.walk import read_values

_BOX_HEIGHT, _GAP_X, _GAP_Y, _CHARACTER = 38, 24, 34, 6.6
_TOP, _GUTTER = 30, 40
# Between boxes and a line that passes them; less than half of the gap.
_ASIDE = 9
# Of height to width at most, but for drawings of few rows, which stay whole.
_ASPECT, _SHORT = 1.0, 12
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
    place: str = ""
    x: float = 0.0
    y: float = 0.0
    column: _Column | None = None

    @property
    def width(self) -> float:
        return max(len(self.title) * 7.6, len(self.subtitle) * _CHARACTER) + 20


@dataclass(slots=True)
class _Column:
    layers: list[list[_Box]]
    left: float = 0.0

    @property
    def width(self) -> float:
        return max(sum(box.width + _GAP_X for box in layer) for layer in self.layers)


def to_svg(model: ir.Model) -> str:
    """Return the main graph of ``model`` as the text of an SVG file."""
    return drawing_of(model.graph, model.graph, model.graph.name or "model")


def drawing_of(graph: ir.Graph, nodes: Iterable[ir.Node], title: str) -> str:
    """Return some nodes of a graph as SVG, with the values that they take and give."""
    boxes, edges = _boxes(graph, list(nodes))
    columns = _columns(_ordered(boxes, edges))
    left = 20.0
    for column in columns:
        column.left = left
        for row, layer in enumerate(column.layers):
            at = left + (column.width - sum(b.width + _GAP_X for b in layer) + _GAP_X) / 2
            for box in layer:
                box.x, box.y = at, _TOP + row * (_BOX_HEIGHT + _GAP_Y)
                box.column = column
                at += box.width + _GAP_X
        left += column.width + _GUTTER
    width = left - _GUTTER + 20 if columns else 40
    rows = max((len(column.layers) for column in columns), default=0)
    height = _TOP + 10 + rows * (_BOX_HEIGHT + _GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        *(_edge(boxes[a], boxes[b], name) for a, b, name in edges),
        *map(_box, boxes),
        "</svg>",
    ]
    return "\n".join(parts)


def _columns(layers: Sequence[list[_Box]]) -> list[_Column]:
    """Return layers in the fewest columns that make the drawing no higher than ``_ASPECT``."""
    count = 0
    while True:
        count += 1
        rows = -(-len(layers) // count)
        columns = [_Column(list(layers[at : at + rows])) for at in range(0, len(layers), rows or 1)]
        width = sum(column.width + _GUTTER for column in columns)
        if rows * (_BOX_HEIGHT + _GAP_Y) <= _ASPECT * width or rows <= _SHORT:
            return columns


def _boxes(
    graph: ir.Graph, nodes: Sequence[ir.Node]
) -> tuple[list[_Box], list[tuple[int, int, str]]]:
    boxes: list[_Box] = []
    edges: list[tuple[int, int, str]] = []
    source: dict[ir.Value, int] = {}
    inside = set(nodes)
    for value in _taken(graph, nodes):
        source[value] = len(boxes)
        boxes.append(_Box(str(value.name), _type(value), "input", 0))
    for node in nodes:
        if _is_constant(node):
            continue
        used = [value for value in read_values(node) if value in source]
        layer = 1 + max((boxes[source[value]].layer for value in used), default=0)
        edges += [(source[value], len(boxes), str(value.name)) for value in dict.fromkeys(used)]
        kind = "weights" if node.op_type in _WEIGHTED else "shape"
        kind = kind if node.op_type in _WEIGHTED | _SHAPED else "other"
        shape = _type(node.outputs[0]) if node.outputs else ""
        for value in node.outputs:
            source[value] = len(boxes)
        boxes.append(_Box(node.op_type, shape, kind, layer, place_of(node)))
    results = set(graph.outputs)
    for value in [value for value in source if value.producer() in inside]:
        if value in results or any(user not in inside for user, _ in value.uses()):
            edges.append((source[value], len(boxes), str(value.name)))
            layer = boxes[source[value]].layer + 1
            boxes.append(_Box(str(value.name), _type(value), "output", layer))
    return boxes, edges


def _taken(graph: ir.Graph, nodes: Sequence[ir.Node]) -> list[ir.Value]:
    """Return the values that nodes take from elsewhere, weights and constants left out."""
    made = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(value for node in nodes for value in read_values(node))
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    whole = len(nodes) == len(graph)
    taken = [value for value in inputs if whole or value in read]
    for value in read:
        producer = value.producer()
        if producer is not None and value not in made and not _is_constant(producer):
            taken.append(value)
    return taken


def _is_constant(node: ir.Node) -> bool:
    return (node.domain, node.op_type) == ("", "Constant")


def _type(value: ir.Value) -> str:
    if value.shape is None:
        return ""
    return "×".join(str(dim) for dim in value.shape) or "scalar"


def _ordered(boxes: Sequence[_Box], edges: Sequence[tuple[int, int, str]]) -> list[list[_Box]]:
    """Return the boxes by layer, each near the middle of its inputs."""
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
    if a.column is b.column or a.column is None or b.column is None:
        between = (
            [box for layer in a.column.layers for box in layer if a.y < box.y < b.y]
            if a.column
            else []
        )
        side = _side_of(between, x1, y1, x2, y2)
        if side is not None:
            path = (
                f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + _GAP_Y / 2:.1f} {side:.1f},{y1:.1f} "
                f"{side:.1f},{y1 + _GAP_Y:.1f} V{y2 - _GAP_Y:.1f} "
                f"C{side:.1f},{y2:.1f} {x2:.1f},{y2 - _GAP_Y / 2:.1f} {x2:.1f},{y2:.1f}"
            )
            return _line(path, name)
        bend = (y2 - y1) / 2
        path = (
            f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + bend:.1f} {x2:.1f},{y2 - bend:.1f} "
            f"{x2:.1f},{y2:.1f}"
        )
    else:
        # Down, through the gutter behind its column, over the top, and down before the other's.
        after = a.column.left + a.column.width + _GUTTER / 2 - 10
        before = b.column.left - _GUTTER / 2 - 10
        half = _GAP_Y / 2
        over = f"V{_TOP / 2:.1f} H{before:.1f} " if before - after > _GUTTER else ""
        path = (
            f"M{x1:.1f},{y1:.1f} V{y1 + half:.1f} H{after:.1f} {over}V{y2 - half:.1f} "
            f"H{x2:.1f} V{y2:.1f}"
        )
    return _line(path, name)


def _side_of(between: Sequence[_Box], x1: float, y1: float, x2: float, y2: float) -> float | None:
    """Return where a line passes boxes that would hide it; None if they do not."""

    def hides(box: _Box) -> bool:
        way = (box.y + _BOX_HEIGHT / 2 - y1) / (y2 - y1)
        x = x1 + (x2 - x1) * way * way * (3 - 2 * way)
        return box.x < x < box.x + box.width

    if not any(map(hides, between)):
        return None
    middle = (x1 + x2) / 2
    left = min(box.x for box in between) - _ASIDE
    right = max(box.x + box.width for box in between) + _ASIDE
    return left if middle - left < right - middle else right


def _line(path: str, name: str) -> str:
    return f'<path d="{path}" fill="none" stroke="#888"><title>{escape(name)}</title></path>'


def _box(box: _Box) -> str:
    middle = box.x + box.width / 2
    place = f"<title>{escape(box.place)}</title>" if box.place else ""  # shown under the pointer
    return (
        f"<g>{place}"
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{_BOX_HEIGHT}" rx="6" fill="{_COLOURS[box.kind]}" stroke="#666"/>'
        f'<text x="{middle:.1f}" y="{box.y + 16:.1f}" font-size="13" text-anchor="middle">'
        f"{escape(box.title)}</text>"
        f'<text x="{middle:.1f}" y="{box.y + 31:.1f}" font-size="11" fill="#444" '
        f'text-anchor="middle">{escape(box.subtitle)}</text></g>'
    )
