"""``match`` statements as assignments and branches."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Host

_SUBJECT = "the subject of match"  # no name that a program can have
_ITSELF = frozenset(("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list",
                     "set", "str", "tuple"))  # fmt: skip


def as_branches(node: ast.Match) -> list[ast.stmt]:
    """Return statements with the meaning of a ``match``; names are bound before guards, as there.

    Raises:
        CheckError: A pattern that is not followed: the rest of a mapping, or names in alternatives.
    """
    subject = ast.Name(_SUBJECT, ast.Load())
    branches: list[ast.stmt] = []
    for case in reversed(node.cases):
        tests = _tests(case.pattern, subject)
        if case.guard is not None:
            tests = [*tests, case.guard]
        test = _all(tests)
        branches = [ast.copy_location(ast.If(test, case.body, branches), case.pattern)]
    made: list[ast.stmt] = [
        ast.Assign([ast.Name(_SUBJECT, ast.Store())], node.subject),
        *branches,
        ast.Delete([ast.Name(_SUBJECT, ast.Del())]),
    ]
    for statement in made:
        if not hasattr(statement, "lineno"):
            ast.copy_location(statement, node)
        ast.fix_missing_locations(statement)
    return made


def _tests(pattern: ast.pattern, value: ast.expr) -> list[ast.expr]:
    """Return the conditions of a pattern in their order; those that bind names are true."""
    match pattern:
        case ast.MatchValue(value=wanted):
            return [ast.Compare(value, [ast.Eq()], [wanted])]
        case ast.MatchSingleton(value=constant):
            return [ast.Compare(value, [ast.Is()], [ast.Constant(constant)])]
        case ast.MatchAs(pattern=inner, name=name):
            tests = [] if inner is None else _tests(inner, value)
            return tests if name is None else [*tests, _bound(name, value)]
        case ast.MatchOr(patterns=patterns):
            if any(_names(one) for one in patterns):
                raise CheckError("match", "names in alternatives of a pattern are not followed")
            return [ast.BoolOp(ast.Or(), [_all(_tests(one, value)) for one in patterns])]
        case ast.MatchSequence(patterns=patterns):
            return _sequence(patterns, value)
        case ast.MatchMapping(keys=keys, patterns=patterns, rest=None):
            tests = [_called(isinstance, value, _real(dict))]
            for key, inner in zip(keys, patterns, strict=True):
                tests.append(ast.Compare(key, [ast.In()], [value]))
                tests += _tests(inner, ast.Subscript(value, key, ast.Load()))
            return tests
        case ast.MatchClass(cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=others):
            tests = [_called(isinstance, value, cls)]
            itself = isinstance(cls, ast.Name) and cls.id in _ITSELF and len(patterns) == 1
            for place, inner in enumerate(patterns):
                order = ast.Attribute(cls, "__match_args__", ast.Load())
                one = ast.Subscript(order, ast.Constant(place), ast.Load())
                tests += _tests(inner, value if itself else _called(getattr, value, one))
            for attribute, inner in zip(names, others, strict=True):
                tests += _tests(inner, ast.Attribute(value, attribute, ast.Load()))
            return tests
        case _:
            raise CheckError("match", f"the pattern '{ast.unparse(pattern)}' is not followed")


def _sequence(patterns: Sequence[ast.pattern], value: ast.expr) -> list[ast.expr]:
    stars = [place for place, one in enumerate(patterns) if isinstance(one, ast.MatchStar)]
    length = _called(len, value)
    kinds = ast.Tuple([_real(list), _real(tuple)], ast.Load())
    least = ast.Constant(len(patterns) - len(stars))
    tests: list[ast.expr] = [
        _called(isinstance, value, kinds),
        ast.Compare(length, [ast.GtE() if stars else ast.Eq()], [least]),
    ]
    for place, inner in enumerate(patterns):
        behind = place - len(patterns) + 1  # of the last items, 0 is the very last
        if isinstance(inner, ast.MatchStar):
            if inner.name is not None:
                end = ast.BinOp(length, ast.Add(), ast.Constant(behind))
                part = ast.Subscript(value, ast.Slice(ast.Constant(place), end), ast.Load())
                tests.append(_bound(inner.name, _called(list, part)))
            continue
        after = bool(stars) and place > stars[0]
        index = ast.Constant(behind - 1 if after else place)
        tests += _tests(inner, ast.Subscript(value, index, ast.Load()))
    return tests


def _names(pattern: ast.pattern) -> list[str]:
    found = [getattr(one, "name", None) for one in ast.walk(pattern)]
    return [name for name in found if isinstance(name, str)]


def _all(tests: Sequence[ast.expr]) -> ast.expr:
    if not tests:
        return ast.Constant(True)
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests))


def _bound(name: str, value: ast.expr) -> ast.expr:
    """Return an expression that binds a name, and is true."""
    bind = ast.NamedExpr(ast.Name(name, ast.Store()), value)
    both = ast.Tuple([bind, ast.Constant(True)], ast.Load())
    return ast.Subscript(both, ast.Constant(1), ast.Load())


def _real(found: object) -> ast.expr:
    """Return a built-in name that the program cannot hide."""
    constant = ast.Constant(None)
    constant.value = Host(found)  # type: ignore[assignment]
    return constant


def _called(function: object, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_real(function), list(arguments), [])


__all__ = ["as_branches"]
