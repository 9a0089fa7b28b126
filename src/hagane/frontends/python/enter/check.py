"""Checks: a function or a model's method, interpreted over the types of its inputs."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.arguments import (
    call_with,
    function_of,
    given_values,
    is_described,
    tensor_kind,
)
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.enter.roots import root_of
from hagane.frontends.python.interpret.running import Budget, OutOfTime
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.modules import SourceError
from hagane.frontends.python.report.findings import CheckError, Note, Report
from hagane.frontends.python.report.sources import lines_of
from hagane.frontends.python.shapes.domain import Shapes
from hagane.frontends.python.values.objects import (
    Class,
    Function,
    ModuleRef,
)
from hagane.frontends.python.values.type_text import (
    parse_type,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Unknown,
    Value,
)
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
        held: Texts that stand for files, by absolute path: those an editor has not saved.
    """

    file: Path
    target: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    make: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    seconds: float = SECONDS
    held: Mapping[str, str] = field(default_factory=dict)
    libraries: bool = False


def check_source(request: Request, tables: Tables) -> Report:
    """Check a file from its source alone; nothing of it is run."""
    return interpret(request, Knowledge(sample=dict(request.sizes)), tables).collector.report


def interpret(request: Request, knowledge: Knowledge, tables: Tables) -> Interpreter:
    """Check a file from its source alone, and return the interpreter with all it found."""
    interpreter = Interpreter(request.file.parent, tables, partial(Shapes, knowledge))
    interpreter.budget = Budget(request.seconds)
    interpreter.held, interpreter.imports = request.held, request.libraries
    for file, text in request.held.items():
        interpreter.collector.sources[file] = lines_of(text)
    interpreter.collector.checked = str(request.file)
    report = interpreter.collector.report
    with DeepRecursion(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arithmetic over known contents
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
    with DeepRecursion(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = interpreter.lift(found)
            function, bound = function_of(interpreter, value)
            if function is None:  # a library's, or functools.partial
                value = function = root_of(interpreter, found, types, named, "checked").function
            kind = tensor_kind(interpreter, value, function)
            given = given_values(interpreter, function, bound, types, named, kind)
            call_with(interpreter, value, function, bound, given, by_name={*named})
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


def _check_all(interpreter: Interpreter, module: ModuleRef, request: Request) -> None:
    """Check every function and method whose arguments are annotated, or that fits the inputs.

    A method of a class that nothing says how to make is checked where others of the file call it.
    """
    found: list[tuple[Value, str, Function]] = []
    for value in list(interpreter.heap[module].values()):
        if isinstance(value, Function) and value.scope.module is module:
            if is_described(value, False, request.inputs):
                found.append((value, "", value))
        elif isinstance(value, Class) and value.module is module:
            for name, item in interpreter.heap[value].items():
                if isinstance(item, Function) and is_described(item, True, request.inputs):
                    method = "" if name in ("forward", "__call__") else name
                    found.append((value, method, item))
    if not found:
        raise CheckError(
            "target",
            f"nothing to check in '{request.file}': no argument carries a shape; name a class or a "
            f"function, as in {request.file.name}:Model, and say the types of its arguments "
            "with --input 'x=float32[batch, 3, 224, 224]'",
        )
    left: list[tuple[Function, str]] = []
    for value, method, function in found:
        try:
            with interpreter.emit.apart():
                _check_one(interpreter, module, request, value, method)
        except CheckError as error:
            left.append((function, error.message))
    report = interpreter.collector.report
    lines = {one.place.line for one in report.types if one.place.file == module.file}
    for function, message in left:
        node = function.node
        body = node.body if isinstance(node.body, list) else [node.body]
        if lines.isdisjoint(range(body[0].lineno, (body[-1].end_lineno or 0) + 1)):
            report.checked = False
            place = interpreter.collector.place(module.file, node)
            report.notices.append(Note(place, message))


__all__ = ["Request", "check_object", "check_source"]
