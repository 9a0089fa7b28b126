"""Signatures of PyTorch's own functions, as its type stubs and schemas tell them.

``python -m hagane.frontends.libraries.torch.published.stubs`` writes the table
``signatures.txt``, which ``signatures.py`` reads; it needs an installed PyTorch. Only functions
that PyTorch's parser of arguments reads are listed: those in plain Python have no types of their
own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from hagane.frontends.libraries.torch.published.signatures import (
    METHODS,
    PLAIN,
    as_method,
    parameters_of,
)
from hagane.frontends.libraries.torch.table import TORCH

# Kinds of arguments by the names that stubs and schemas have for them; all others are any.
_KINDS = {
    "Tensor": "T", "Number": "N", "_complex": "N", "number": "N", "_int": "i", "int": "i",
    "SymInt": "i", "_float": "f", "float": "f", "_bool": "b", "bool": "b", "_size": "I",
    "_dtype": "d", "ScalarType": "d", "str": "s", "None": "?",
}  # fmt: skip
_LISTS = {"T": "L", "i": "I"}
# Methods whose stubs leave their only argument out.
_CONVERTING = (
    "bfloat16",
    "bool",
    "byte",
    "char",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
)
_LAYOUT = ["* memory_format:*="]
# What the stubs have as a tensor, and the parser takes as lists, too.
_LISTED = {"sparse_coo_tensor": ("indices:T", "indices:*")}
_MODULES = ("special", "linalg", "fft", "nn.functional")  # which have schemas, and no stubs


def _kind(node: ast.expr | None) -> str:
    """Return the kinds that an annotation allows, in a fixed order."""
    found = set(_kinds(node))
    return "*" if "*" in found or not found else "".join(sorted(found))


def _kinds(node: ast.expr | None) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from _kinds(node.left)
        yield from _kinds(node.right)
    elif isinstance(node, ast.Subscript):
        inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        yield _LISTS.get(_kind(inner), "*")
    elif isinstance(node, ast.Constant) and node.value is None:
        yield "?"
    else:
        yield from _KINDS.get(node.id if isinstance(node, ast.Name) else "", "*")


def _parameters(node: ast.FunctionDef, is_method: bool) -> str:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    first = len(plain) - len(given.defaults)
    told = [
        f"{'input' if p.arg == 'self' else p.arg}:{_kind(p.annotation)}{'=' * (i >= first)}"
        for i, p in enumerate(plain)
    ]
    if is_method:
        told = told[1:]
    if given.vararg is not None:
        told.append(f"*{given.vararg.arg}:{_kind(given.vararg.annotation)}")
    elif given.kwonlyargs:
        told.append("*")
    for p, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        told.append(f"{p.arg}:{_kind(p.annotation)}{'=' * (default is not None)}")
    return " ".join(told)


def _of_stubs(path: Path, cls: str = "") -> dict[str, list[str]]:
    body: list[ast.stmt] = ast.parse(path.read_text()).body
    if cls:
        body = next(n.body for n in body if isinstance(n, ast.ClassDef) and n.name == cls)
    found: dict[str, list[str]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            told = _parameters(node, bool(cls))
            if told not in found.setdefault(node.name, []):
                found[node.name].append(told)
    return found


def _of_schema(schema: Any) -> str:
    told, placed = [], True
    for argument in schema.arguments:
        if argument.kwarg_only and placed:
            told.append("*")
            placed = False
        kind = _of_schema_type(str(argument.real_type), argument.N)
        name = "input" if argument.name == "self" else argument.name
        given = argument.has_default_value()
        if given and argument.default_value == [] and "*" not in kind:
            kind = "".join(sorted(kind + "?"))  # the parser takes None for it
        told.append(f"{name}:{kind}{'=' * given}")
    return " ".join([*told, *["*"] * placed, "out:*="])


def _of_schema_type(text: str, count: int | None) -> str:
    text, optional = text.removeprefix("Optional[").rstrip("]"), text.startswith("Optional[")
    if text.startswith("List["):
        kind = _LISTS.get(_KINDS.get(text.removeprefix("List["), "*"), "*")
        kind += "i" if kind == "I" and count else ""
    else:
        kind = _KINDS.get(text, "*")
    return "*" if "*" in kind else "".join(sorted(kind + "?" * optional))


def signatures() -> dict[str, list[str]]:
    """Return the signatures of functions and methods that the tables know, by their names."""
    import torch

    folder = Path(torch._C.__file__).with_name("_C")
    found: dict[str, list[str]] = {}
    known = {*TORCH.functions, *(f"torch.Tensor.{name}" for name in TORCH.methods["torch.Tensor"])}
    plain = _of_stubs(folder / "_VariableFunctions.pyi")
    builtin = type(torch.add)
    for name, told in plain.items():
        if isinstance(getattr(torch, name, None), builtin):
            found[f"torch.{name}"] = [one.replace(*_LISTED.get(name, ("", ""))) for one in told]
    for module in _MODULES:
        for name, function in vars(attrgetter(module)(torch)).items():
            if not isinstance(function, builtin):
                continue
            if function is getattr(torch, name, None) and name in plain:
                found[f"torch.{module}.{name}"] = plain[name]
                continue
            schemas = torch._C._jit_get_schemas_for_operator(f"aten::{function.__name__}")
            schemas = [s for s in schemas if not any(a.is_out for a in s.arguments)]
            if schemas:
                found[f"torch.{module}.{name}"] = [_of_schema(schema) for schema in schemas]
    for name, told in _of_stubs(folder / "__init__.pyi", "TensorBase").items():
        if name not in vars(torch.Tensor):
            found[f"torch.Tensor.{name}"] = (
                _LAYOUT if told == [""] and name in _CONVERTING else told
            )
    return {name: told for name, told in sorted(found.items()) if name in known}


def lines() -> list[str]:
    """Return the lines of the table; methods that have their function's signatures have none."""
    known = signatures()
    found = {name: [parameters_of(o) for o in told] for name, told in known.items()}
    left = [
        f"{METHODS}{name}: {PLAIN}"
        for name in TORCH.methods[TORCH.tensor]
        if f"torch.{name}" in found and METHODS + name not in found
    ]
    for name, told in known.items():
        function = found.get(f"torch.{name.removeprefix(METHODS)}", [])
        if not name.startswith(METHODS) or found[name] != as_method(function):
            left.append(f"{name}: {'; '.join(told)}")
    return sorted(left)


if __name__ == "__main__":
    print("\n".join(lines()))
