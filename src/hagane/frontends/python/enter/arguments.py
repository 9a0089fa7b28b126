"""Calls of the checked object: its function, and values of the types of its arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import ModuleType
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.examples import example_value
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.enter.results import shown, tensors_of
from hagane.frontends.python.interpret.annotations import read_annotation
from hagane.frontends.python.report.findings import CheckError, Note, Problem
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.type_text import Axis, TensorText, TypeText, parse_type
from hagane.frontends.python.values.values import (
    MISSING,
    Origin,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import symbol


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


def _positional(function: Function, bound: bool) -> list[str]:
    """Return the names of the parameters that have a place."""
    arguments = function.node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1 if bound else 0 :]


def call_with(
    interpreter: Interpreter,
    value: Value,
    function: Function,
    bound: bool,
    given: Mapping[str, Any],
    kinds: Mapping[str, str] | None = None,
    by_name: Set[str] = frozenset(),
) -> None:
    """Call the function with values of the given types and record the result.

    ``kinds`` has the classes of arguments that are tensors, where they are known by name. Those
    of ``by_name`` are passed by name, where a wrapper around the function would see it.
    """
    parameters = _parameters(function, bound)
    names = {parameter.arg for parameter in parameters}
    many = function.node.args.vararg
    if many is not None:
        names.add(many.arg)
    unknown = [name for name in given if name not in names]
    if unknown and function.node.args.kwarg is None:
        known = ", ".join(sorted(names)) or "none"
        raise CheckError(
            "input", f"'{function.name}' has no argument '{unknown[0]}'; it has: {known}"
        )
    kind = tensor_kind(interpreter, value, function)
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
            f"give one, as {missing[0]}=float32[batch, 3, 224, 224] (--input on the command line), "
            "or annotate it",
        )
    arguments: list[Value] = []
    by_name = by_name if _sees_names(interpreter, value) else frozenset()
    for name in _positional(function, bound):
        if name not in keywords or name in by_name:
            break
        arguments.append(keywords.pop(name))
    if many is not None:
        arguments += [
            interpreter.make_value(item, f"{many.arg}.{place}", kind)
            if isinstance(item, TypeText)
            else item
            for place, item in enumerate(given.get(many.arg, ()))
        ]
    _call(interpreter, value, function, arguments, keywords)


def _call(
    interpreter: Interpreter,
    value: Value,
    function: Function,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> None:
    report = interpreter.collector.report
    frame = interpreter.module_frame(function.scope.module)
    interpreter.collector.nodes[frame.key] = function.node
    interpreter.frame = replace(frame, is_user=True)
    before = interpreter.collector.raised
    try:
        result = interpreter.settle(interpreter.call(value, arguments, keywords))
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


def _sees_names(interpreter: Interpreter, value: Value) -> bool:
    """Whether a call runs a wrapper of a function first, which takes arguments by any name."""
    if isinstance(value, Instance):
        names = interpreter.tables.call_order(interpreter, value)
        methods = [interpreter.method_of(value, name) for name in names]
        value = next((method for method in methods if method is not MISSING), value)
    if isinstance(value, Bound):
        value = value.function
    while isinstance(value, Wrapped) and value.kind in ("within", "managed", "cached"):
        value = value.function
    is_wrapper = isinstance(value, Function) and hasattr(value.host, "__wrapped__")
    return is_wrapper and value.node.args.kwarg is not None


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
    if isinstance(found, Tensor):  # an example
        known, found = known or found.kind, _text_of(found)
    if not isinstance(found, TypeText):
        return found
    if annotated is not None:
        found, kind = _with_names(annotated[0], found), annotated[1] or kind
    made = interpreter.make_value(found, name, known or kind)
    return _marked(interpreter, function, parameter, made)


def _marked(
    interpreter: Interpreter, function: Function, parameter: ast.arg, value: Value
) -> Value:
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


def tensor_kind(interpreter: Interpreter, value: Value, function: Function) -> str:
    """Return the class of tensors that a function takes, by the library that it uses."""
    receiver = value.receiver if isinstance(value, Bound) else value
    if isinstance(receiver, Instance):
        libraries = interpreter.tables.libraries_of(interpreter, receiver)
        if any(name.startswith("torch.") for name in libraries):
            return "torch.Tensor"
        if any(name.startswith("chainer.") for name in libraries):
            return "numpy.ndarray"
    module = function.scope.module
    modules = {n: v for n, v in module.host.items() if isinstance(v, ModuleType)}
    values = {n: interpreter.lift(v) for n, v in modules.items()}
    values |= interpreter.heap[module]
    roots = {n: getattr(v, "name", "").partition(".")[0] for n, v in values.items()
             if hasattr(v, "name")}  # fmt: skip
    roots |= {n: str(v.__module__).partition(".")[0] for n, v in module.host.items()
              if isinstance(v, type) and n not in roots}  # fmt: skip
    names = {n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)}
    used = {roots.get(name) for name in names}
    if not used & {"numpy", "torch"} and isinstance(receiver, Instance):
        used = {roots.get(name) for name in _names_of_methods(receiver)}
    is_torch = "torch" in roots.values() and ("torch" in used or "numpy" not in used)
    return "torch.Tensor" if is_torch else "numpy.ndarray"


def _names_of_methods(receiver: Instance) -> set[str]:
    """Return the names that the methods of an object's real class use."""
    cls = receiver.cls.host if isinstance(receiver.cls, Class) else None
    codes = [getattr(member, "__code__", None) for member in vars(cls).values()] if cls else []
    return {name for code in codes if code is not None for name in code.co_names}


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
    many = function.node.args.vararg
    names = [parameter.arg for parameter in _parameters(function, bound)]
    if many is not None:
        names = _positional(function, bound)
    elif len(types) > len(names):
        raise CheckError(
            "input", f"'{function.name}' takes {len(names)} arguments, got {len(types)}"
        )

    def made(value: Any, name: str) -> Any:
        if isinstance(value, str):
            return parse_type(value)
        return example_value(interpreter, value, name, kind)

    given = {**dict(zip(names, types, strict=False)), **named}
    found = {name: made(value, name) for name, value in given.items()}
    if many is not None and len(types) > len(names):
        rest = enumerate(types[len(names) :])
        found[many.arg] = tuple(made(value, f"{many.arg}.{place}") for place, value in rest)
    return found


def is_described(function: Function, bound: bool, inputs: Mapping[str, str]) -> bool:
    """Whether annotations or ``inputs`` give a shape, and leave no argument without a value."""
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
