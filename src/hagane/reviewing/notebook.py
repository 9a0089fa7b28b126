"""``%load_ext hagane.reviewing.notebook``: ``%hagane_check`` in a notebook.

    %hagane_check Net(10) float32[batch, 3, 32, 32]

checks a model, class or function of the notebook over types of its arguments. The cell that defines
it is its source.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any

from hagane.checking import check
from hagane.errors import HaganeError, InvalidArgument
from hagane.frontends.python.report.render import render_text

_NAMED = re.compile(r"(\w+)\s*=\s*(.+)")
# The file of a cell, as IPython compiles it in a terminal and in a kernel.
_CELL_FILE = re.compile(r"<ipython-input-[\w-]+>|[^\s:]*ipykernel_\d+[/\\][\w-]+\.py")


def load_ipython_extension(shell: Any) -> None:
    """Give a shell of IPython the magic ``%hagane_check``."""
    from IPython.core.error import UsageError

    def hagane_check(line: str) -> None:
        try:
            for text in checked(line, shell.user_ns):
                print(_CELL_FILE.sub(lambda match: _cell(shell, match[0]), text))
        except HaganeError as error:
            raise UsageError(str(error)) from None  # which is shown on one line

    shell.register_magic_function(hagane_check, "line", "hagane_check")


def _cell(shell: Any, file: str) -> str:
    """Return a cell as the notebook numbers it: ``In[3]``."""
    describe: Callable[[str], tuple[str, str] | None] = shell.compile.format_code_name
    found = describe(file)
    return file if found is None else found[1]


def checked(line: str, names: dict[str, Any]) -> Iterator[str]:
    """Yield the report of a check that is written on one line.

    Args:
        line: An expression, then the types of its arguments separated by ``;``, with names as in
            ``x=float32[n]`` or in order.
        names: The names of the notebook.

    Raises:
        InvalidArgument: The line is empty, no expression stands at its beginning, or it has a name
            that the notebook has not.
    """
    expression, types = _parts(line)
    try:
        model = eval(compile(expression, "<hagane_check>", "eval"), names)
    except NameError as error:
        raise InvalidArgument(f"%hagane_check '{line}': {error}; run its cell first") from None
    named = {match[1]: match[2] for text in types if (match := _NAMED.fullmatch(text))}
    in_order = [text for text in types if not _NAMED.fullmatch(text)]
    return render_text(check(model, *in_order, **named))


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
