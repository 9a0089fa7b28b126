"""A self-contained page of the differences between two configurations."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources

from hagane.tools.cluster.report.compare import Difference, readable

_LEFT, _RIGHT, _TOP, _LOW = 74, 206, 10, 100


def plot(differences: Sequence[Difference], a: str, b: str, confidence: float = 0.95) -> str:
    """Return a page with each metric's pairs as lines from A to B, and its mean."""
    template = resources.files(__package__).joinpath("compare.html").read_text(encoding="utf-8")
    fields = {
        "a": html.escape(a),
        "b": html.escape(b),
        "seeds": str(max((len(d.pairs) for d in differences), default=0)),
        "confidence": f"{confidence:.0%}",
        "plots": "".join(_figure(d) for d in differences),
    }
    for name, text in fields.items():
        template = template.replace("{{" + name + "}}", text)
    return template


def _figure(item: Difference) -> str:
    values = [v for pair in item.pairs for v in pair]
    low, high = min(values), max(values)

    def height(value: float) -> float:
        # Where nothing differs, the line is in the middle.
        share = (value - low) / (high - low) if high > low else 0.5
        return _LOW - (_LOW - _TOP) * share

    def line(x: float, y: float, kind: str = "") -> str:
        return f'<line{kind} x1="{_LEFT}" x2="{_RIGHT}" y1="{height(x):.1f}" y2="{height(y):.1f}"/>'

    def label(x: int, value: float, anchor: str = "") -> str:
        return f'<text x="{x}" {anchor}y="{height(value) + 4:.1f}">{readable(value)}</text>'

    lines = "".join(line(x, y) for x, y in item.pairs) + line(item.a, item.b, ' class="mean"')
    texts = (
        label(_LEFT - 6, item.a, 'text-anchor="end" ')
        + label(_RIGHT + 6, item.b)
        + f'<text class="faint" x="{_LEFT}" y="122" text-anchor="middle">A</text>'
        f'<text class="faint" x="{_RIGHT}" y="122" text-anchor="middle">B</text>'
    )
    said = (
        f"{readable(item.difference, '+')} [{readable(item.low, '+')}, {readable(item.high, '+')}]"
        if high > low
        else "no difference"
    )
    name = html.escape(item.metric.replace("_", " ").replace(".", ": "))
    return (
        f"<figure{' class=yes' if item.significant else ''}><b>{name}</b>"
        f'<svg viewBox="0 0 280 130">{lines}{texts}</svg>'
        f"<figcaption>{said}</figcaption></figure>"
    )
