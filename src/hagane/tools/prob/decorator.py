"""``typed``: a probabilistic type for a Python function, decided when it is defined."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from hagane.errors import HaganeError, InvalidArgument
from hagane.tools.prob.capture import Typed, any_value, kind_of, translate
from hagane.tools.prob.capture.python_function import (
    PythonFunction,
    Texts,
    Unsupported,
    read_function,
)
from hagane.tools.prob.claims.checker import check
from hagane.tools.prob.claims.continuous import judged_by_integrals
from hagane.tools.prob.claims.formulas import judged
from hagane.tools.prob.claims.verdict import Report, show_circumstances
from hagane.tools.prob.draws import ContinuousDraw
from hagane.tools.prob.draws import Parameter as ParameterOfProbability
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, main_unit
from hagane.tools.prob.engines.run import show_fraction
from hagane.tools.prob.language.parser import parse_type
from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.ratios import ParameterDecides
from hagane.tools.prob.language.resolve import resolve
from hagane.tools.prob.language.source import ProgramError, Source, Span, TooLarge
from hagane.tools.prob.language.syntax import (
    Annotated,
    BaseType,
    Expression,
    LetFun,
    Parameter,
    Parsed,
    Tuple,
    Type,
    Unknown,
)
from hagane.tools.prob.replay import (
    Unrepeatable,
    integrated,
    marked,
    replayed,
    replayed_with_parameters,
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
                measured = measured or ", ".join(f"{e.term} = {e.text}" for e in verdict.formulas)
                where = show_circumstances(verdict.circumstances)
                at = f" at {where}" if where else ""
                lines.append(
                    f"  {report.program.source.name}:{verdict.line}: {verdict.type}: {measured}{at}"
                )
                if verdict.formulas and verdict.note:
                    lines.append(f"    {verdict.note}")
                if verdict.culprit is not None:
                    lines.append(f"    contributing most: {verdict.culprit.text}")
        super().__init__("\n".join(lines))


class TypedFunction(Generic[_Parameters, _Result]):
    """A function with a checked probabilistic type; calling it runs the function itself.

    Attributes:
        report: The verdicts on its type.
    """

    def __init__(
        self,
        function: Callable[_Parameters, _Result],
        found: PythonFunction,
        claimed: str,
        engine: str = "auto",
    ):
        functools.update_wrapper(self, function)
        self.found = found
        self.claimed = claimed
        self.known = _known(self)
        with_parameters = _takes_parameters(found)
        self.report = _check_with_parameters(self) if with_parameters else _ENGINES[engine](self)

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """Run the function."""
        return self.found.function(*args, **kwargs)  # type: ignore[no-any-return]


# Typed functions by the Python function inside, for the calls among them.
_TYPED: dict[Any, TypedFunction[Any, Any]] = {}


def typed(
    claimed: str, *, raises: bool = True, engine: str = "auto"
) -> Callable[[Callable[_Parameters, _Result]], TypedFunction[_Parameters, _Result]]:
    """Give a Python function a probabilistic type, and decide it.

    Parameters are annotated with ``int``, ``bool`` or, as text, with a type of their own:
    ``def f(n: "{n:int | 0 <= n <= 9}")``. Functions that it calls and that are typed themselves
    are known by their type, others by their source. Where all are annotated with
    ``prob.Parameter``, the claim is decided for all of their values.

    Args:
        claimed: The type of the result, as in ``{x:bool | Prob(x) <= 1/10}``.
        raises: Whether a type that does not hold is an error; else see ``report``.
        engine: ``capture``: the function becomes a formula of its draws. ``replay``: it is run for
            each sequence of draws. ``integrate``: it may draw real numbers, and is run for each
            outcome of their comparisons. ``auto``: the latter where the former is not possible.

    Raises:
        InvalidArgument: There is no such engine.
        BrokenClaim: The type does not hold.
        Unsupported: The function uses a construct beyond the supported subset.
        ProgramError: The type does not parse, or some possible run goes wrong.
    """
    if engine not in _ENGINES:
        known = ", ".join(_ENGINES)
        raise InvalidArgument(f"typed: expected an engine among {known}; got '{engine}'")

    def decorate(
        function: Callable[_Parameters, _Result],
    ) -> TypedFunction[_Parameters, _Result]:
        made = TypedFunction(function, read_function(function), claimed, engine)
        if raises and not made.report.holds:
            raise BrokenClaim(function.__name__, made.report)
        _TYPED[function] = made
        return made

    return decorate


def _checked(made: TypedFunction[Any, Any]) -> Report:
    """Check a function: captured where it can be, else by its runs."""
    if _has_reals(made.known.kind):
        return _check_by_integrals(made)
    try:
        return _check(made)
    except (Unsupported, TooLarge) as error:
        try:
            return _check_by_runs(made)
        except ContinuousDraw:
            return _check_by_integrals(made)
        except Unrepeatable as other:
            raise Unsupported(
                f"{error.message}; nor can its runs be followed: {other}", error.source, error.span
            ) from None


def _check(made: TypedFunction[Any, Any]) -> Report:
    """Check a function; typed functions that it calls become definitions before it."""
    texts = Texts(made.found.source)
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
    program: Expression = Tuple(Span(0, 0), ())
    for name, function in reversed(list(functions.items())):
        program = _definition(function, parameters[name], bodies[name], texts, program)
    source = texts.source()
    return check(resolve(source, Parsed(program)))


def _check_with_parameters(made: TypedFunction[Any, Any]) -> Report:
    """Check a function whose arguments are parameters: for all of their values."""
    found, texts = made.found, Texts(made.found.source)
    span, kind = found.span(found.tree), made.known.kind
    value = any_value(kind, span)
    claimed = Annotated(span, value, _result_of(made, texts))
    source = texts.source()
    unknowns = tuple(Unknown(span, name) for name in found.names)
    program = resolve(source, Parsed(claimed, (), unknowns))
    assert program.parameters is not None
    arguments = [program.parameters.ratio(name) for name in found.names]
    unit = main_unit(program)
    way = marked(found.function, found.tree)
    try:
        runs = replayed_with_parameters(way, arguments, kind, unit, source)
    except (ParameterDecides, Unrepeatable) as error:
        raise Unsupported(str(error), source, span) from None
    states = runs.ledger.size
    reason = f"its runs were followed, {states:,} state{'' if states == 1 else 's'}"
    return judged(program, unit, runs, "replay", reason)


def _check_by_runs(made: TypedFunction[Any, Any]) -> Report:
    """Check a function that cannot be captured by running it for each sequence of its draws."""
    found, texts = made.found, Texts(made.found.source)
    name, kind = found.function.__name__, made.known.kind
    parameters = _parameters_of(made, texts)
    nothing = Tuple(Span(0, 0), ())
    program = _definition(made, parameters, any_value(kind, found.span(found.tree)), texts, nothing)
    source = texts.source()
    engine = replayed(marked(found.function, found.tree), kind, source, program.span)
    return check(resolve(source, Parsed(program)), own={name: engine})


def _has_reals(kind: Kind) -> bool:
    return any(map(_has_reals, kind)) if isinstance(kind, tuple) else kind == "real"


def _check_by_integrals(made: TypedFunction[Any, Any]) -> Report:
    """Check a function with continuous draws: one run for each outcome of its comparisons."""
    found, texts = made.found, Texts(made.found.source)
    span, kind = found.span(found.tree), made.known.kind
    if found.names:
        raise Unsupported(
            "a function with continuous draws has no arguments here; fix their values inside, as "
            "in a function that makes the typed one",
            found.source,
            span,
        )
    claimed = Annotated(span, any_value(kind, span), _result_of(made, texts))
    source = texts.source()
    program = resolve(source, Parsed(claimed))
    unit = main_unit(program)
    run = integrated(marked(found.function, found.tree), kind, unit, source, span)
    return judged_by_integrals(program, unit, run, DEFAULT_LIMITS)


_ENGINES: Mapping[str, Callable[[TypedFunction[Any, Any]], Report]] = {
    "auto": _checked,
    "capture": _check,
    "replay": _check_by_runs,
    "integrate": _check_by_integrals,
}


def _known(function: TypedFunction[Any, Any]) -> Typed:
    original = function.found.function
    return Typed(
        original, original.__name__, kind_of(_result_of(function, Texts(function.found.source)))
    )


def _definition(
    function: TypedFunction[Any, Any],
    parameters: tuple[Parameter, ...],
    body: Expression,
    texts: Texts,
    rest: Expression,
) -> LetFun:
    found = function.found
    start = found.offset(found.tree.lineno, found.tree.col_offset)
    span = Span(start, start + len("def ") + len(found.tree.name))
    result = _result_of(function, texts)
    return LetFun(span, found.tree.name, parameters, result, None, None, body, rest)


def _takes_parameters(found: PythonFunction) -> bool:
    """Tell whether the arguments of a function are parameters of probabilities.

    Raises:
        Unsupported: Some are and some are not.
    """
    annotations = found.function.__annotations__
    are = [_is_parameter(annotations.get(name)) for name in found.names]
    if any(are) and not all(are):
        other = found.names[are.index(False)]
        raise Unsupported(
            f"some arguments are prob.Parameter, and '{other}' is none; fix its value inside, as "
            "in a function that makes the typed one",
            found.source,
            found.span(found.tree),
        )
    return any(are)


def _is_parameter(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "Parameter"
    return annotation is ParameterOfProbability


def _parameters_of(function: TypedFunction[Any, Any], texts: Texts) -> tuple[Parameter, ...]:
    found = function.found
    parameters = []
    for argument in found.tree.args.args:
        here = found.offset(argument.lineno, argument.col_offset)
        place = Span(here, here + len(argument.arg))
        annotation = found.function.__annotations__.get(argument.arg)
        parameters.append(Parameter(place, argument.arg, _type_of(annotation, found, place, texts)))
    return tuple(parameters)


def _result_of(function: TypedFunction[Any, Any], texts: Texts) -> Type:
    found = function.found
    return _placed(function.claimed, found, found.offset(found.tree.lineno, 0), texts)


def _type_of(annotation: Any, found: PythonFunction, place: Span, texts: Texts) -> Type:
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


def _placed(text: str, found: PythonFunction, near: int, texts: Texts) -> Type:
    """Parse a type where it stands above the function's body, or else after the end of the file."""
    decorators = found.tree.decorator_list
    first = min([found.tree.lineno, *(d.lineno for d in decorators)])
    body = found.tree.body[0]
    ends = found.offset(body.lineno, body.col_offset)
    offset = found.source.text.find(text, found.offset(first, 0), ends)
    if offset < 0:
        offset = texts.add(text, near)
    try:
        return parse_type(Source(" " * offset + text, found.source.name))
    except ProgramError as error:
        raise type(error)(error.message, texts.source(), error.span) from None
