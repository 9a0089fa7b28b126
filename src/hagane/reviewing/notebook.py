"""``%load_ext hagane.reviewing.notebook``: ``%hagane_check`` in a notebook.

    %hagane_check Net(10) float32[batch, 3, 32, 32]

checks a model, class or function of the notebook over types of its arguments. The cell that defines
it is its source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from hagane.checking import check
from hagane.errors import InvalidArgument
from hagane.frontends.python.report.render import render_text


def load_ipython_extension(shell: Any) -> None:
    """Give a shell of IPython the magic ``%hagane_check``."""

    def hagane_check(line: str) -> None:
        for text in checked(line, shell.user_ns):
            print(text)

    shell.register_magic_function(hagane_check, "line", "hagane_check")


def checked(line: str, names: dict[str, Any]) -> Iterator[str]:
    """Yield the report of a check that is written on one line.

    Args:
        line: An expression, then the types of its arguments separated by ``;``.
        names: The names of the notebook.

    Raises:
        InvalidArgument: The line is empty, or no expression stands at its beginning.
    """
    expression, types = _parts(line)
    model = eval(compile(expression, "<hagane_check>", "eval"), names)
    return render_text(check(model, *types))


def _parts(line: str) -> tuple[ast.Expression, list[str]]:
    """Split a line where the expression ends: at the first space that leaves one whole."""
    words = line.strip().split(" ")
    for end in range(1, len(words) + 1):
        try:
            expression = ast.parse(" ".join(words[:end]), mode="eval")
        except SyntaxError:
            continue
        rest = " ".join(words[end:]).strip()
        return expression, [text.strip() for text in rest.split(";") if text.strip()]
    raise InvalidArgument(
        f"%hagane_check '{line}': expected an expression and the types of its arguments, as in "
        "%hagane_check Net(10) float32[batch, 3, 32, 32]"
    )
