"""Types as people write them: ``float32[batch, 3, height=227, width]`` and jaxtyping's strings.

``float32[batch, 3, 2*h + 1]``: element type and sizes; a size may be an expression over names, a
name with its size in an example (``height=227``), ``None`` or ``_`` for any size, ``...`` or
``*name`` for any number of axes. An element type alone (``int64``) is a scalar array, as is
``int64[]``. Beside tensors: ``list[T, U]``, ``list[T, n]`` (n times),
``tuple[T, U]``, ``int``, ``float``, ``bool``, ``str``, ``None``, ``any``, numbers, texts in quotes,
or an expression over sizes, which is an integer.

jaxtyping (https://docs.kidger.site/jaxtyping/api/array/): ``Float[Tensor, "batch 3 2*h"]``, with
``...``, ``*name``, ``_`` and ``#`` before a name for an axis that may be 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum, mod, product, symbol

_TOKEN = re.compile(
    r"""[ \t\r\n]+
    | (?P<NUMBER> [0-9]+ (?: \.[0-9]+ )? )
    | (?P<NAME> [A-Za-z_][A-Za-z0-9_.]* )
    | (?P<TEXT> '[^'\n]*' | "[^"\n]*" )
    | (?P<DOTS> \.\.\. )
    | (?P<OPERATOR> \*\* | // | [-+*/%()\[\],=\#:?|@] )
    """,
    re.VERBOSE,
)

DTYPES = {
    "float16": ir.DataType.FLOAT16, "half": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16,
    "float32": ir.DataType.FLOAT, "float": ir.DataType.FLOAT, "float64": ir.DataType.DOUBLE,
    "double": ir.DataType.DOUBLE, "int8": ir.DataType.INT8, "int16": ir.DataType.INT16,
    "int32": ir.DataType.INT32, "int64": ir.DataType.INT64, "long": ir.DataType.INT64,
    "uint8": ir.DataType.UINT8, "uint16": ir.DataType.UINT16, "uint32": ir.DataType.UINT32,
    "uint64": ir.DataType.UINT64, "bool": ir.DataType.BOOL, "complex64": ir.DataType.COMPLEX64,
    "complex128": ir.DataType.COMPLEX128,
}  # fmt: skip
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
_SIGNED = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.INT16, ir.DataType.INT8)
_UNSIGNED = tuple(DTYPES[f"uint{bits}"] for bits in (8, 16, 32, 64))
# jaxtyping's names for element types; the first is taken where a value has to be made.
JAXTYPING: dict[str, tuple[ir.DataType, ...]] = {
    "Float": _FLOATS,
    "Int": _SIGNED,
    "UInt": _UNSIGNED,
    "Integer": (*_SIGNED, *_UNSIGNED),
    "Bool": (ir.DataType.BOOL,),
    "Complex": (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128),
    "Inexact": (*_FLOATS, ir.DataType.COMPLEX64),
    "Real": (*_FLOATS, *_SIGNED, *_UNSIGNED),
    "Num": (*_FLOATS, *_SIGNED, *_UNSIGNED),
    "Shaped": (),
    **{
        name.capitalize() if not name.startswith(("uint", "bf")) else "UI" + name[2:]: (dtype,)
        for name, dtype in DTYPES.items()
        if name[-1].isdigit() and not name.startswith("bf")
    },
    "BFloat16": (ir.DataType.BFLOAT16,),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: a size, or None for any; ``spread`` for any number of axes of that name."""

    size: Dim | None
    spread: str | None = None
    or_one: bool = False
    example: int | None = None


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor: possible element types (none: any) and axes."""

    dtypes: tuple[ir.DataType, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class ContainerText:
    """A list or tuple with its items; ``times`` repeats the only item of a list."""

    kind: str
    items: tuple[TypeText, ...]
    times: Dim | None = None


@dataclass(frozen=True, slots=True)
class PlainText:
    """A known value, or a value of a Python type that is not known further."""

    kind: str  # value, int, float, bool, str, any
    value: object = None


@dataclass(frozen=True, slots=True)
class SizeText:
    """An integer given by an expression over sizes."""

    size: Dim
    example: int | None = None


TypeText: TypeAlias = TensorText | ContainerText | PlainText | SizeText


class _Words:
    def __init__(self, text: str):
        self.text = text
        self.place = 0
        self.tokens: list[re.Match[str]] = []
        end = 0
        while end < len(text):
            token = _TOKEN.match(text, end)
            if token is None:
                self.fail(f"no part of a type begins with '{text[end]}'", end)
            if token.lastgroup is not None:
                self.tokens.append(token)
            end = token.end()

    def peek(self, ahead: int = 0) -> str:
        index = self.place + ahead
        return self.tokens[index][0] if index < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.place].lastgroup or "" if self.place < len(self.tokens) else "END"

    def take(self) -> str:
        text = self.peek()
        self.place += 1
        return text

    def expect(self, text: str) -> None:
        if self.peek() != text:
            self.fail(f"expected '{text}', got '{self.peek() or 'the end'}'")
        self.place += 1

    def fail(self, message: str, start: int | None = None) -> NoReturn:
        if start is None:
            start = (
                self.tokens[self.place].start() if self.place < len(self.tokens) else len(self.text)
            )
        raise InvalidArgument(
            f"type '{self.text}', column {start + 1}: {message}; "
            "write it as float32[batch, 3, height=224, width=224]"
        )


def parse_type(text: str) -> TypeText:
    """Return the type written in ``text``.

    Raises:
        InvalidArgument: It is no type; the message has the column.
    """
    words = _Words(text)
    found = _type(words)
    if words.kind() != "END":
        words.fail(f"expected the end, got '{words.peek()}'")
    return found


def tensor_text(text: str) -> TensorText | None:
    """Return the type of a tensor if a text reads like one, None for any other text."""
    try:
        found = parse_type(text) if "[" in text else None
    except InvalidArgument:
        return None
    return found if isinstance(found, TensorText) else None


def _type(words: _Words) -> TypeText:
    name = words.peek()
    if words.peek(1) == "[" and name in ("list", "tuple", "List", "Tuple"):
        words.take()
        return _container(words, name.lower())
    dtype = DTYPES.get(name.removeprefix("torch.").removeprefix("np."))
    if words.peek(1) == "[" and dtype is not None:
        words.take()
        return TensorText((dtype,), tuple(_axes(words)))
    if words.kind() == "TEXT":
        return PlainText("value", words.take()[1:-1])
    if name in ("None", "True", "False"):
        words.take()
        return PlainText("value", {"None": None, "True": True, "False": False}[name])
    if name in ("int", "float", "bool", "str", "any") and words.peek(1) in ("", ",", "]"):
        return PlainText(words.take())
    if dtype is not None and words.peek(1) in ("", ",", "]"):
        words.take()
        return TensorText((dtype,), ())
    if words.kind() == "NUMBER" and "." in name:
        return PlainText("value", float(words.take()))
    if words.kind() == "NAME" and words.peek(1) == "[":
        words.fail(
            f"'{name}' is no element type; expected one of {', '.join(sorted(DTYPES))}, list, tuple"
        )
    size, example = _named_size(words)
    if isinstance(size, int):
        return PlainText("value", size)
    return SizeText(size, example)


def _container(words: _Words, kind: str) -> ContainerText:
    words.expect("[")
    items: list[TypeText] = []
    while words.peek() != "]":
        items.append(_type(words))
        if words.peek() != "]":
            words.expect(",")
    words.expect("]")
    if kind == "list" and len(items) == 2:
        last = items[1]
        if isinstance(last, SizeText):
            return ContainerText(kind, (items[0],), last.size)
        if isinstance(last, PlainText) and type(last.value) is int:
            return ContainerText(kind, (items[0],), last.value)
    return ContainerText(kind, tuple(items))


def _axes(words: _Words) -> Iterator[Axis]:
    words.expect("[")
    while words.peek() != "]":
        if words.peek() == "*" or words.kind() == "DOTS":
            yield Axis(None, _spread(words))
        elif words.peek() in ("None", "_", "?"):
            words.take()
            yield Axis(None)
        else:
            size, example = _named_size(words)
            yield Axis(size, example=example)
        if words.peek() != "]":
            words.expect(",")
    words.expect("]")


def _spread(words: _Words) -> str:
    if words.take() == "*":
        return words.take()
    return "..."


def _named_size(words: _Words) -> tuple[Dim, int | None]:
    if words.peek(1) == "=" and words.kind() == "NAME":
        name = words.take()
        words.take()
        value = words.take()
        if not value.isdigit():
            words.fail(f"expected the size of '{name}' in the example, got '{value}'")
        return symbol(name), int(value)
    return _sum(words), None


def _sum(words: _Words) -> Dim:
    total = _product(words)
    while words.peek() in ("+", "-"):
        total = total + _product(words) if words.take() == "+" else total - _product(words)
    return total


def _product(words: _Words) -> Dim:
    total = _unary(words)
    while words.peek() in ("*", "/", "//", "%"):
        operator = words.take()
        right = _unary(words)
        if operator == "*":
            total = total * right
        elif operator == "%":
            total = mod(total, right)
        else:
            total = floordiv(total, right)
    return total


def _unary(words: _Words) -> Dim:
    if words.peek() == "-":
        words.take()
        return -_unary(words)
    base = _atom(words)
    if words.peek() == "**":
        words.take()
        power = words.take()
        if not power.isdigit():
            words.fail(f"expected a number as exponent, got '{power}'")
        return product([base] * int(power))
    return base


def _atom(words: _Words) -> Dim:
    kind, text = words.kind(), words.take()
    if kind == "NUMBER" and text.isdigit():
        return int(text)
    if text == "(":
        inner = _sum(words)
        words.expect(")")
        return inner
    if kind == "NAME" and words.peek() == "(":
        return _call(words, text)
    if kind != "NAME":
        words.place -= 1
        words.fail(f"expected a size, got '{text or 'the end'}'")
    return symbol(text)


def _call(words: _Words, name: str) -> Dim:
    words.expect("(")
    if name in ("ceil", "floor"):
        top, bottom = _product_over(words)
        words.expect(")")
        return ceildiv(top, bottom) if name == "ceil" else floordiv(top, bottom)
    arguments = [_sum(words)]
    while words.peek() == ",":
        words.take()
        arguments.append(_sum(words))
    words.expect(")")
    if name in ("min", "max"):
        return (minimum if name == "min" else maximum)(*arguments)
    if name == "ceildiv" and len(arguments) == 2:
        return ceildiv(*arguments)
    words.fail(f"'{name}' is no function of sizes; there are min, max, ceil, floor and ceildiv")
    raise AssertionError


def _product_over(words: _Words) -> tuple[Dim, Dim]:
    top = _unary(words)
    while words.peek() in ("*", "+", "-"):
        operator = words.take()
        right = _unary(words)
        top = top * right if operator == "*" else top + right if operator == "+" else top - right
    if words.peek() not in ("/", "//"):
        return top, 1
    words.take()
    return top, _unary(words)


def parse_jaxtyping(dtype: str, text: str) -> TensorText:
    """Return the type of jaxtyping's ``dtype[Array, text]``.

    Raises:
        InvalidArgument: The string is none of jaxtyping's.
    """
    axes = []
    for part in _split(text):
        part = part.partition("=")[2] if part[:1].isalpha() and "=" in part else part
        or_one = part.startswith("#")
        part = part.lstrip("#?")
        if part == "...":
            axes.append(Axis(None, "..."))
        elif part.startswith("*"):
            axes.append(Axis(None, part.lstrip("*#?")))
        elif part.startswith("_"):
            axes.append(Axis(None))
        else:
            words = _Words(part.strip("{}"))
            size = _sum(words)
            if words.kind() != "END":
                words.fail(f"expected the end, got '{words.peek()}'")
            axes.append(Axis(size, or_one=or_one))
    return TensorText(JAXTYPING[dtype], tuple(axes))


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text.strip():
        depth += (char == "(") - (char == ")")
        if char.isspace() and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]
