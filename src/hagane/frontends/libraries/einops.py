"""einops: axes moved, joined, split, reduced and repeated by a pattern.

https://einops.rocks/api/rearrange/
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hagane.frontends.libraries.table import Table, View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Dim, floordiv, product

EINOPS = Table("einops", "einops.Tensor")
_TOKEN = re.compile(r"\s*(\.\.\.|…|\w+|[()])")
Group = tuple[str, ...]  # the axes joined in one; "..." stands for any number of axes


@dataclass(frozen=True, slots=True)
class Pattern:
    """Both sides of a pattern such as ``b (h w) c -> b c h w``."""

    left: tuple[Group, ...]
    right: tuple[Group, ...]


def parse(t: Core, text: Value, what: str) -> Pattern:
    """Return the parts of a pattern.

    Raises:
        CheckError: It is none.
    """
    if not isinstance(text, str) or text.count("->") != 1:
        t.fail("einops", f"{what} takes a pattern 'left -> right', got {text!r}")
    left, right = (_side(t, side, text) for side in text.split("->"))
    for side in (left, right):
        names = [name for group in side for name in group if not name.isdigit()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            t.fail("einops", f"'{twice}' stands twice on one side of '{text}'")
    return Pattern(left, right)


def _side(t: Core, text: str, whole: str) -> tuple[Group, ...]:
    groups: list[Group] = []
    inner: list[str] | None = None
    place = 0
    while place < len(text.rstrip()):
        found = _TOKEN.match(text, place)
        if found is None:
            t.fail(
                "einops", f"no part of a pattern begins with '{text[place:].strip()}': '{whole}'"
            )
        token, place = found.group(1).replace("…", "..."), found.end()
        if token == "(" and inner is None:
            inner = []
        elif token == ")" and inner is not None:
            # One axis, however many "..." stands for: bare dots are a group of their own.
            groups.append(("1", "...") if inner == ["..."] else tuple(inner))
            inner = None
        elif token in "()":
            t.fail("einops", f"parentheses do not match in '{whole}'")
        elif inner is not None:
            inner.append(token)
        else:
            groups.append(() if token == "1" else (token,))
    if inner is not None:
        t.fail("einops", f"parentheses do not match in '{whole}'")
    return tuple(groups)


def sizes_of(
    t: Core, x: Tensor, pattern: Pattern, text: str, given: Mapping[str, Dim]
) -> tuple[dict[str, Dim], tuple[Dim, ...]]:
    """Return the size of every axis that the left side names, and the axes of ``...``."""
    if x.shape is None:
        t.fail("rank", "the number of axes is not known", x)
    groups = list(pattern.left)
    dots = next((place for place, group in enumerate(groups) if group == ("...",)), None)
    spread = len(x.shape) - len(groups) + 1 if dots is not None else 0
    if spread < 0 or (dots is None and len(groups) != len(x.shape)):
        t.fail("rank", f"'{text}' expects {len(groups)} axes, got {t.show(x)}", x)
    middle: tuple[Dim, ...] = ()
    if dots is not None:
        middle = x.shape[dots : dots + spread]
        del groups[dots]
    rest = [dim for place, dim in enumerate(x.shape)
            if dots is None or not dots <= place < dots + spread]  # fmt: skip
    sizes = dict(given)
    for group, dim in zip(groups, rest, strict=True):
        _split(t, x, group, dim, sizes, text)
    return sizes, middle


def _split(t: Core, x: Tensor, group: Group, dim: Dim, sizes: dict[str, Dim], text: str) -> None:
    """Give the axes of a group their sizes; one may take the remaining elements."""
    if "..." in group:
        t.fail("einops", f"'...' in parentheses on the left is not understood: '{text}'", x)
    for name in group:
        if name.isdigit():
            sizes[name] = int(name)
    open_ = [name for name in group if name not in sizes]
    known = product(sizes[name] for name in group if name in sizes)
    if len(open_) > 1:
        t.fail(
            "einops",
            f"the sizes of {', '.join(open_)} in '{text}' are not known",
            x,
            remedy=f"pass one of them, as in {open_[0]}=...",
        )
    whole = floordiv(dim, known) * known if open_ else known
    if not _made_equal(t, whole, dim):
        expected = f"a multiple of {known}" if open_ else str(known)
        shown = f"({' '.join(group)})" if len(group) != 1 else group[0]
        t.fail(
            "shape-mismatch",
            f"'{text}': expected the axis '{shown}' to be {expected}, got {dim}: {t.show(x)}",
            x,
        )
    if open_:
        sizes[open_[0]] = floordiv(dim, known)


def _made_equal(t: Core, left: Dim, right: Dim) -> bool:
    """Whether sizes are equal, or the inputs can be restricted to those where they are."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return t.emit.restrict(t.knowledge.equal(left, right), f"{left} == {right}")


def _result(pattern: Pattern, sizes: Mapping[str, Dim], middle: tuple[Dim, ...]) -> list[Dim]:
    shape: list[Dim] = []
    for group in pattern.right:
        if group == ("...",):
            shape.extend(middle)
        else:
            parts = [product(middle) if n == "..." else sizes.get(n, 1) for n in group]
            shape.append(product(parts))
    return shape


def _names(side: Sequence[Group]) -> set[str]:
    return {name for group in side for name in group}


def _stacked(t: Core, value: Value, what: str) -> Tensor:
    if isinstance(value, list | tuple) and value:
        kind = value[0].kind if isinstance(value[0], Tensor) else "torch.Tensor"
        root = kind.partition(".")[0]
        made: Tensor = t.call_library(f"{root}.stack", [list(value)])
        return made
    if not isinstance(value, Tensor):
        t.fail("type", f"{what} takes a tensor, got {t.show(t.wrap(value))}")
    return value


def _check_names(t: Core, pattern: Pattern, text: str, given: Mapping[str, Value]) -> None:
    known = _names(pattern.left) | _names(pattern.right)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        t.fail("einops", f"'{unknown}' is no axis of '{text}'")


@EINOPS.function("rearrange")
def rearrange(t: Core, tensor: Value, pattern: Value, **axes_lengths: Value) -> Tensor:
    """Return the tensor with its axes in another order, joined and split."""
    x = _stacked(t, tensor, "rearrange")
    found = parse(t, pattern, "rearrange")
    _check_names(t, found, pattern, axes_lengths)
    left, right = _names(found.left), _names(found.right)
    different = {name for name in left ^ right if name != "1"}
    if different:
        t.fail(
            "einops",
            f"{', '.join(sorted(different))} stands on one side only of '{pattern}'",
            x,
            remedy="reduce drops axes, repeat adds them",
        )
    sizes, middle = sizes_of(t, x, found, pattern, axes_lengths)
    return t.emit.typed("Rearrange", [x], x.dtype, tuple(_result(found, sizes, middle)))


@EINOPS.function("reduce")
def reduce(
    t: Core, tensor: Value, pattern: Value, reduction: Value, **axes_lengths: Value
) -> Tensor:
    """Return the tensor with the axes reduced that the right side lacks."""
    x = _stacked(t, tensor, "reduce")
    found = parse(t, pattern, "reduce")
    _check_names(t, found, pattern, axes_lengths)
    new = _names(found.right) - _names(found.left) - {"1"}
    if new:
        t.fail("einops", f"{', '.join(sorted(new))} stands on the right only of '{pattern}'", x)
    known = ("min", "max", "sum", "mean", "prod", "any", "all")
    if isinstance(reduction, str) and reduction not in known:
        t.fail("value", f"expected one of {', '.join(known)} as reduction, got '{reduction}'")
    if reduction == "mean" and x.dtype.is_integer():
        t.fail("dtype-mismatch", f"the mean takes floats, got {t.show(x)}", x,
               remedy="convert it with .float()")  # fmt: skip
    sizes, middle = sizes_of(t, x, found, pattern, axes_lengths)
    return t.emit.typed("Reduce", [x], x.dtype, tuple(_result(found, sizes, middle)))


@EINOPS.function("repeat")
def repeat(t: Core, tensor: Value, pattern: Value, **axes_lengths: Value) -> Tensor:
    """Return the tensor repeated along the axes that only the right side has."""
    x = _stacked(t, tensor, "repeat")
    found = parse(t, pattern, "repeat")
    _check_names(t, found, pattern, axes_lengths)
    gone = _names(found.left) - _names(found.right) - {"1"}
    if gone:
        t.fail("einops", f"{', '.join(sorted(gone))} stands on the left only of '{pattern}'", x)
    new = _names(found.right) - _names(found.left)
    numbers = {name: int(name) for name in new if name.isdigit()}
    missing = sorted(new - set(axes_lengths) - set(numbers))
    if missing:
        t.fail("einops", f"the size of {', '.join(missing)} in '{pattern}' is not known", x,
               remedy=f"pass it, as in {missing[0]}=...")  # fmt: skip
    sizes, middle = sizes_of(t, x, found, pattern, axes_lengths)
    return t.emit.typed("Repeat", [x], x.dtype, tuple(_result(found, {**sizes, **numbers}, middle)))


@EINOPS.function("einsum")
def einsum(t: Core, *arguments: Value) -> Value:
    """Return a sum of products; axes have names of any length, and the pattern comes last."""
    *tensors, pattern = arguments
    if not isinstance(pattern, str):
        t.fail("einops", "einsum takes its pattern last")
    names = sorted(set(re.findall(r"[A-Za-z_]\w*", pattern)))
    letters = {name: chr(ord("a") + place) for place, name in enumerate(names)}
    short = re.sub(r"[A-Za-z_]\w*", lambda found: letters[found.group()], pattern)
    return t.call_library("torch.einsum", [short.replace(" ", ""), *tensors])


@EINOPS.function("parse_shape")
def parse_shape(t: Core, x: Value, pattern: Value) -> Value:
    """Return the sizes of axes by name; ``_`` skips one."""
    names = str(pattern).split()
    shape = x.shape or ()
    if len(names) != len(shape):
        t.fail("rank", f"'{pattern}' expects {len(names)} axes, got {t.show(x)}", x)
    return {name: dim for name, dim in zip(names, shape, strict=True) if name != "_"}


def _star(t: Core, pattern: Value, what: str) -> tuple[int, int]:
    """Return how many axes stand before and behind the ``*`` of a pattern."""
    names = str(pattern).split()
    if names.count("*") != 1:
        t.fail("einops", f"{what} takes a pattern with one '*', got {pattern!r}")
    place = names.index("*")
    return place, len(names) - place - 1


@EINOPS.function("pack")
def pack(t: Core, tensors: Value, pattern: Value) -> Value:
    """Return tensors joined along the axis ``*``, in which each has any axes, and those axes."""
    before, behind = _star(t, pattern, "pack")
    flat: list[Tensor] = []
    packed: list[Value] = []
    for x in tensors:
        shape = x.shape or ()
        if len(shape) < before + behind:
            t.fail(
                "rank", f"'{pattern}' expects at least {before + behind} axes, got {t.show(x)}", x
            )
        inner = shape[before : len(shape) - behind]
        packed.append(tuple(inner))
        joined = (*shape[:before], product(inner), *shape[len(shape) - behind :])
        flat.append(t.emit.typed("Pack", [x], x.dtype, joined))
    return (t.call_library("torch.cat", [flat, before]), packed)


@EINOPS.function("unpack")
def unpack(t: Core, tensor: Value, packed_shapes: Value, pattern: Value) -> Value:
    """Return the parts that ``pack`` joined."""
    before, behind = _star(t, pattern, "unpack")
    shape = tensor.shape or ()
    if len(shape) != before + behind + 1:
        t.fail(
            "rank", f"'{pattern}' expects {before + behind + 1} axes, got {t.show(tensor)}", tensor
        )
    parts = [tuple(axes) for axes in packed_shapes]
    known = [product(axes) for axes in parts if -1 not in axes]
    total: Dim = 0
    for length in known:
        total = total + length
    if len(known) == len(parts) and t.emit.differ(total, shape[before]):
        t.fail(
            "shape-mismatch", f"the parts have {total} elements, the axis {shape[before]}", tensor
        )
    result = []
    for axes in parts:
        rest = product(dim for dim in axes if dim != -1)
        open_ = floordiv(shape[before] - total, rest)
        inner = tuple(open_ if dim == -1 else dim for dim in axes)
        whole = (*shape[:before], *inner, *shape[before + 1 :])
        result.append(t.emit.typed("Unpack", [tensor], tensor.dtype, whole))
    return result


@EINOPS.layer("layers.torch.Rearrange", base="torch.nn.Module")
class Rearrange:
    """``rearrange`` as a layer."""

    @staticmethod
    def init(t: Core, pattern: Value, **axes_lengths: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"pattern": pattern, "axes_lengths": t.new_dict(dict(axes_lengths))}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return rearrange(t, input, self.pattern, **self.axes_lengths)


@EINOPS.layer("layers.torch.Reduce", base="torch.nn.Module")
class Reduce:
    """``reduce`` as a layer."""

    @staticmethod
    def init(t: Core, pattern: Value, reduction: Value, **axes_lengths: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"pattern": pattern, "reduction": reduction,
                "axes_lengths": t.new_dict(dict(axes_lengths))}  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return reduce(t, input, self.pattern, self.reduction, **self.axes_lengths)
