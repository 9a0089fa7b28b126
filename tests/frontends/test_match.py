"""``match`` statements: the chains of ``if`` that replace them, beside CPython; in checks and graphs."""

from __future__ import annotations

import ast
import importlib
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.frontends.python.interpret.matching import as_branches
from hagane.frontends.python.values.values import Host
from tests.frontends.checking import check_text, line_of

SOURCE = """
from collections import namedtuple
from dataclasses import dataclass

@dataclass
class P:
    x: int
    y: int = 0

Q = namedtuple("Q", "a b c")

class K:
    B = "b"

def f(v):
    match v:
        case 0 | 1 | -1: return "small"
        case True | None: return ("single", v)
        case K.B: return "constant"
        case "go" | "run" as how: return how
        case str(): return "text"
        case int(n) if n > 100: return ("big", n)
        case int() | float(): return "number"
        case []: return "empty"
        case [x]: return ("one", x)
        case [1, *rest]: return ("one first", rest)
        case (a, b, *_, z) if a == z: return ("ends", a, b)
        case [P(x=0, y=yy), P(1, q), *more]: return ("points", yy, q, more)
        case [P(p), Q(a, b, c)] | [P(p), [a, b, c, *_]]: return ("both", p, a, b, c)
        case [*front, {"k": kk, **others}]: return (front, kk, others)
        case {"type": "point", "at": [x, y]}: return ("at", x, y)
        case {"type": t, **rest} if len(rest) > 1: return (t, rest)
        case {}: return "map"
        case P(0, y): return ("left", y)
        case P(x, y) if x == y: return ("diagonal", x)
        case P(): return "point"
        case _ if isinstance(v, set): return "set"
        case other: return ("other", repr(other))
"""
CASES = """
0, 1, -1, True, False, None, "b", "go", "run", "zz", 5, 500, 2.5, [], [3], [1, 2, 3], (1,),
(2, 5, 2), (2, 5, 7, 2), [P(0, 3), P(1, 9), 4], [P(5), Q(1, 2, 3)], [P(6), [7, 8, 9, 10]],
[1, 2, {"k": 5, "m": 1}], [4, {"k": 1}], {"type": "point", "at": (1, 2)},
{"type": 1, "a": 2, "b": 3}, {"type": 1, "a": 2}, {}, {"z": 1}, P(0, 4), P(3, 3), P(3, 4),
{1, 2}, b"x", Q(1, 2, 1), object
"""


def _answers(tree: ast.Module) -> list[str]:
    known: dict[str, Any] = {"__name__": __name__}
    exec(compile(tree, "case", "exec"), known)
    return [repr(known["f"](value)) for value in eval(f"[{CASES}]", known)]


class _Branches(ast.NodeTransformer):
    """Replaces ``match`` statements, with built-in objects under their names."""

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        return [self.visit(statement) for statement in as_branches(node)]

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        found: Any = node.value
        named = ast.Name(found.object.__name__, ast.Load()) if isinstance(found, Host) else node
        return ast.copy_location(named, node)


def test_branches_mean_the_same() -> None:
    made = ast.fix_missing_locations(_Branches().visit(ast.parse(SOURCE)))
    assert not any(isinstance(node, ast.Match) for node in ast.walk(made))
    assert _answers(made) == _answers(ast.parse(SOURCE))


PROGRAM = """
    import numpy as np
    from dataclasses import dataclass

    @dataclass
    class Scale:
        by: float

    class Shift:
        __match_args__ = ("add",)
        def __init__(self, add):
            self.add = add

    STEPS = [Scale(3.0), Shift(1.0), ("clip", 0.0, 4.0), {"op": "power", "to": 2}, None]

    def f(x):
        for step in STEPS:
            match step:
                case Scale(by):
                    x = x * by
                case Shift(add) if add > 0:
                    x = x + add
                case ("clip", low, high):
                    x = np.clip(x, low, high)
                case {"op": "power", "to": 2 | 3 as exponent}:
                    x = x ** exponent
                case None:
                    pass
        match x.shape:
            case (1,):
                return x[0]
            case (n,):
                return x.sum() / n
"""


def _function(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    (folder / "matching_program.py").write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "matching_program", raising=False)
    return importlib.import_module("matching_program").f


def test_objects_and_sizes_are_matched_in_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = _function(tmp_path, PROGRAM, monkeypatch)
    session = hagane.InferenceSession(hagane.capture(function, x="float32[n]"))
    for n in (1, 3, 5):
        x = np.linspace(-1, 2, n, dtype=np.float32)
        (found,) = session.run(None, {"x": x})
        np.testing.assert_allclose(found, function(x), rtol=1e-6)


def test_numbers_of_tensors_are_matched_in_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = _function(
        tmp_path,
        """
        def f(x, kind):
            match int(kind):
                case 0:
                    return x + 1
                case 1 | 2 as which:
                    return x * which
                case other if other < 0:
                    return -x
                case _:
                    return x
        """,
        monkeypatch,
    )
    graph = hagane.capture(function, x="float32[n]", kind="int64[]")
    session = hagane.InferenceSession(graph)
    x = np.float32([1, -2, 3])
    for kind in (0, 1, 2, -4, 9):
        (found,) = session.run(None, {"x": x, "kind": np.int64(kind)})
        np.testing.assert_array_equal(found, function(x, kind))


def test_a_wrong_shape_behind_a_match_is_found(tmp_path: Path) -> None:
    source = """
        def f(x: Shaped["float32[b, 4, 5]"], flag: bool):
            match flag, x.shape:
                case True, (_, _, 5):
                    y = x.mean(1)
                case False, _:
                    y = x[..., -1]
                case _:
                    raise ValueError(x.shape)
            return y @ torch.ones(4, 2)
        """
    (error,) = check_text(tmp_path, source).errors
    assert error.place.line == line_of(source, "return y")


def test_names_of_a_statement_that_is_not_understood_are_unknown(tmp_path: Path) -> None:
    source = """
        def f(x: Shaped["float32[b, 4]"]):
            y = x
            try:
                y = x[:, :3]
            except* ValueError:
                pass
            return y @ torch.ones(3, 2)
        """
    report = check_text(tmp_path, source)
    assert not report.errors
    assert any("'TryStar' statements" in each.message for each in report.unknown)
