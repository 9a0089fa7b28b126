"""The patterns that every pass recognises and refuses, as ``docs/passes.md`` shows them.

``python -m hagane.passes.document > docs/passes.md`` writes it anew; a test compares the two.
"""

from __future__ import annotations

import inspect

from hagane.passes import LACKING, PASSES, Pass

_INTRODUCTION = """\
# Passes

Written by `python -m hagane.passes.document`; don't edit. A pass rewrites the graph of a model so
that its outputs stay what they are and cost less. The passes are applied in this order, and again
until none changes anything; `hagane inspect MODEL --passes` shows what each did to a model, and to
which nodes.
"""


def passes_document() -> str:
    """Return the document."""
    lines = [_INTRODUCTION, "| pass | effect |", "|---|---|"]
    lines += [f"| [{one.name}](#{one.name}) | {one.effect} |" for one in PASSES]
    for one in PASSES:
        lines += ["", f"## {one.name}", "", _text(one)]
    return "\n".join(lines) + "\n"


def _text(one: Pass) -> str:
    text = (inspect.getdoc(one.run) or "").replace("``", "`")
    if one.makes not in LACKING:
        return text
    return (
        f"{text}\n\nNot applied by sessions yet: {one.makes} has no native kernel, while what it "
        "is made of has."
    )


if __name__ == "__main__":
    print(passes_document(), end="")
