"""``typed``: a probabilistic type for a Python function, decided when it is defined."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from hagane.errors import HaganeError
from hagane.tools.prob.capture import Typed, kind_of, translate
from hagane.tools.prob.capture.python_function import PythonFunction, Unsupported, read_function
from hagane.tools.prob.claims.checker import check
from hagane.tools.prob.claims.verdict import Report, show_circumstances
from hagane.tools.prob.engines.run import show_fraction
from hagane.tools.prob.language.parser import parse_type
from hagane.tools.prob.language.resolve import resolve
from hagane.tools.prob.language.source import Source, Span
from hagane.tools.prob.language.syntax import (
    BaseType,
    Expression,
    LetFun,
    Parameter,
    Parsed,
    Tuple,
    Type,
)

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
        self.known = _known(self)
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
        Unsupported: The function uses a construct beyond the supported subset.
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
    texts = [made.found.source.text]
    started: dict[str, TypedFunction[Any, Any]] = {}
    functions: dict[str, TypedFunction[Any, Any]] = {}
    parameters: dict[str, tuple[Parameter, ...]] = {}
    bodies: dict[str, Expression] = {}

    def add(name: str, function: TypedFunction[Any, Any]) -> None:
        found = function.found
        if started.setdefault(name, function) is not function:
            raise Unsupported(
                f"two typed functions are called '{name}'; give one another name",
                found.source,
                found.span(found.tree),
            )
        if found.source.name != made.found.source.name:
            raise Unsupported(
                f"'{name}' is typed in another file, {found.source.name}",
                made.found.source,
                made.found.span(made.found.tree),
            )
        parameters[name] = _parameters_of(function, texts)
        known = {**_TYPED, found.function: function}
        translated = translate(
            found, parameters[name], {original: one.known for original, one in known.items()}
        )
        bodies[name] = translated.body
        for called, original in translated.called.items():
            if known[original] is not started.get(called):
                add(called, known[original])
        functions[name] = function

    add(made.found.function.__name__, made)
    file = made.found.source
    program: Expression = Tuple(Span(0, 0), ())
    for name, function in reversed(list(functions.items())):
        program = _definition(function, parameters[name], bodies[name], texts, program)
    source = Source("\n".join(texts), file.name)
    return check(resolve(source, Parsed(program)))


def _known(function: TypedFunction[Any, Any]) -> Typed:
    original = function.found.function
    return Typed(original, original.__name__, kind_of(_result_of(function, [])))


def _definition(
    function: TypedFunction[Any, Any],
    parameters: tuple[Parameter, ...],
    body: Expression,
    texts: list[str],
    rest: Expression,
) -> LetFun:
    found = function.found
    start = found.offset(found.tree.lineno, found.tree.col_offset)
    span = Span(start, start + len("def ") + len(found.tree.name))
    result = _result_of(function, texts)
    return LetFun(span, found.tree.name, parameters, result, None, None, body, rest)


def _parameters_of(function: TypedFunction[Any, Any], texts: list[str]) -> tuple[Parameter, ...]:
    found = function.found
    parameters = []
    for argument in found.tree.args.args:
        here = found.offset(argument.lineno, argument.col_offset)
        place = Span(here, here + len(argument.arg))
        annotation = found.function.__annotations__.get(argument.arg)
        parameters.append(Parameter(place, argument.arg, _type_of(annotation, found, place, texts)))
    return tuple(parameters)


def _result_of(function: TypedFunction[Any, Any], texts: list[str]) -> Type:
    found = function.found
    return _placed(function.claimed, found, found.offset(found.tree.lineno, 0), texts)


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
