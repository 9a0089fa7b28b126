"""Roots of checks and captures: functions with source, or layers of a library alone."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from hagane.frontends.python.enter.arguments import function_of, tensor_kind
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Class,
    Frame,
    Function,
    Instance,
    ModuleRef,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    Library,
    LibraryMethod,
    Value,
)

_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PARTS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # where a return may lie


@dataclass(frozen=True, slots=True)
class Root:
    """The callee of a check or a capture.

    Attributes:
        value: The callable.
        function: The function that a call of it runs.
        bound: Whether its first argument is given.
    """

    value: Value
    function: Function
    bound: bool

    def place_of_result(self) -> str:
        """Return file and line of the only ``return``, or of the function if there are others."""
        node = self.function.node
        waiting: list[ast.AST] = list(node.body) if isinstance(node.body, list) else []
        returns: list[ast.Return] = []
        while waiting:
            part = waiting.pop()
            if isinstance(part, ast.Return):
                returns.append(part)
            elif not isinstance(part, _INNER):
                waiting += [one for one in ast.iter_child_nodes(part) if isinstance(one, _PARTS)]
        line = returns[0].lineno if len(returns) == 1 else node.lineno
        return f"{self.function.scope.file}:{line}"

    def arguments(self) -> list[str]:
        """Return the names of the arguments that a caller gives by position."""
        found = self.function.node.args
        names = [argument.arg for argument in (*found.posonlyargs, *found.args)]
        return names[1:] if self.bound else names


def root_of(
    interpreter: Interpreter,
    found: Any,
    types: Sequence[Any],
    named: Mapping[str, Any],
    verb: str = "captured",
) -> Root:
    """Return the function that a call of a real object runs.

    Args:
        interpreter: Lifts the object.
        found: The object.
        types: The types of its arguments by position.
        named: Those by name.
        verb: What is to be done with it, for messages.

    Raises:
        CheckError: It has no source, and no library that is known has it.
    """
    value = interpreter.lift(found)
    function, bound = function_of(interpreter, value)
    if function is not None and not _has_hooks(found):
        root = Root(value, function, bound)
        if not _takes_more(root, len(types), named):
            return root
    described = function is not None or isinstance(value, Wrapped)  # such as functools.partial
    name = _library_name(interpreter, value) or (type(found).__name__ if described else "")
    if not name:
        raise CheckError("target", _no_source(found, verb))
    arguments, keywords = _arguments(interpreter, found, name, len(types), named)
    made = _calling(interpreter, value, name, arguments, keywords, types, named)
    return Root(made, made, False)


def _takes_more(root: Root, count: int, named: Mapping[str, Any]) -> bool:
    """Whether a call gives arguments that ``*args`` or ``**kwargs`` take."""
    found = root.function.node.args
    names = {*root.arguments(), *(argument.arg for argument in found.kwonlyargs)}
    many = found.vararg is not None and (count > len(root.arguments()) or found.vararg.arg in named)
    return many or (found.kwarg is not None and not names.issuperset(named))


def _has_hooks(found: Any) -> bool:
    """Whether a call of a real object runs more than one function."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_local_link_hooks")
    return any(getattr(found, name, None) for name in names)


def _no_source(found: Any, verb: str) -> str:
    """Return the reason that a real object has no source, and the remedy."""
    shown = repr(found).partition("\n")[0]
    function = getattr(found, "__func__", found)
    code = getattr(function, "__code__", None)
    if code is None and not hasattr(type(found), "forward"):
        return (
            f"{shown} has no Python source that can be {verb}: it is written in C; call it in a "
            "function of your own, by a name that PyTorch, NumPy or hagane has for it"
        )
    where = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
    return (
        f"{shown} has no Python source that can be {verb}{where}, as an interactive session, "
        "exec() or a file that has changed since leaves none; give a function or a model whose "
        "source is in a file, or a layer of torch.nn"
    )


def _library_name(interpreter: Interpreter, value: Value) -> str:
    """Return the name of a function or a layer whose calls a table describes."""
    if isinstance(value, Library):
        return "" if interpreter.tables.arguments(value.name) is None else value.name
    if not isinstance(value, Instance) or not isinstance(value.cls, Library | Class):
        return ""
    called = interpreter.tables.call_order(interpreter, value)
    methods = (interpreter.method_of(value, name) for name in called)
    return value.cls.name if any(isinstance(m, LibraryMethod) for m in methods) else ""


def _arguments(
    interpreter: Interpreter, found: Any, name: str, count: int, named: Mapping[str, Any]
) -> tuple[dict[str, bool], set[str]]:
    """Return the names of the arguments of a call, and which of them are passed by name.

    The former are with whether each has to be given.

    Args:
        interpreter: Knows the arguments of functions that are written in C.
        found: The callee.
        name: Its name in the table of its library.
        count: How many arguments are given by position, which any number of ``*args`` takes.
        named: Those by name, which ``**kwargs`` takes.
    """
    try:
        parameters = inspect.signature(getattr(found, "forward", found)).parameters.values()
    except (TypeError, ValueError):  # written in C
        if isinstance(found, functools.partial):
            inner = _library_name(interpreter, interpreter.lift(found.func))
            known = [*(interpreter.tables.arguments(inner) or {}).items()][len(found.args) :]
            return {n: needed for n, needed in known if n not in found.keywords}, set()
        return dict(interpreter.tables.arguments(name) or {}), set()
    arguments = {p.name: p.default is p.empty for p in parameters if p.kind in _PLACED}
    for many in (p.name for p in parameters if p.kind is p.VAR_POSITIONAL):
        more = range(count - len(arguments))
        if many in named:  # as one tuple
            arguments[f"*{many}"] = True
            continue
        arguments |= {many if len(more) == 1 else f"{many}{i}": True for i in more}
    behind = {p.name: p.default is p.empty for p in parameters if p.kind is p.KEYWORD_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        behind |= {n: True for n in named if n not in arguments and f"*{n}" not in arguments}
    return {**arguments, **behind}, set(behind)


def _calling(
    interpreter: Interpreter,
    value: Value,
    title: str,
    arguments: Mapping[str, bool],
    keywords: Set[str],
    types: Sequence[Any],
    named: Mapping[str, Any],
) -> Function:
    """Return the function ``def forward(input): return layer(input)`` for a layer."""
    known = ", ".join(arguments)
    starred = {name.removeprefix("*") for name in arguments if name.startswith("*")}
    arguments = {name.removeprefix("*"): needed for name, needed in arguments.items()}
    if len(types) > len(arguments):
        raise CheckError("input", f"'{title}' takes the arguments ({known}), got {len(types)}")
    unknown = [name for name in named if name not in arguments]
    if unknown:
        raise CheckError("input", f"'{title}' has no argument '{unknown[0]}'; it has: {known}")
    given = {*[*arguments][: len(types)], *named}
    missing = [name for name, needed in arguments.items() if needed and name not in given]
    if missing:
        raise CheckError(
            "input",
            f"the type of the argument '{missing[0]}' of '{title}' is not known; "
            f'say it, as in {missing[0]}="float32[batch, 3]"',
        )
    names = [name for name in arguments if name in given]
    before = [*arguments][: len(names)]
    passed = [
        f"*{n}" if n in starred else n if n == b and n not in keywords else f"{n}={n}"
        for n, b in zip(names, before, strict=True)
    ]
    tree = ast.parse(f"def forward({', '.join(names)}): return layer({', '.join(passed)})")
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    root = title.partition(".")[0]  # of the library whose tensors it takes
    if isinstance(value, Instance):
        bases = interpreter.tables.libraries_of(interpreter, value)
        root = next((name.partition(".")[0] for name in bases), root)
    root = _library_of_partial(interpreter, value) or root
    module = ModuleRef(
        interpreter.heap.new({root: Library(root)}), title, f"<{title}>", {}, is_user=True
    )
    scope = Frame(interpreter.heap.new({"layer": value}), module.file, module, None, True)
    return Function(node, "forward", scope)


def _library_of_partial(interpreter: Interpreter, value: Value) -> str:
    """Return the library whose tensors the function inside ``functools.partial`` takes."""
    if not isinstance(value, Wrapped) or value.kind != "partial":
        return ""
    while isinstance(value, Wrapped) and value.kind == "partial":
        value = value.function
    if isinstance(value, Library):
        return value.name.partition(".")[0]
    function, _ = function_of(interpreter, value)
    found = "" if function is None else tensor_kind(interpreter, value, function)
    return found.partition(".")[0]


__all__ = ["Root", "root_of"]
