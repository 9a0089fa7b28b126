"""``match`` statements as chains of ``if``, which have the same meaning.

The subject is bound to a name that no program can write. A pattern becomes a condition on it, and
names that it captures become assignments: at the start of the case, or in the condition before a
guard. Source: PEP 634.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from functools import reduce

from hagane.frontends.python.values.values import Host

# Classes whose only positional pattern matches the whole subject.
_WHOLE = frozenset((bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple))
Bindings = list[tuple[str, ast.expr]]


def as_branches(node: ast.Match) -> list[ast.stmt]:
    """Return the statements that mean the same as a ``match``."""
    name = f"<{ast.unparse(node.subject)}>"
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        test, bindings = _pattern(case.pattern, ast.Name(name, ast.Load()))
        body = case.body
        if case.guard is None:
            body = [*(_assigned(*each) for each in bindings), *body]
        else:
            named = [ast.NamedExpr(ast.Name(n, ast.Store()), value) for n, value in bindings]
            # A list with items is true.
            taken = [ast.List([each], ast.Load()) for each in named]
            test = _all([test, *taken, case.guard])
        chain = [_placed(ast.If(test, body, chain), case.pattern)]
    bound = ast.Assign([ast.Name(name, ast.Store())], node.subject)
    return [_placed(bound, node.subject), *chain]


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), value)


def _placed(made: ast.stmt, at: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(made, at))


def _all(tests: Sequence[ast.expr]) -> ast.expr:
    """Return whether all tests are true; constants that are do not count."""
    open_ = [t for t in tests if not (isinstance(t, ast.Constant) and t.value is True)]
    if not open_:
        return ast.Constant(True)
    return open_[0] if len(open_) == 1 else ast.BoolOp(ast.And(), open_)


def _pattern(pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr, Bindings]:
    """Return the condition under which a subject matches, and the names that are bound then."""
    test, bindings = _matched(pattern, subject)
    for made in (test, *(value for _, value in bindings)):
        ast.fix_missing_locations(ast.copy_location(made, pattern))
    return test, bindings


def _matched(pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr, Bindings]:
    match pattern:
        case ast.MatchValue(value):
            return ast.Compare(subject, [ast.Eq()], [value]), []
        case ast.MatchSingleton(value):
            return ast.Compare(subject, [ast.Is()], [ast.Constant(value)]), []
        case ast.MatchAs(inner, name):
            test, bindings = (ast.Constant(True), []) if inner is None else _pattern(inner, subject)
            return test, bindings if name is None else [*bindings, (name, subject)]
        case ast.MatchOr(patterns):
            return _either([_pattern(each, subject) for each in patterns])
        case ast.MatchSequence(patterns):
            return _sequence(patterns, subject)
        case ast.MatchMapping():
            return _mapping(pattern, subject)
        case ast.MatchClass():
            return _instance(pattern, subject)
    raise NotImplementedError(type(pattern).__name__)


def _either(found: Sequence[tuple[ast.expr, Bindings]]) -> tuple[ast.expr, Bindings]:
    """Return alternatives, which all bind the same names; the first that matches binds them."""
    tests = [test for test, _ in found]
    values = [dict(bindings) for _, bindings in found]
    bindings = [
        (
            name,
            reduce(
                lambda rest, each: ast.IfExp(each[0], each[1][name], rest),
                reversed(list(zip(tests[:-1], values[:-1], strict=True))),
                values[-1][name],
            ),
        )
        for name in values[0]
    ]
    return ast.BoolOp(ast.Or(), tests), bindings


def _real(found: object) -> ast.expr:
    """Return a built-in object that the program cannot hide."""
    constant = ast.Constant(None)
    constant.value = Host(found)  # type: ignore[assignment]
    return constant


def _called(function: object, *arguments: ast.expr) -> ast.expr:
    return ast.Call(_real(function), list(arguments), [])


def _isinstance(subject: ast.expr, *kinds: type) -> ast.expr:
    return _called(isinstance, subject, ast.Tuple([_real(kind) for kind in kinds], ast.Load()))


def _item(subject: ast.expr, index: ast.expr) -> ast.expr:
    return ast.Subscript(subject, index, ast.Load())


def _joined(
    tests: list[ast.expr], parts: Iterator[tuple[ast.pattern, ast.expr]]
) -> tuple[ast.expr, Bindings]:
    """Return tests of a whole, then those of its parts."""
    bindings: Bindings = []
    for part, value in parts:
        test, bound = _pattern(part, value)
        tests.append(test)
        bindings += bound
    return _all(tests), bindings


def _sequence(patterns: Sequence[ast.pattern], subject: ast.expr) -> tuple[ast.expr, Bindings]:
    star = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
    count = len(patterns) - (star is not None)
    compare = ast.Eq() if star is None else ast.GtE()
    size = ast.Compare(_called(len, subject), [compare], [ast.Constant(count)])

    def parts() -> Iterator[tuple[ast.pattern, ast.expr]]:
        for place, part in enumerate(patterns):
            if isinstance(part, ast.MatchStar):
                behind = len(patterns) - place - 1
                end = ast.Constant(-behind) if behind else None
                rest = _item(subject, ast.Slice(ast.Constant(place), end))
                yield ast.MatchAs(None, part.name), _called(list, rest)
            else:
                late = star is not None and place > star
                yield part, _item(subject, ast.Constant(place - len(patterns) if late else place))

    return _joined([_isinstance(subject, list, tuple), size], parts())


def _mapping(pattern: ast.MatchMapping, subject: ast.expr) -> tuple[ast.expr, Bindings]:
    held: list[ast.expr] = [ast.Compare(key, [ast.In()], [subject]) for key in pattern.keys]
    parts = zip(pattern.patterns, (_item(subject, key) for key in pattern.keys), strict=True)
    test, bindings = _joined([_isinstance(subject, dict), *held], parts)
    if pattern.rest is not None:
        key, value = "match key", "match value"
        keys = ast.Tuple(list(pattern.keys), ast.Load())
        loop = ast.comprehension(
            ast.Tuple([ast.Name(key, ast.Store()), ast.Name(value, ast.Store())], ast.Store()),
            ast.Call(ast.Attribute(subject, "items", ast.Load()), [], []),
            [ast.Compare(ast.Name(key, ast.Load()), [ast.NotIn()], [keys])],
            0,
        )
        rest = ast.DictComp(ast.Name(key, ast.Load()), ast.Name(value, ast.Load()), [loop])
        bindings.append((pattern.rest, rest))
    return test, bindings


def _instance(pattern: ast.MatchClass, subject: ast.expr) -> tuple[ast.expr, Bindings]:
    named = pattern.cls.id if isinstance(pattern.cls, ast.Name) else ""
    is_whole = getattr(builtins, named, None) in _WHOLE

    def parts() -> Iterator[tuple[ast.pattern, ast.expr]]:
        for place, part in enumerate(pattern.patterns):
            if is_whole:
                yield part, subject
            else:
                names = ast.Attribute(pattern.cls, "__match_args__", ast.Load())
                yield part, _called(getattr, subject, _item(names, ast.Constant(place)))
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            yield part, ast.Attribute(subject, name, ast.Load())

    held = [_called(hasattr, subject, ast.Constant(name)) for name in pattern.kwd_attrs]
    return _joined([_called(isinstance, subject, pattern.cls), *held], parts())
