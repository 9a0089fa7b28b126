"""Checks: a function or a model's method, interpreted over the types of its inputs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.examples import example_value
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.enter.results import shown, tensors_of
from hagane.frontends.python.interpret.annotations import read_annotation
from hagane.frontends.python.interpret.running import Budget, OutOfTime
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.modules import SourceError
from hagane.frontends.python.report.findings import CheckError, Note, Problem, Report
from hagane.frontends.python.shapes.domain import Shapes
from hagane.frontends.python.values.type_text import (
    Axis,
    TensorText,
    TypeText,
    parse_type,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Class,
    Function,
    Host,
    Instance,
    ModuleRef,
    Place,
    Tensor,
    Unknown,
    Value,
    Wrapped,
)
from hagane.symbolic import symbol
from hagane.symbolic.questions import Knowledge

SCRIPT = "__main__"  # the target that is the whole file, as ``python FILE`` runs it
SECONDS = 60.0  # of computing that a check may take
_MAX_DEPTH = 12_000  # of Python's own stack: interpreted calls nest a dozen of its frames


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a check.

    Attributes:
        file: The source file.
        target: ``Class``, ``Class.method`` or a function's name; empty for all that is annotated;
            ``__main__`` for the file as a script.
        inputs: The types of arguments by name, as text.
        make: An expression over the file's names that makes the object.
        sizes: Numbers for named sizes; they become those of the example.
        seconds: How long the check may compute.
    """

    file: Path
    target: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    make: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    seconds: float = SECONDS


def check_source(request: Request, tables: Tables) -> Report:
    """Check a file from its source alone; nothing of it is run."""
    return interpret(request, Knowledge(sample=dict(request.sizes)), tables).collector.report


def interpret(request: Request, knowledge: Knowledge, tables: Tables) -> Interpreter:
    """Check a file from its source alone, and return the interpreter with all it found."""
    interpreter = Interpreter(request.file.parent, tables, partial(Shapes, knowledge))
    interpreter.budget = Budget(request.seconds)
    report = interpreter.collector.report
    with DeepRecursion():
        try:
            if request.target == SCRIPT:
                interpreter.run_script(request.file)
            else:
                module = interpreter.load_source(request.file, request.file.stem)
                _check_target(interpreter, module, request)
        except SourceError as error:
            report.checked = False
            if error.problem is not None:
                report.errors.append(error.problem)
            else:
                report.notices.append(Note(None, error.message))
        except CheckError as error:
            report.checked = False
            report.notices.append(Note(None, error.message))
        except OutOfTime as error:
            report.checked = False
            report.notices.append(Note(error.place, str(error)))
        except InvalidArgument:
            raise
        except Exception as error:
            _own_failure(interpreter, error)
    _finished(report)
    knowledge.close()
    return interpreter


def check_object(
    found: Any,
    types: Sequence[Any],
    named: Mapping[str, Any],
    tables: Tables,
    sizes: Mapping[str, int] | None = None,
) -> Report:
    """Check a real object: its attributes are known values, its source is interpreted."""
    knowledge = Knowledge(sample=dict(sizes or {}))
    interpreter = Interpreter(Path.cwd(), tables, partial(Shapes, knowledge))
    interpreter.budget = Budget(SECONDS)
    report = interpreter.collector.report
    with DeepRecursion():
        try:
            value = interpreter.lift(found)
            function, bound = function_of(interpreter, value)
            if function is None:
                raise CheckError("target", f"{found!r} has no Python source that can be checked")
            kind = _tensor_kind(interpreter, value, function)
            given = given_values(interpreter, function, bound, types, named, kind)
            call_with(interpreter, value, function, bound, given)
        except CheckError as error:
            report.checked = False
            report.notices.append(Note(None, error.message))
        except OutOfTime as error:
            report.checked = False
            report.notices.append(Note(error.place, str(error)))
        except InvalidArgument:
            raise
        except Exception as error:
            _own_failure(interpreter, error)
    interpreter.knowledge.close()
    return _finished(report)


def _own_failure(interpreter: Interpreter, error: Exception) -> None:
    """Say that the checker itself failed, and where: its findings so far still count."""
    report = interpreter.collector.report
    report.checked = False
    what = "recursion too deep" if isinstance(error, RecursionError) else repr(error)
    message = f"the checker itself failed here ({what}); the report ends there, please report it"
    report.notices.append(Note(interpreter.here(), message))


class DeepRecursion:
    """Raises the limit of Python's stack inside a block."""

    def __enter__(self) -> None:
        self.before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(self.before, _MAX_DEPTH))

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self.before)


def _finished(report: Report) -> Report:
    report.errors.sort(key=lambda p: (p.place.file, p.place.line, p.place.column))
    report.types.sort(
        key=lambda t: (t.place.file, t.place.line, t.place.column, -t.place.end_column)
    )
    return report


def _check_target(interpreter: Interpreter, module: ModuleRef, request: Request) -> None:
    name, _, method = request.target.partition(".")
    if not name:
        _check_all(interpreter, module, request)
        return
    found = interpreter.module_attribute(module, name)
    if found is MISSING:
        names = [n for n, v in interpreter.heap[module].items() if isinstance(v, Class | Function)]
        known = ", ".join(names) or "no classes or functions"
        raise CheckError("target", f"'{request.file}' has no '{name}'; it has: {known}")
    _check_one(interpreter, module, request, found, method)


def _check_one(
    interpreter: Interpreter, module: ModuleRef, request: Request, found: Value, method: str
) -> None:
    value = _made(interpreter, module, request, found)
    if isinstance(value, Unknown):
        interpreter.collector.report.checked = False
        return
    if method:
        value = interpreter.attribute(value, method)
    function, bound = function_of(interpreter, value)
    if function is None:
        raise CheckError("target", f"{interpreter.show(value)} cannot be called")
    given = {name: parse_type(text) for name, text in request.inputs.items()}
    call_with(interpreter, value, function, bound, given)


def _made(interpreter: Interpreter, module: ModuleRef, request: Request, found: Value) -> Value:
    """Return the object to check: made by ``make``, or by the class without arguments."""
    if request.make:
        return _evaluated(interpreter, module, request.make)
    if not isinstance(found, Class):
        return found
    try:
        return _evaluated(interpreter, module, f"{found.name}()")
    except CheckError as error:
        raise CheckError(
            "make", f"{found.name}() cannot be made: {error.message}; say how with --make"
        ) from None


def _evaluated(interpreter: Interpreter, module: ModuleRef, text: str) -> Value:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise CheckError("make", f"'{text}' is no expression: {error.msg}") from None
    interpreter.frame = interpreter.module_frame(module)
    interpreter.collector.nodes[interpreter.frame.key] = node
    try:
        value = interpreter.evaluate(node)
    finally:
        interpreter.frame = None
    if isinstance(value, Unknown) and not interpreter.collector.report.errors:
        raise CheckError("make", f"'{text}' could not be evaluated: {value.reason}")
    return value


def function_of(interpreter: Interpreter, value: Value) -> tuple[Function | None, bool]:
    """Return the function that a call of ``value`` runs, and whether it is bound.

    Of one that others are wrapped around it is the innermost: it says which arguments there are.
    """
    if isinstance(value, Function | Wrapped):
        return _described(interpreter, value), False
    if isinstance(value, Bound):
        return _described(interpreter, value.function), True
    if isinstance(value, Instance):
        for name in interpreter.tables.call_order(interpreter, value):
            own = interpreter.own_attribute(value, name) if name == "forward" else MISSING
            if isinstance(own, Function | Bound):
                return function_of(interpreter, own)
            found = interpreter.method_of(value, name)
            described = (
                _described(interpreter, found.function) if isinstance(found, Bound) else None
            )
            if described is not None:
                return described, True
    return None, False


def _described(interpreter: Interpreter, function: Value) -> Function | None:
    """Return the function whose arguments a wrapper around it takes, as functools.wraps has it."""
    while isinstance(function, Wrapped) and function.kind in ("within", "managed", "cached"):
        function = function.function
    if not isinstance(function, Function):
        return None
    if function.host is None:
        return function
    inner = inspect.unwrap(function.host)
    found = function if inner is function.host else interpreter.lift(inner)
    return found if isinstance(found, Function) else function


def _parameters(function: Function, bound: bool) -> list[ast.arg]:
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    return [*positional[1 if bound else 0 :], *arguments.kwonlyargs]


def call_with(
    interpreter: Interpreter,
    value: Value,
    function: Function,
    bound: bool,
    given: Mapping[str, Any],
    kinds: Mapping[str, str] | None = None,
) -> None:
    """Call the function with values of the given types and record the result.

    ``kinds`` has the classes of arguments that are tensors, where they are known by name.
    """
    parameters = _parameters(function, bound)
    names = {parameter.arg for parameter in parameters}
    unknown = [name for name in given if name not in names]
    if unknown and function.node.args.kwarg is None:
        known = ", ".join(sorted(names)) or "none"
        raise CheckError(
            "input", f"'{function.name}' has no argument '{unknown[0]}'; it has: {known}"
        )
    kind = _tensor_kind(interpreter, value, function)
    keywords: dict[str, Value] = {}
    for parameter in parameters:
        own = (kinds or {}).get(parameter.arg, "")
        made = _argument(interpreter, function, parameter, given, kind, own)
        if made is not MISSING:
            keywords[parameter.arg] = made
    for name in unknown:  # for ``**keywords``
        found = given[name]
        is_type = isinstance(found, TypeText)
        keywords[name] = interpreter.make_value(found, name, kind) if is_type else found
    missing = [
        p.arg for p in parameters if p.arg not in keywords and not _has_default(function, p.arg)
    ]
    if missing:
        raise CheckError(
            "input",
            f"the type of the argument '{missing[0]}' of '{function.name}' is not known; "
            f"say it with --input '{missing[0]}=float32[batch, 3, 224, 224]', or annotate it",
        )
    _call(interpreter, value, function, keywords)


def _call(
    interpreter: Interpreter, value: Value, function: Function, keywords: Mapping[str, Value]
) -> None:
    report = interpreter.collector.report
    frame = interpreter.module_frame(function.scope.module)
    interpreter.collector.nodes[frame.key] = function.node
    interpreter.frame = replace(frame, is_user=True)
    before = interpreter.collector.raised
    try:
        result = interpreter.settle(interpreter.call(value, [], keywords))
    except CheckError as error:
        interpreter.collector.error(error, interpreter.frame, function.node, "")
        return
    finally:
        interpreter.frame = None
        interpreter.dead = False
    report.result = result
    report.returned = shown(interpreter, result)
    report.tensors = tensors_of(interpreter, result)
    if (
        isinstance(result, Unknown)
        and not result.told
        and interpreter.collector.raised == before
        and not report.errors
    ):
        report.unknown.append(Note(None, f"the result of '{function.name}': {result.reason}"))


def _has_default(function: Function, name: str) -> bool:
    arguments = function.node.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    with_default = (
        positional[len(positional) - len(function.defaults) :] if function.defaults else []
    )
    return name in with_default or name in function.keyword_defaults


# Annotations of arguments whose values are open.
_PLAIN = frozenset(("bool", "float", "int", "str"))


def _argument(
    interpreter: Interpreter,
    function: Function,
    parameter: ast.arg,
    given: Mapping[str, Any],
    kind: str,
    known: str,
) -> Value:
    """Return the value of one argument, ``MISSING`` if its default is to be taken.

    A tensor is of the class ``known``, else of that of its annotation, else of ``kind``.
    """
    name = parameter.arg
    try:
        annotated = read_annotation(parameter.annotation)
    except InvalidArgument as error:
        place = interpreter.collector.place(function.scope.file, parameter)
        line = interpreter.collector.source_line(function.scope.file, place.line)
        interpreter.collector.report.errors.append(Problem(place, "annotation", str(error), line))
        annotated = None
    found = given.get(name, MISSING)
    if found is MISSING:
        plain = parameter.annotation.id if isinstance(parameter.annotation, ast.Name) else ""
        if annotated is None and plain in _PLAIN and not _has_default(function, name):
            text = parse_type(plain)
            # Inputs of graphs are named by the caller.
            return MISSING if interpreter.emit.builds else interpreter.make_value(text, name, kind)
        if annotated is None:
            return MISSING
        text, own_kind = annotated
        return _marked(
            interpreter,
            function,
            parameter,
            interpreter.make_value(text, name, known or own_kind or kind),
        )
    if isinstance(found, Tensor):
        found = _text_of(found)
    if not isinstance(found, TypeText):
        return found
    if annotated is not None:
        found, kind = _with_names(annotated[0], found), annotated[1] or kind
    made = interpreter.make_value(found, name, known or kind)
    return _marked(interpreter, function, parameter, made)


def _marked(
    interpreter: Interpreter, function: Function, parameter: ast.arg, value: Value
) -> Value:
    from hagane.frontends.python.values.values import Origin

    if isinstance(value, Tensor):
        place = interpreter.collector.place(function.scope.file, parameter)
        value.origin = Origin(place, f"argument {parameter.arg}")
    return value


def _text_of(tensor: Tensor) -> TypeText:
    return TensorText((tensor.dtype,), tuple(Axis(dim) for dim in tensor.shape or ()))


def _with_names(annotated: TypeText, given: TypeText) -> TypeText:
    """Return the given type with the names of the annotation; given sizes become the example."""
    if not isinstance(annotated, TensorText) or not isinstance(given, TensorText):
        return given
    if len(annotated.axes) != len(given.axes) or any(a.spread for a in annotated.axes):
        return given
    axes = []
    for names, sizes in zip(annotated.axes, given.axes, strict=True):
        example = sizes.example if sizes.example is not None else sizes.size
        if names.size is None or isinstance(names.size, int) or not isinstance(example, int):
            axes.append(sizes if names.size is None or isinstance(names.size, int) else names)
        elif str(names.size).isidentifier():
            axes.append(Axis(symbol(str(names.size)), example=example))
        else:
            axes.append(names)
    return TensorText(given.dtypes or annotated.dtypes, tuple(axes))


def _tensor_kind(interpreter: Interpreter, value: Value, function: Function) -> str:
    receiver = value.receiver if isinstance(value, Bound) else value
    if isinstance(receiver, Instance):
        libraries = interpreter.tables.libraries_of(interpreter, receiver)
        if any(name.startswith("torch.") for name in libraries):
            return "torch.Tensor"
        if any(name.startswith("chainer.") for name in libraries):
            return "numpy.ndarray"
    module = function.scope.module
    values = {n: interpreter.lift(v) for n, v in module.host.items() if hasattr(v, "__spec__")}
    values |= interpreter.heap[module]
    roots = {n: getattr(v, "name", "").partition(".")[0] for n, v in values.items()
             if hasattr(v, "name")}  # fmt: skip
    used = {roots.get(n.id) for n in ast.walk(function.node) if isinstance(n, ast.Name)}
    is_torch = "torch" in roots.values() and ("torch" in used or "numpy" not in used)
    return "torch.Tensor" if is_torch else "numpy.ndarray"


def given_values(
    interpreter: Interpreter,
    function: Function,
    bound: bool,
    types: Sequence[Any],
    named: Mapping[str, Any],
    kind: str,
) -> dict[str, Any]:
    """Return the argument types that a caller of ``hagane.check`` gave, by name.

    ``kind`` is the class of the tensors that types stand for inside lists, tuples and dicts.
    """
    names = [parameter.arg for parameter in _parameters(function, bound)]
    if len(types) > len(names):
        raise CheckError(
            "input", f"'{function.name}' takes {len(names)} arguments, got {len(types)}"
        )
    given = {**dict(zip(names, types, strict=False)), **named}
    return {
        name: parse_type(value)
        if isinstance(value, str)
        else example_value(interpreter, value, name, kind)
        for name, value in given.items()
    }


def _check_all(interpreter: Interpreter, module: ModuleRef, request: Request) -> None:
    """Check every function and method whose arguments are annotated, or that fits the inputs."""
    found: list[tuple[Value, str]] = []
    for value in list(interpreter.heap[module].values()):
        if isinstance(value, Function) and value.scope.module is module:
            if _is_described(value, False, request.inputs):
                found.append((value, ""))
        elif isinstance(value, Class) and value.module is module:
            for name, item in interpreter.heap[value].items():
                if isinstance(item, Function) and _is_described(item, True, request.inputs):
                    found.append((value, "" if name in ("forward", "__call__") else name))
    if not found:
        raise CheckError(
            "target",
            f"nothing to check in '{request.file}': no argument carries a shape; name a class or a "
            f"function, as in {request.file.name}:Model, and say the types of its arguments "
            "with --input 'x=float32[batch, 3, 224, 224]'",
        )
    for value, method in found:
        _check_one(interpreter, module, request, value, method)


def _is_described(function: Function, bound: bool, inputs: Mapping[str, str]) -> bool:
    parameters = _parameters(function, bound)
    shaped = False
    for parameter in parameters:
        try:
            annotated = read_annotation(parameter.annotation) is not None
        except InvalidArgument:
            annotated = True
        known = annotated or parameter.arg in inputs
        shaped = shaped or known
        if not known and not _has_default(function, parameter.arg):
            return False
    return shaped


__all__ = ["Host", "Place", "Request", "check_object", "check_source"]
