"""``typed``: a probabilistic type for a Python function, decided when it is defined."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from hagane.errors import HaganeError
from hagane.tools.prob.checker import check
from hagane.tools.prob.parser import parse_type
from hagane.tools.prob.python_function import PythonFunction, Unsupported, read_function
from hagane.tools.prob.python_source import translate
from hagane.tools.prob.resolve import resolve
from hagane.tools.prob.run import show_fraction
from hagane.tools.prob.source import Source, Span
from hagane.tools.prob.syntax import (
    BaseType,
    Expression,
    LetFun,
    Parameter,
    Parsed,
    Tuple,
    Type,
)
from hagane.tools.prob.verdict import Report, show_circumstances

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class BrokenClaim(HaganeError, TypeError):
    """A Python function whose probabilistic type does not hold; ``report`` has the verdicts."""

    def __init__(self, name: str, report: Report):
        self.report = report
        lines = [f"'{name}' does not have its type:"]
        for verdict in report.verdicts:
            if not verdict.holds:
                measured = ", ".join(
                    f"{item.text} = {show_fraction(item.value)}" for item in verdict.probabilities
                )
                where = show_circumstances(verdict.circumstances)
                at = f" at {where}" if where else ""
                lines.append(
                    f"  {report.program.source.name}:{verdict.line}: {verdict.type}: {measured}{at}"
                )
                if verdict.culprit is not None:
                    lines.append(f"    contributing most: {verdict.culprit.text}")
        super().__init__("\n".join(lines))


class TypedFunction(Generic[_Parameters, _Result]):
    """A function with a checked probabilistic type; calling it runs the function itself.

    Attributes:
        report: The verdicts on its type.
    """

    def __init__(
        self, function: Callable[_Parameters, _Result], found: PythonFunction, claimed: str
    ):
        functools.update_wrapper(self, function)
        self.found = found
        self.claimed = claimed
        self.report = _check(self)

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """Run the function."""
        return self.found.function(*args, **kwargs)  # type: ignore[no-any-return]


# Typed functions by the Python function inside, for the calls among them.
_TYPED: dict[Any, TypedFunction[Any, Any]] = {}


def typed(
    claimed: str, *, raises: bool = True
) -> Callable[[Callable[_Parameters, _Result]], TypedFunction[_Parameters, _Result]]:
    """Give a Python function a probabilistic type, and decide it.

    Parameters are annotated with ``int``, ``bool`` or, as text, with a type of their own:
    ``def f(n: "{n:int | 0 <= n <= 9}")``. Functions that it calls and that are typed themselves
    are known by their type, others by their source.

    Args:
        claimed: The type of the result, as in ``{x:bool | Prob(x) <= 1/10}``.
        raises: Whether a type that does not hold is an error; else see ``report``.

    Raises:
        BrokenClaim: The type does not hold.
        Unsupported: The function uses what the supported subset lacks.
        ProgramError: The type does not parse, or some possible run goes wrong.
    """

    def decorate(
        function: Callable[_Parameters, _Result],
    ) -> TypedFunction[_Parameters, _Result]:
        made = TypedFunction(function, read_function(function), claimed)
        if raises and not made.report.holds:
            raise BrokenClaim(function.__name__, made.report)
        _TYPED[function] = made
        return made

    return decorate


def _check(made: TypedFunction[Any, Any]) -> Report:
    """Check a function; typed functions that it calls become definitions before it."""
    functions: dict[str, TypedFunction[Any, Any]] = {}
    bodies: dict[str, Expression] = {}

    def add(function: TypedFunction[Any, Any]) -> None:
        name = function.found.function.__name__
        known = {original: one.found.function.__name__ for original, one in _TYPED.items()}
        known[function.found.function] = name
        translated = translate(function.found, known)
        for called, original in translated.called.items():
            if called != name and called not in functions:
                other = _TYPED[original]
                if other.found.source.name != function.found.source.name:
                    raise Unsupported(
                        f"'{called}' is typed in another file, {other.found.source.name}",
                        function.found.source,
                        Span(0, 0),
                    )
                add(other)
        functions[name] = function
        bodies[name] = translated.body

    add(made)
    file = made.found.source
    texts = [file.text]
    program: Expression = Tuple(Span(0, 0), ())
    for name, function in reversed(list(functions.items())):
        program = _definition(function, bodies[name], texts, program)
    source = Source("\n".join(texts), file.name)
    return check(resolve(source, Parsed(program)))


def _definition(
    function: TypedFunction[Any, Any], body: Expression, texts: list[str], rest: Expression
) -> LetFun:
    found = function.found
    start = found.offset(found.tree.lineno, found.tree.col_offset)
    span = Span(start, start + len("def ") + len(found.tree.name))
    parameters = []
    for argument in found.tree.args.args:
        here = found.offset(argument.lineno, argument.col_offset)
        place = Span(here, here + len(argument.arg))
        annotation = found.function.__annotations__.get(argument.arg)
        parameters.append(Parameter(place, argument.arg, _type_of(annotation, found, place, texts)))
    result = _placed(function.claimed, found, start, texts)
    return LetFun(span, found.tree.name, tuple(parameters), result, None, None, body, rest)


def _type_of(annotation: Any, found: PythonFunction, place: Span, texts: list[str]) -> Type:
    if annotation in (int, bool):
        return BaseType(place, annotation.__name__)
    if isinstance(annotation, str):
        # `from __future__ import annotations` keeps the quotes of a text.
        return _placed(annotation.strip("\"'"), found, place.start, texts)
    raise Unsupported(
        "a parameter needs a type: int, bool, or a text such as '{n:int | 0 <= n <= 9}'",
        found.source,
        place,
    )


def _placed(text: str, found: PythonFunction, near: int, texts: list[str]) -> Type:
    """Parse a type where it stands in the file, or else after the end of it."""
    decorators = found.tree.decorator_list
    first = min([found.tree.lineno, *(d.lineno for d in decorators)])
    offset = found.source.text.find(text, found.offset(first, 0))
    if offset < 0:
        offset = sum(len(part) + 1 for part in texts)
        texts.append(text)
    return parse_type(Source(" " * offset + text, found.source.name))
