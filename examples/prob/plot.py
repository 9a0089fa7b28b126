"""Draw the exact distribution of a program's value as SVG, the worked examples by default.

Run it with ``python examples/prob/plot.py [PROGRAM.pml ...] [--folder FOLDER]``.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

from hagane.tools.prob.claims.checker import check, load_program
from hagane.tools.prob.engines.engines import run_unit
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.engines.run import show_value

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 60, 50, 40


def draw(title: str, claims: str, distribution: dict[object, Fraction]) -> str:
    """Return a bar chart of a distribution."""
    bars = sorted(distribution.items(), key=lambda item: (repr(type(item[0])), item[0]))
    most = float(max(share for _, share in bars))
    step = (WIDTH - LEFT - 10) / len(bars)
    height = HEIGHT - BOTTOM - TOP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="14">{title}</text>',
        f'<text x="{LEFT}" y="32" fill="#555" font-size="11">{claims}</text>',
    ]
    for part in (0, 0.5, 1):
        y = HEIGHT - BOTTOM - part * height
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 10}" stroke="#ddd"/>')
        label = f"{part * most:.3g}"
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    every = -(-len(bars) // 16)
    for index, (value, share) in enumerate(bars):
        x, size = LEFT + index * step, float(share) / most * height
        lines.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{HEIGHT - BOTTOM - size:.1f}" '
            f'width="{step * 0.8:.1f}" height="{size:.1f}" fill="#3b6ea5"/>'
        )
        if index % every == 0:
            lines.append(
                f'<text x="{x + step / 2:.1f}" y="{HEIGHT - BOTTOM + 16}" font-size="10" '
                f'text-anchor="middle">{show_value(value)}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def draw_program(path: Path) -> str:
    """Return a bar chart of what a program gives, under what its last type claims."""
    program = load_program(path.read_text(encoding="utf-8"), path.name)
    result = run_unit(program, main_unit(program)).ledger.result
    verdict = check(program).verdicts[-1]
    measured = ", ".join(f"{item.text} = {float(item.value):.4g}" for item in verdict.probabilities)
    return draw(path.stem, escape(measured), result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("docs/images/prob"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for path in given.programs or sorted(Path(__file__).parent.glob("*.pml")):
        target = given.folder / f"{path.stem}.svg"
        target.write_text(draw_program(path), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
