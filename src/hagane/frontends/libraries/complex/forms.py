"""Functions of complex tensors that call the same function, or another one, with real tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hagane.frontends.libraries.complex.functions import imaginary, magnitude
from hagane.frontends.libraries.complex.memory import COMPLEX
from hagane.frontends.libraries.complex.rules import RULES, cast
from hagane.frontends.libraries.table import places_of
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    DType,
    Tensor,
    Value,
)
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.numbers.division import hypotenuse
from hagane.ops.functions.numbers.elementary import add, mul, sub
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors import ordering
from hagane.ops.functions.tensors.parts import part
from hagane.ops.functions.tensors.shapes import zeros_like

if TYPE_CHECKING:
    from hagane.frontends.libraries.complex.parts import ComplexParts

Run = Callable[[Sequence[Value], Mapping[str, Value]], Value]
# Linear over the reals, or applied to both parts: the function of both.
_LINEAR = frozenset({
    "view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute",
    "permute_dims", "movedim", "moveaxis", "swapaxes", "swapdims", "t", "mT", "T", "ravel",
    "contiguous", "clone",
    "copy", "detach", "expand", "expand_as", "expand_dims", "broadcast_to", "repeat", "tile",
    "repeat_interleave", "roll", "flip", "cat", "concat", "concatenate", "stack", "hstack",
    "vstack", "split", "tensor_split", "chunk", "unbind", "select", "narrow", "index_select",
    "gather", "take_along_dim", "take_along_axis", "sum", "mean", "cumsum", "diff", "tril", "triu",
    "diagonal", "where", "neg", "negative", "positive", "item", "trace", "diag", "rot90", "fliplr",
    "flipud", "array", "asarray", "take", "compress", "atleast_1d", "atleast_2d", "atleast_3d",
    "round", "around", "rint", "nan_to_num", "column_stack", "dstack", "pad", "ascontiguousarray",
    "asfortranarray", "array_split", "hsplit", "vsplit", "dsplit", "average", "gradient", "delete",
    "trapezoid", "interp", "append", "insert", "block", "choose", "resize",
})  # fmt: skip
# Of these, real operands count as complex ones.
_JOINING = frozenset(
    {"array", "asarray", "cat", "concat", "concatenate", "stack", "hstack", "vstack", "where",
     "column_stack", "dstack", "append", "insert", "block", "choose", "numpy.select"}
)  # fmt: skip
# Of these, numbers among the items too.
_OF_NUMBERS = frozenset(
    {"where", "array", "asarray", "append", "insert", "block", "choose", "numpy.select"}
)
# Arguments, by name or place, that choose among the items or tell where they lie.
_CHOOSING: Mapping[str, Sequence[str | int]] = {
    "where": ("condition", 0), "numpy.select": ("condlist", 0), "insert": ("obj", 1),
    "choose": ("a", 0), "append": ("axis", 2),
}  # fmt: skip
_VALUES = ("prepend", "append", "constant_values", "initial", "value", "left", "right", "period")
_MATRIX_PRODUCTS = frozenset(
    {"matmul", "bmm", "mm", "dot", "einsum", "outer", "inner", "kron", "tensordot", "mv", "cross",
     "convolve"}
)  # fmt: skip
_OF_CONJUGATES: Mapping[str, int] = {"vdot": 0, "correlate": 1}
# Functions that ask which numbers are not zero.
_OF_TRUTH = frozenset(
    {"any", "all", "nonzero", "flatnonzero", "argwhere", "count_nonzero", "logical_not",
     "logical_and", "logical_or", "logical_xor"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of a library with complex tensors.

    Attributes:
        parts: The parts of the tensors of the graph.
        core: The interpreter.
        name: Of the function, or of a tensor's class and the operator.
        arguments: Of the call.
        keywords: Of the call.
        again: Calls the function with other arguments.
        kind: The class of its results.
    """

    parts: ComplexParts
    core: Core
    name: str
    arguments: Sequence[Value]
    keywords: Mapping[str, Value]
    again: Run
    kind: str

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.replace(" ", ".").rpartition(".")[2]

    def pair(self, value: Value) -> Pair:
        """Return the parts of a tensor or a number."""
        return self.parts.pair(self.core, value)

    def wrapped(self, pair: Pair) -> Value:
        """Return parts as a complex tensor."""
        return self.parts.wrapped(self.core, pair, self.kind, None)

    def labels(self) -> list[str]:
        """Return the names of the arguments that are given by place, as far as they are known."""
        tables: Any = self.core.tables
        table = tables.table_of(self.name)
        owner, _, last = self.name.rpartition(".")
        found = None
        if table is not None:
            methods = table.methods.get(owner, {})
            found = table.functions.get(self.name, methods.get(last))
        return [] if found is None else places_of(found)

    def with_first(self, x: Value) -> Value:
        """Return the result for another first argument."""
        self.core.emit.kind = self.kind
        return self.again([x, *self.arguments[1:]], self.keywords)


def _part_dtype(call: Call, x: DType) -> DType:
    """Return the element type of the parts of a result."""
    if x.dtype not in COMPLEX:
        raise CheckError("capture", f"'{call.name}' drops the imaginary parts; take x.real before")
    return DType(COMPLEX[x.dtype], x.library)


def _linear(call: Call) -> Value:
    last = call.name if call.name == "numpy.select" else call.last
    joining = last in _JOINING
    choosing = _CHOOSING.get(last, ())
    if call.name.startswith("torch.Tensor") and last == "where":
        choosing = (1,)
    given = [*call.arguments, *call.keywords.values()]
    if not joining and sum(map(is_complex, given)) > 1:
        raise CheckError(
            "capture", f"'{call.name}' of several complex tensors; apply it to their parts"
        )

    labels = call.labels()

    def chosen(place: int) -> Value:
        def change(x: Value, key: str | int = "") -> Value:
            if key != "" and key in choosing:
                return x
            if isinstance(key, int) and key < len(labels):
                key = labels[key]
            if isinstance(x, DType):
                return _part_dtype(call, x)
            if isinstance(x, list | tuple):
                return type(x)(change(item, key if key in _VALUES else "") for item in x)
            number = isinstance(x, int | float | complex) and not isinstance(x, bool)
            number = number and (last in _OF_NUMBERS or key in _VALUES)
            joined = number or (isinstance(x, Tensor) and (joining or key in _VALUES))
            if not (is_complex(x) or joined):
                return x
            pair = call.pair(x)
            if pair[place] is not None:
                return pair[place]
            return zeros_like(pair[0]) if isinstance(pair[0], Tensor) else 0.0

        with interpreting(call.core.emit):
            changed = tuple(change(x, i) for i, x in enumerate(call.arguments))
            named = {key: change(x, key) for key, x in call.keywords.items()}
        call.core.emit.kind = call.kind
        return call.again(changed, named)

    return _recombined(call, chosen(0), chosen(1))


def _recombined(call: Call, real: Value, turn: Value) -> Value:
    if not isinstance(real, Tensor | list | tuple):
        raise CheckError("capture", "complex tensors whose number the data decide")
    if isinstance(real, list | tuple):
        assert isinstance(turn, list | tuple)
        pairs = zip(real, turn, strict=True)
        return type(real)(_recombined(call, a, b) for a, b in pairs)
    return call.wrapped((real, turn))


def _bilinear(call: Call) -> Value:
    places = [i for i, x in enumerate(call.arguments) if isinstance(x, Tensor)]
    if len(places) != 2 or call.keywords:
        raise CheckError("capture", "a product of other than two tensors, some of them complex")

    def product(a: Any, b: Any) -> Any:
        changed = list(call.arguments)
        changed[places[0]], changed[places[1]] = a, b
        call.core.emit.kind = call.kind
        return call.again(changed, {})

    first, second = (call.pair(call.arguments[i]) for i in places)
    with interpreting(call.core.emit):
        pairs = [first, second]
        if call.last in _OF_CONJUGATES:
            turned = _OF_CONJUGATES[call.last]
            pairs[turned] = RULES["conj"](pairs[turned])
        (ar, ai), (br, bi) = pairs
        real = product(ar, br)
        if ai is not None and bi is not None:
            real = sub(real, product(ai, bi))
        crossed = [product(ar, bi)] if bi is not None else []
        crossed += [product(ai, br)] if ai is not None else []
        found = real, add(*crossed) if crossed else None
    return call.wrapped(found)


def _norm(call: Call) -> Value:
    """Return a norm that is one of the elements' magnitudes: of vectors, or Frobenius'."""
    x, *rest = call.arguments
    order = rest[0] if rest else call.keywords.get("ord", call.keywords.get("p"))
    if not isinstance(x, Tensor) or not (order in (None, "fro") or x.rank == 1):
        return NotImplemented
    with interpreting(call.core.emit):
        size = magnitude(call.pair(x))
    return call.with_first(size)


def _of_truth(call: Call) -> Value:
    def truth(x: Value) -> Value:
        if not is_complex(x):
            return x
        pair = call.pair(x)
        return op("Or", *(op("Not", op("Equal", y, 0)) for y in (pair[0], imaginary(pair))))

    with interpreting(call.core.emit):
        changed = [truth(x) for x in call.arguments]
        named = {key: truth(x) for key, x in call.keywords.items()}
    return call.again(changed, named)


def _variance(call: Call) -> Value:
    """Return the mean squared distance from the mean, or its root: that of both parts."""
    pair = call.pair(call.arguments[0])
    both = [call.with_first(x) for x in pair if x is not None]
    if len(both) < 2:
        return both[0]
    with interpreting(call.core.emit):
        return (hypotenuse if call.last == "std" else add)(*both)


def _are_close(call: Call) -> Value:
    names = ("a", "b", "rtol", "atol", "equal_nan")
    found = {**dict(zip(names, call.arguments, strict=False)), **call.keywords}
    a, b = (call.pair(found.get(key, found.get(other))) for key, other in
            (("a", "input"), ("b", "other")))  # fmt: skip
    relative, absolute = found.get("rtol", 1e-5), found.get("atol", 1e-8)
    with interpreting(call.core.emit):
        apart = magnitude(RULES["subtract"](a, b))
        near = op("LessOrEqual", apart, add(mul(magnitude(b), relative), absolute))
        close = op("Or", op("And", near, RULES["isfinite"](b)), RULES["equal"](a, b))
        if found.get("equal_nan") is True:
            close = op("Or", close, op("And", RULES["isnan"](a), RULES["isnan"](b)))
    if call.last == "isclose":
        return close
    whole = call.core.tables.call(call.core, "numpy.all", [close], {})
    return call.core.as_truth(call.core.as_term(call.core.truth(whole)))


def _are_equal(call: Call) -> Value:
    """Return whether two tensors have the same elements, as one truth value."""
    with interpreting(call.core.emit):
        both = [op("Concat", *(op("Unsqueeze", y, [0]) for y in (pair[0], imaginary(pair))), axis=0)
                for pair in map(call.pair, call.arguments)]  # fmt: skip
    call.core.emit.kind = call.kind
    return call.again(both, {})


def _product(call: Call) -> Value:
    """Return the product along an axis of known length, factor by factor, in halves."""
    x, axis = call.arguments[0], call.keywords.get("axis", call.keywords.get("dim"))
    if len(call.arguments) > 1:
        axis = call.arguments[1]
    extra = [key for key, value in call.keywords.items() if key not in ("axis", "dim") and value]
    if not isinstance(x, Tensor) or x.shape is None or extra or len(call.arguments) > 2:
        return NotImplemented
    with interpreting(call.core.emit):
        pair = call.pair(x)
        pair = pair[0], imaginary(pair)
        shape = x.shape
        if not shape and axis in (None, 0, -1):
            return call.wrapped(tuple(op("Identity", y) for y in pair))
        if axis is None:
            pair, shape, axis = tuple(op("Reshape", y, [-1]) for y in pair), (_size(shape),), 0
        if not isinstance(axis, int) or not isinstance(shape[axis], int) or not shape[axis]:
            raise CheckError(
                "capture",
                f"'{call.name}' of complex tensors along an axis of unknown length, or of none; "
                "multiply them in a loop",
            )
        axis %= len(shape)
        count = shape[axis]
        assert isinstance(count, int)
        if call.last == "cumprod":
            return call.wrapped(_running_product(pair, axis, count))
        while count > 1:
            half = count // 2
            found = spectra.product(
                *(tuple(part(y, axis, start, half) for y in pair) for start in (0, half))
            )
            if count % 2:
                rest = (part(y, axis, count - 1, 1) for y in pair)
                found = tuple(
                    op("Concat", a, b, axis=axis) for a, b in zip(found, rest, strict=True)
                )
            pair, count = found, half + count % 2
        real, turn = (op("Squeeze", y, [axis]) for y in pair)
    return call.wrapped((real, turn))


def _running_product(pair: Pair, axis: int, count: int) -> Pair:
    """Return the products of the first elements, in rounds of doubled distances."""
    step = 1
    while step < count:
        later, before = (
            tuple(part(y, axis, start, count - step) for y in pair) for start in (step, 0)
        )
        found = spectra.product(later, before)
        pair = tuple(
            op("Concat", part(y, axis, 0, step), z, axis=axis)
            for y, z in zip(pair, found, strict=True)
        )
        step *= 2
    return pair


def _size(shape: Sequence[Any]) -> Any:
    total: Any = 1
    for size in shape:
        total = total * size
    return total


def _solved(call: Call) -> Value:
    """Return the inverse, or a solution, by that of the real matrix [[A, -B], [B, A]]."""
    pairs = [call.pair(x) for x in call.arguments]
    if call.keywords or not all(isinstance(x, Tensor) for x in call.arguments):
        return NotImplemented
    with interpreting(call.core.emit):
        to = next(y.dtype for pair in pairs for y in pair if y.dtype in COMPLEX.values())
        pairs = [(cast(a, to), cast(imaginary((a, b)), to)) for a, b in pairs]
        real, turn = pairs[0]
        rows = [op("Concat", *row, axis=-1) for row in ((real, op("Neg", turn)), (turn, real))]
        matrix = op("Concat", *rows, axis=-2)
        size = real.shape[-1]
        rank = len(real.shape)
        is_vector = call.last == "solve" and len(pairs[1][0].shape) == 1
        ends = [op("Concat", *pair, axis=-1 if is_vector else -2) for pair in pairs[1:]]
    call.core.emit.kind = call.kind
    found: Any = call.again([matrix, *ends], {})
    with interpreting(call.core.emit):
        if call.last == "inv":
            found = part(found, rank - 1, 0, size)
            axis = rank - 2
        else:
            axis = len(found.shape) - (1 if is_vector else 2)
        both = tuple(part(found, axis, start, size) for start in (0, size))
    return call.wrapped(both)


def _sorted(call: Call) -> Value:
    """Return numbers, or their places, in NumPy's order: by both parts, NaN behind others."""
    names = ("a", "axis", "kind")
    found = {**dict(zip(names, call.arguments, strict=False)), **call.keywords}
    x, axis = found["a"], found.get("axis", -1)
    extra = [name for name in found if name not in (*names, "stable")]
    if not isinstance(x, Tensor) or x.rank is None or not isinstance(axis, int | None) or extra:
        return NotImplemented
    if not call.name.startswith("numpy."):  # PyTorch has no order of them
        return NotImplemented
    with interpreting(call.core.emit):
        pair = call.pair(x)
        pair = pair[0], imaginary(pair)
        if axis is None:
            pair, axis = tuple(op("Reshape", y, [-1]) for y in pair), 0
        axis %= max(len(pair[0].shape), 1)
        real_unknown, unknown = (cast(op("IsNaN", y), y.dtype) for y in pair)
        keys = (pair[1], pair[0], add(mul(real_unknown, 2), unknown))
        stacked = op("Concat", *(op("Unsqueeze", key, [0]) for key in keys), axis=0)
        places = ordering.sorted_by_several(stacked, len(keys), axis)
        if call.last == "argsort":
            return places
        made = tuple(op("GatherElements", y, places, axis=axis) for y in pair)
    return call.wrapped(made)


def is_complex(value: Value) -> bool:
    """Whether a value is complex, or has an item that is."""
    if isinstance(value, list | tuple):
        return any(map(is_complex, value))
    if isinstance(value, Tensor):
        return value.dtype in COMPLEX
    return isinstance(value, complex)


def flat(values: Sequence[Value]) -> list[Value]:
    """Return the items of nested lists in one."""
    return [y for x in values for y in (flat(x) if isinstance(x, list | tuple) else [x])]


# By the last part of the name.
FORMS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(_LINEAR, _linear),
    **dict.fromkeys((*_MATRIX_PRODUCTS, *_OF_CONJUGATES), _bilinear),
    **dict.fromkeys(_OF_TRUTH, _of_truth),
    **dict.fromkeys(("var", "std"), _variance),
    **dict.fromkeys(("isclose", "allclose"), _are_close),
    **dict.fromkeys(("prod", "cumprod"), _product),
    **dict.fromkeys(("inv", "solve"), _solved),
    **dict.fromkeys(("sort", "argsort"), _sorted),
    **dict.fromkeys(("cpu", "cuda"), lambda call: call.arguments[0]),
    "norm": _norm,
}

# By the whole name.
WHOLE = dict.fromkeys(("torch.equal", "torch.Tensor.equal"), _are_equal)

__all__ = ["FORMS", "WHOLE", "Call", "flat", "is_complex"]
