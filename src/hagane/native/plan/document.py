"""The table of all operators and of hagane's facets of each, as ``docs/operators.md`` shows it.

``python -m hagane.native.plan.document > docs/operators.md`` writes it anew; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from hagane.graph.opsets import CURRENT_OPSETS
from hagane.native.plan.reference_only import REFERENCE_ONLY
from hagane.native.rules import RULES, WRITTEN, classical, contributed
from hagane.ops.definition import OpDef, Unsupported
from hagane.ops.registry import operators

_INTRODUCTION = """\
# Operators

Written by `python -m hagane.native.plan.document`; don't edit. Every operator has a type rule with symbolic
shapes and a reference kernel in NumPy, the meaning that every engine is tested against. A facet
that is missing has a letter, explained below the table. Models of older opsets are brought to the
current one when they are loaded, so one definition serves all versions. An operator that is native
may still run on its reference kernel for some element types or attributes; `hagane inspect` of a
model tells.
"""


# Operators that become others, or constants, before any backend sees a graph.
_BY_PASSES = frozenset({("", "Constant"), ("", "Shape"), ("", "Size")})


def operators_document() -> str:
    """Return the document."""
    reasons: dict[str, str] = {}
    lines = [_INTRODUCTION]
    for domain in sorted({domain for domain, _ in operators()}):
        table = [op for (d, _), op in sorted(operators().items()) if d == domain]
        title = domain or "ai.onnx"
        lines += [
            f"## {title}, opset {CURRENT_OPSETS[domain]}: {len(table)} operators",
            "",
            "| operator | type rule | reference | gradient | native |",
            "|---|---|---|---|---|",
            *(_row(op, reasons) for op in table),
            "",
        ]
    lines += ["## Missing kernels", ""]
    lines += [f"- {letter}: {reason}." for reason, letter in reasons.items()]
    return "\n".join(lines) + "\n"


def _row(op: OpDef, reasons: dict[str, str]) -> str:
    cells = [_facet(facet, reasons) for facet in (op.reference, op.vjp, native_facet(op))]
    return f"| {op.name} | yes | {' | '.join(cells)} |"


def native_facet(op: OpDef) -> object:
    """Return the rule or composition that an operator has for the native engine, or why not."""
    for table in (RULES, WRITTEN, classical.RULES, contributed.RULES):
        if op.key in table:
            return table[op.key]
    if op.key in _BY_PASSES:
        return _BY_PASSES
    if op.compose is not None:  # as other operators, or not, with the reason
        return op.compose
    if op.key in REFERENCE_ONLY:
        return Unsupported(REFERENCE_ONLY[op.key])
    return Unsupported("no native kernel: runs on its reference kernel between compiled parts")


def _facet(facet: object, reasons: dict[str, str]) -> str:
    if not isinstance(facet, Unsupported):
        return "yes"
    return reasons.setdefault(facet.reason, _letter(len(reasons)))


def _letter(number: int) -> str:
    return chr(ord("a") + number)


def gaps() -> Iterator[tuple[OpDef, Unsupported]]:
    """Yield every facet that is missing."""
    for op in operators().values():
        for facet in (op.reference, op.vjp, native_facet(op)):
            if isinstance(facet, Unsupported):
                yield op, facet


if __name__ == "__main__":
    print(operators_document(), end="")
