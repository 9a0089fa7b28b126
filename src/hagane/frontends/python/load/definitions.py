"""The syntax trees of real functions, found by their code."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import re
import sys
import textwrap
import time
import types
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hagane.frontends.python.load.modules import SourceError, parse_file
from hagane.frontends.python.report.sources import read_source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# Ends of a function that are tried: those before may be of a bracket or a text of several lines.
_ENDS = 4
_STARTED = time.time()  # files that change after it may have other code than what was imported
# Instructions that depend on where the variables of a function lie.
_ELSEWHERE = (
    "LOAD_", "STORE_", "DELETE_", "MAKE_", "COPY_FREE_VARS", "PUSH_NULL", "RESUME", "NOP",
    "EXTENDED_ARG", "SET_FUNCTION_ATTRIBUTE", "BUILD_TUPLE", "PRECALL", "CACHE",
)  # fmt: skip
_FUTURE = __future__.annotations.compiler_flag
_MANGLED = re.compile(r"_\w+?(__\w*[^_]_?)")


class Definitions:
    """Finds the definitions of functions; one function has the same tree each time."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str] | None] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._alone: dict[tuple[str, str, int], Definition | None] = {}
        self._whole: dict[str, dict[tuple[str, int], list[Any]]] = {}
        self._late: dict[str, bool] = {}

    def of(self, found: types.FunctionType) -> Definition | None:
        """Return the syntax tree of a function, with the lines of its file; None if unknown.

        Most functions are read alone: the whole file may have thousands of lines. Of a file that
        has changed in this process, the functions count whose code it still has.
        """
        code = found.__code__
        node = self._found(found, code)
        is_late = node is not None and self._is_late(_path_of(code.co_filename))
        return None if node is None or (is_late and not _is_of(node, code)) else node

    def _is_late(self, file: str) -> bool:
        """Whether a file has changed in this process, or there is none."""
        if file not in self._late:
            try:
                self._late[file] = Path(file).stat().st_mtime > _STARTED
            except (OSError, ValueError):
                self._late[file] = True
        return self._late[file]

    def _found(self, found: types.FunctionType, code: types.CodeType) -> Definition | None:
        file = _path_of(code.co_filename)
        if code.co_name != "<lambda>":
            key = file, code.co_name, code.co_firstlineno
            if key not in self._alone:
                self._alone[key] = _read_alone(self._lines_of(file), code)
            alone = self._alone[key]
            if alone is not None:
                return alone
        if self._tree(file) is None:
            return _read_text(found)
        nodes = self._defined(file).get((code.co_name, code.co_firstlineno), [])
        if len(nodes) > 1 and code.co_name == "<lambda>":
            return _lambda_of(code, nodes)
        return nodes[0] if nodes else None

    def _lines_of(self, file: str) -> list[str]:
        if file not in self._lines:
            try:
                self._lines[file] = read_source(Path(file)).split("\n")
            except (OSError, ValueError):
                self._lines[file] = None
        return self._lines[file] or []

    def _defined(self, file: str) -> dict[tuple[str, int], list[Any]]:
        """Return the functions of a file by name and first line, that of a decorator or their own.

        There may be several lambdas on a line.
        """
        if file not in self._whole:
            made: dict[tuple[str, int], list[Any]] = {}
            tree = self._tree(file)
            for node in () if tree is None else ast.walk(tree):
                if isinstance(node, ast.Lambda):
                    made.setdefault(("<lambda>", node.lineno), []).append(node)
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                    for line in {first, node.lineno}:
                        made.setdefault((node.name, line), []).append(node)
            self._whole[file] = made
        return self._whole[file]

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            try:
                self._trees[file] = parse_file(Path(file))
            except SourceError:
                self._trees[file] = None
        return self._trees[file]


def _path_of(file: str) -> str:
    """Return the file of a module that is part of the interpreter itself; others unchanged."""
    if not file.startswith("<frozen "):
        return file
    module = sys.modules.get(file.removeprefix("<frozen ").removesuffix(">"))
    return getattr(module, "__file__", None) or file


def _read_alone(lines: Sequence[str], code: types.CodeType) -> Definition | None:
    """Return the tree of the function that begins on the first line of a code; None if unclear."""
    first = code.co_firstlineno - 1
    if not 0 <= first < len(lines):
        return None
    indent = _indent_of(lines[first])
    head = "\n" * first if indent == 0 else "\n" * (first - 1) + "if 1:\n"
    ends = (
        end
        for end in range(_last_line(code), len(lines) + 1)
        if end == len(lines) or (lines[end].strip() and _indent_of(lines[end]) <= indent)
    )
    for end, _ in zip(ends, range(_ENDS), strict=False):
        try:
            with warnings.catch_warnings():  # Python's own, of strings and comparisons
                warnings.simplefilter("ignore")
                body = ast.parse(head + "\n".join(lines[first:end]) + "\n").body
        except (SyntaxError, ValueError, RecursionError):
            continue
        if indent and len(body) == 1 and isinstance(body[0], ast.If):
            body = body[0].body
        node = body[0] if len(body) == 1 else None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            return node
        return None
    return None


def _is_of(node: Definition, code: types.CodeType) -> bool:
    """Whether a definition has the arguments, names, constants and operations of a code object.

    Python itself may find the text of another function: of one that ``exec`` has made, it reads
    the lines of the module in which that was called.
    """
    alone: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if "__class__" in code.co_freevars:  # of super()
        alone = ast.parse("class _: pass").body[0]
        alone.body = [node]  # type: ignore[attr-defined]
    tree = ast.fix_missing_locations(ast.Module([alone], []))
    try:
        whole = compile(tree, "<definition>", "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    made = [c for c in whole.co_consts if isinstance(c, types.CodeType)]
    made += [c for one in made for c in one.co_consts if isinstance(c, types.CodeType)]
    return any(_parts_of(one) == _parts_of(code) for one in made if one.co_name == code.co_name)


def _parts_of(code: types.CodeType) -> tuple[Any, ...]:
    """Return what a code object has wherever its function is defined."""
    count = code.co_argcount + code.co_kwonlyargcount
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    plain = {_plain(name) for name in names if name != "__class__"}
    constants = {repr(c) for c in code.co_consts if isinstance(c, int | float | str | bytes)}
    inner = [_parts_of(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    operations = [
        (one.opname, one.argrepr if one.opname in ("BINARY_OP", "COMPARE_OP") else "")
        for one in dis.get_instructions(code)
        if not one.opname.startswith(_ELSEWHERE)
    ]
    return code.co_name, code.co_varnames[:count], plain, constants, inner, operations


def _plain(name: str) -> str:
    """Return a private name without its class."""
    found = _MANGLED.fullmatch(name)
    return name if found is None else found[1]


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: types.CodeType) -> int:
    own = max((line for *_, line in code.co_lines() if line is not None), default=0)
    inner = (_last_line(item) for item in code.co_consts if isinstance(item, types.CodeType))
    return max(own, code.co_firstlineno, *inner)


def _read_text(found: types.FunctionType) -> ast.FunctionDef | None:
    """Return the tree of a function whose text Python itself has, as of a notebook's cell."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef):
        return None
    ast.increment_lineno(node, found.__code__.co_firstlineno - 1)
    return node


def _lambda_of(code: types.CodeType, nodes: Sequence[ast.Lambda]) -> ast.Lambda | None:
    """Return which of several lambdas that begin on a line a code object is; None if unknown.

    It is the innermost one whose body has the places of all instructions. Python may be told to
    keep none of these.
    """
    places = [place for place in code.co_positions() if None not in place]
    # The first instruction has no width.
    spans = [((a, c), (b, d)) for a, b, c, d in places if (a, c) != (b, d)]
    if not spans:
        return None
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    found: ast.Lambda | None = None
    for node in nodes:
        body = node.body
        start = body.lineno, body.col_offset
        if start > first or (body.end_lineno, body.end_col_offset) < last:
            continue
        if found is None or start > (found.body.lineno, found.body.col_offset):
            found = node
    return found


__all__ = ["Definitions"]
