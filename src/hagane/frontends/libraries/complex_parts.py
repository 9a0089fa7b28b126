"""Complex tensors in a graph: two real ones, since ONNX's operators compute real numbers.

A function that is linear over the reals is that function of both parts; products, magnitudes and
transforms have formulas in ``ops/functions/sums/spectra.py``. A complex tensor itself is no input
or result of a graph: its parts are, by ``torch.view_as_real``, ``.real`` and ``.imag``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.complex_memory import COMPLEX, SharedMemory
from hagane.frontends.libraries.complex_rules import RULES, normalised, operands, transform_axes
from hagane.frontends.libraries.viewing import is_view
from hagane.frontends.libraries.writing import fitting
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import DType, Tensor, Value
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.numbers.elementary import add, div, mul, sub
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors.parts import element, part
from hagane.symbolic import Dim, floordiv

RESULT = (
    "a complex tensor is two real ones in a graph, and cannot be a result or the state of a loop; "
    "use torch.view_as_real, or .real and .imag"
)
_OF = {real: whole for whole, real in COMPLEX.items()}
Run = Callable[[Sequence[Value], Mapping[str, Value]], Value]
Arguments = tuple[Sequence[Value], Mapping[str, Value]]

# Linear over the reals: the function of both parts.
_LINEAR = frozenset({
    "view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute",
    "movedim", "moveaxis", "swapaxes", "swapdims", "t", "mT", "T", "ravel", "contiguous", "clone",
    "copy", "detach", "expand", "expand_as", "expand_dims", "broadcast_to", "repeat", "tile",
    "repeat_interleave", "roll", "flip", "cat", "concat", "concatenate", "stack", "hstack",
    "vstack", "split", "tensor_split", "chunk", "unbind", "select", "narrow", "index_select",
    "gather", "take_along_dim", "sum", "mean", "cumsum", "diff", "tril", "triu", "diagonal",
    "where", "neg", "negative", "positive", "item",
})  # fmt: skip
# Functions that fill a new tensor.
_FILLING = frozenset(
    f"{start}{name}{end}"
    for name in ("zeros", "ones", "empty")
    for start, end in (("", ""), ("", "_like"), ("new_", ""))
)
# Of these, real operands count as complex ones.
_JOINING = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "where"})
_MATRIX_PRODUCTS = frozenset({"matmul", "bmm", "mm", "dot", "einsum"})
_FFT = {
    f"{kind}fft{count}": (kind, count) for kind in ("", "i", "r", "ir") for count in ("", "2", "n")
}
_MAKING = frozenset(
    ("torch.complex", "torch.polar", "torch.view_as_complex", "torch.stft", "torch.Tensor.stft",
     "torch.istft", "torch.Tensor.istft", "torch.Tensor.cfloat", "torch.Tensor.cdouble")
)  # fmt: skip


class ComplexParts:
    """The real and imaginary parts of the complex tensors of one graph."""

    def __init__(self) -> None:
        self._pairs: dict[ir.Value, Pair] = {}
        self._memory = SharedMemory()

    def result(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        typed: Run, again: Run,
    ) -> Value:  # fmt: skip
        """Return the result of a function of the library; ``NotImplemented`` if all is real.

        Args:
            core: The interpreter.
            name: Of the function, or of a tensor's class and the operator.
            arguments: Of the call.
            keywords: Of the call.
            typed: Gives the type of the result.
            again: Calls the function with real arguments.

        Raises:
            CheckError: The function has no formula here.
        """
        found = self._result(core, name, arguments, keywords, typed, again)
        if found is not NotImplemented and is_view(name.replace(" ", ".")) and arguments:
            self._note_shared(arguments[0], found)
        return found

    def _note_shared(self, whole: Value, found: Value) -> None:
        """Note that tensors may lie in the memory of another one."""
        if isinstance(whole, Tensor):
            parts = [x.value for x in self._pairs.get(whole.value, ()) if isinstance(x, Tensor)]
            self._memory.note(whole, [x for x in _flat([found]) if isinstance(x, Tensor)], parts)

    def check_writable(self, core: Core, x: Tensor, remedy: str) -> None:
        """Refuse to write a tensor whose memory another one may have.

        Raises:
            CheckError: It is a part, the program has an array of it, or names hold parts of it.
        """
        if core.emit.real_pair(x) is not None or self._memory.is_shared(core, x):
            raise CheckError(
                "capture",
                "a complex tensor changes in place that shares its memory with another one, such "
                f"as .real, a part or a view; {remedy}",
            )

    def renewed(self, core: Core, x: Tensor, made: Value) -> Tensor:
        """Return the new content of a complex tensor as a tensor that no other name has.

        Raises:
            CheckError: It is of another type or shape.
        """
        made = fitting(core, x, made)
        found = self._wrapped(core, self._pair(core, made), x.kind, None)
        assert isinstance(found, Tensor)
        return found

    def with_item(
        self, core: Core, x: Tensor, item: Value, put: Callable[[Tensor, Value], Tensor]
    ) -> Value:
        """Return a complex tensor with other items.

        Args:
            core: The interpreter.
            x: The tensor.
            item: The items, complex or real.
            put: Returns a real tensor with other items.
        """
        parts = self._pair(core, x)
        core.emit.kind = x.kind
        with interpreting(core.emit):
            imaginary = mul(parts[0], 0) if parts[1] is None else parts[1]
        items = self._pair(core, item)
        if isinstance(item, int | float):
            items = float(item), None
        pair = put(parts[0], items[0]), put(imaginary, 0.0 if items[1] is None else items[1])
        return self._wrapped(core, pair, x.kind, None)

    def _filled(
        self, core: Core, last: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        again: Run,
    ) -> Value:  # fmt: skip
        """Return a new complex tensor of one real number; ``NotImplemented`` if it is real."""
        given = [*arguments, *keywords.values()]
        dtype = next((x.dtype for x in given if isinstance(x, DType)), None)
        like = arguments[0] if last.endswith("_like") or last.startswith("new_") else None
        if dtype is None and isinstance(like, Tensor):
            dtype = like.dtype
        if dtype not in COMPLEX:
            return NotImplemented
        real = DType(COMPLEX[dtype])
        changed = [real if isinstance(x, DType) else x for x in arguments]
        named = {name: real if isinstance(x, DType) else x for name, x in keywords.items()}
        if like is not None:
            changed[0] = self._pair(core, like)[0]
            named["dtype"] = real
        made = again(changed, named)
        return self._wrapped(core, (made, None), made.kind, None)

    def _result(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        typed: Run, again: Run,
    ) -> Value:  # fmt: skip
        if not core.emit.builds:
            return NotImplemented
        last = name.replace(" ", ".").rpartition(".")[2]
        transforms = last in _FFT and ".fft." in name
        given = [*arguments, *keywords.values()]
        if last in _FILLING:
            return self._filled(core, last, arguments, keywords, again)
        concerned = any(map(_is_complex, given))
        if not (concerned or transforms or name in _MAKING):
            return NotImplemented
        own = "numpy.ndarray" if name.startswith("numpy.") else "torch.Tensor"
        kind = next((x.kind for x in _flat(given) if isinstance(x, Tensor)), own)
        core.emit.kind = kind
        if transforms or name in _MAKING:
            promised = typed(arguments, keywords)
            if not isinstance(promised, Tensor):
                return promised
            with interpreting(core.emit):
                made = self._made(core, last, promised, arguments, keywords)
            return self._wrapped(core, made, kind, promised)
        rule = RULES.get(last)
        if rule is not None:
            promised = typed(arguments, keywords)
            to = (
                COMPLEX.get(promised.dtype, promised.dtype)
                if isinstance(promised, Tensor)
                else None
            )
            given = [*arguments, *operands(name, keywords)]
            with interpreting(core.emit):
                pairs = [self._pair(core, x) for x in given]
                if to in _OF:
                    if not any(isinstance(x, Tensor) for x in arguments):
                        pairs = [(_array(a, to), _array(b, to)) for a, b in pairs]
                    pairs = [(_cast(a, to), _cast(b, to)) for a, b in pairs]
                found = rule(*pairs)
            return self._wrapped(core, found, kind, None)
        if last in _MATRIX_PRODUCTS:
            return self._bilinear(core, arguments, keywords, again, kind)
        if last == "to" or last in ("cpu", "cuda", "type"):
            return self._converted(core, name, arguments, keywords)
        if last in _LINEAR:
            return self._linear(core, last, arguments, keywords, again, kind)
        return NotImplemented

    def _converted(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return a complex tensor on a device, or in another precision."""
        dtypes = [x.dtype for x in (*arguments, *keywords.values()) if isinstance(x, DType)]
        x = arguments[0]
        if dtypes and (dtypes[0] not in COMPLEX or not _is_complex(x)):
            return NotImplemented
        if not dtypes or not isinstance(x, Tensor) or dtypes[0] == x.dtype:
            return x
        real, imaginary = self._pair(core, x)
        to = COMPLEX[dtypes[0]]
        with interpreting(core.emit):
            pair = tuple(None if y is None else op("Cast", y, to=to) for y in (real, imaginary))
        return self._wrapped(core, pair, x.kind, None)

    def item(self, core: Core, value: Tensor, again: Callable[[Tensor], Value]) -> Value:
        """Return an item or a slice of a complex tensor."""
        pair = tuple(None if x is None else again(x) for x in self._pair(core, value))
        found = self._wrapped(core, pair, value.kind, None)
        self._note_shared(value, found)
        return found

    # Forms of functions.

    def _linear(
        self, core: Core, last: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        again: Run, kind: str,
    ) -> Value:  # fmt: skip
        joining = last in _JOINING

        def chosen(place: int) -> Value:
            def change(x: Value) -> Value:
                if isinstance(x, list | tuple):
                    return type(x)(map(change, x))
                number = isinstance(x, int | float | complex) and not isinstance(x, bool)
                is_part = _is_complex(x) or (
                    joining and (_is_float(x) or (number and last == "where"))
                )
                if not is_part:
                    return x
                pair = self._pair(core, x)
                if pair[place] is not None:
                    return pair[place]
                return mul(pair[0], 0) if isinstance(pair[0], Tensor) else 0.0

            with interpreting(core.emit):
                changed = tuple(map(change, arguments))
                named = {key: change(x) for key, x in keywords.items()}
            core.emit.kind = kind
            return again(changed, named)

        return self._recombined(core, chosen(0), chosen(1), kind)

    def _recombined(self, core: Core, real: Value, imaginary: Value, kind: str) -> Value:
        if not isinstance(real, Tensor | list | tuple):
            raise CheckError("capture", "complex tensors whose number the data decide")
        if isinstance(real, list | tuple):
            assert isinstance(imaginary, list | tuple)
            pairs = zip(real, imaginary, strict=True)
            return type(real)(self._recombined(core, a, b, kind) for a, b in pairs)
        return self._wrapped(core, (real, imaginary), kind, None)

    def _bilinear(
        self, core: Core, arguments: Sequence[Value], keywords: Mapping[str, Value], again: Run,
        kind: str,
    ) -> Value:  # fmt: skip
        places = [i for i, x in enumerate(arguments) if isinstance(x, Tensor)]
        if len(places) != 2 or keywords:
            raise CheckError("capture", "a product of other than two tensors, some of them complex")

        def product(a: Any, b: Any) -> Any:
            changed = list(arguments)
            changed[places[0]], changed[places[1]] = a, b
            core.emit.kind = kind
            return again(changed, {})

        (ar, ai), (br, bi) = (self._pair(core, arguments[i]) for i in places)
        with interpreting(core.emit):
            real = product(ar, br)
            if ai is not None and bi is not None:
                real = sub(real, product(ai, bi))
            crossed = [product(ar, bi)] if bi is not None else []
            crossed += [product(ai, br)] if ai is not None else []
            found = real, add(*crossed) if crossed else None
        return self._wrapped(core, found, kind, None)

    def _made(
        self, core: Core, last: str, promised: Tensor, arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Any:  # fmt: skip
        """Return the parts of the result of a function that makes complex numbers, or ends them."""
        to = COMPLEX.get(promised.dtype, promised.dtype)
        if last in _FFT:
            return self._transformed(core, last, to, arguments, keywords)
        if last in ("stft", "istft"):
            names = _STFT if last == "stft" else _ISTFT
            found = {**dict(zip(names, arguments, strict=False)), **keywords}
            return (self._frames if last == "stft" else self._signal)(core, promised, to, **found)
        real, *rest = (_cast(self._pair(core, x)[0], to) for x in (*arguments, *keywords.values()))
        if last == "view_as_complex":
            rank = len(real.shape)
            return element(real, rank - 1, 0), element(real, rank - 1, 1)
        if last == "polar":
            return mul(real, op("Cos", rest[0])), mul(real, op("Sin", rest[0]))
        if last in ("cfloat", "cdouble"):
            return real, None
        return add(real, mul(rest[0], 0)), add(rest[0], mul(real, 0))

    def _transformed(
        self, core: Core, last: str, to: ir.DataType, arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Any:  # fmt: skip
        kind, count = _FFT[last]
        names = ("input", "n", "dim", "norm")
        same = {"a": "input", "s": "n", "axis": "dim", "axes": "dim"}
        given = {same.get(key, key): x for key, x in keywords.items()}
        given = {**dict(zip(names, arguments, strict=False)), **given}
        pair = self._pair(core, given["input"])
        pair = _cast(pair[0], to), None if pair[1] is None else _cast(pair[1], to)
        rank = len(pair[0].shape)
        axes, lengths = transform_axes(given.get("dim"), given.get("n"), count, rank)
        sizes: list[Dim] = []
        order = list(zip(axes, lengths, strict=True))
        for axis, length in reversed(order):
            is_last = (axis, length) == order[-1]
            size = pair[0].shape[axis] if length is None else length
            if kind == "r" and is_last:
                pair = spectra.half_transform(pair[0], axis, length)
            elif kind != "ir" or not is_last:
                pair = spectra.transform(pair, axis, length, inverse=kind.startswith("i"))
            else:
                size = 2 * (pair[0].shape[axis] - 1) if length is None else length
            sizes.append(size)
        if kind == "ir":
            axis, size = order[-1][0], sizes[0]
            half = floordiv(size, 2) + 1
            if half != pair[0].shape[axis]:
                real, imaginary = (None if x is None else part(x, axis, 0, half) for x in pair)
                pair = real, imaginary
                if core.emit.differ(half, pair[0].shape[axis]):
                    raise CheckError("capture", f"'{last}' of more elements than the input has")
            pair = spectra.real_from_half(pair, axis, size), None
        return normalised(pair, given.get("norm"), kind.startswith("i"), sizes, to)

    def _frames(
        self, core: Core, promised: Tensor, to: ir.DataType, *, input: Value, n_fft: Value,
        hop_length: Value = None, win_length: Value = None, window: Value = None,
        center: Value = True, pad_mode: Value = "reflect", normalized: Value = False,
        onesided: Value = None, **_: Value,
    ) -> Any:  # fmt: skip
        x = self._pair(core, input)
        if x[1] is not None or not isinstance(n_fft, int):
            raise CheckError("capture", "'stft' of complex numbers, or of a size that is no number")
        signal, flat = x[0], len(x[0].shape) == 1
        signal = op("Unsqueeze", signal, [0]) if flat else signal
        if center:
            half = n_fft // 2
            mode = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}.get(pad_mode)
            if mode is None:
                raise CheckError("capture", f"'stft' with pad_mode='{pad_mode}'")
            signal = op("Pad", signal, [0, half, 0, half], mode=mode)
        step = n_fft // 4 if hop_length is None else hop_length
        factors = self._window(core, window, n_fft, win_length, to)
        pair = spectra.frames(signal, factors, step, onesided=onesided is not False)
        if flat:
            pair = op("Squeeze", pair[0], [0]), op("Squeeze", pair[1], [0])
        return normalised(pair, "ortho" if normalized else None, False, [n_fft], to)

    def _signal(
        self, core: Core, promised: Tensor, to: ir.DataType, *, input: Value, n_fft: Value,
        hop_length: Value = None, win_length: Value = None, window: Value = None,
        center: Value = True, normalized: Value = False, onesided: Value = None,
        length: Value = None, return_complex: Value = False,
    ) -> Any:  # fmt: skip
        if onesided is False or return_complex or not isinstance(n_fft, int):
            raise CheckError(
                "capture", "'istft' of two-sided spectra, or of a size that is no number"
            )
        real, imaginary = self._pair(core, input)
        flat = len(real.shape) == 2
        if flat:
            real, imaginary = (
                None if x is None else op("Unsqueeze", x, [0]) for x in (real, imaginary)
            )
        step = n_fft // 4 if hop_length is None else hop_length
        factors = self._window(core, window, n_fft, win_length, to)
        pair = normalised((real, imaginary), "ortho" if normalized else None, True, [n_fft], to)
        total, weights = spectra.overlapped(pair, factors, n_fft, step)
        assert promised.shape is not None
        start, size = n_fft // 2 if center else 0, promised.shape[-1]
        total, weights = part(total, 1, start, size), part(weights, 1, start, size)
        signal = div(total, weights)
        return (op("Squeeze", signal, [0]) if flat else signal), None

    def _window(self, core: Core, window: Value, size: int, length: Value, to: ir.DataType) -> Any:
        """Return the factors of a window, with zeros on both sides where it is shorter."""
        inner = size if not isinstance(length, int) else length
        if window is None:
            factors: Any = op("Expand", np.ones(1, to.numpy()), [inner])
        else:
            factors = _cast(self._pair(core, window)[0], to)
        left = (size - inner) // 2
        return factors if inner == size else op("Pad", factors, [left, size - inner - left])

    # Tensors and their parts.

    def _pair(self, core: Core, value: Value) -> Pair:
        """Return the parts of a tensor or a number."""
        if not isinstance(value, Tensor):
            number = complex(value) if isinstance(value, complex) else None
            return (value, None) if number is None else (number.real, number.imag)
        if value.dtype not in COMPLEX:
            return value, None
        if value.value not in self._pairs:
            self._pairs[value.value] = self._kept(core, value)
        return self._pairs[value.value]

    def _kept(self, core: Core, value: Tensor) -> Pair:
        """Return the parts of a real array of the program, which share its memory."""
        real = core.emit.real_pair(value)
        if real is None:
            raise CheckError(
                "capture",
                "a complex tensor whose parts no operator of the graph computes: give them in a "
                "last axis of 2, and use torch.view_as_complex",
            )
        with interpreting(core.emit):
            return element(real, real.rank - 1, 0), element(real, real.rank - 1, 1)

    def _wrapped(self, core: Core, found: Any, kind: str, promised: Tensor | None) -> Value:
        """Return parts as a complex tensor, and a result that is real as it is."""
        if not isinstance(found, tuple):
            return found
        real, imaginary = found
        if promised is not None and promised.dtype not in COMPLEX:
            found = real
            if promised.shape is not None and real.shape != promised.shape:
                core.emit.show_sizes(real, promised.shape)
            return found
        made = core.emit.typed("Complex", [], _OF[real.dtype], real.shape)
        if promised is not None and promised.shape is not None:
            for x in (real, imaginary):
                if x is not None and x.shape != promised.shape:
                    core.emit.show_sizes(x, promised.shape)
            made.shape = promised.shape
        made.kind = kind
        core.emit.explain(made, RESULT)
        self._pairs[made.value] = real, imaginary
        return made


_STFT = (
    "input", "n_fft", "hop_length", "win_length", "window", "center", "pad_mode", "normalized",
    "onesided", "return_complex",
)  # fmt: skip
_ISTFT = (
    "input", "n_fft", "hop_length", "win_length", "window", "center", "normalized", "onesided",
    "length", "return_complex",
)  # fmt: skip


def _array(part: Any, to: ir.DataType) -> Any:
    """Return a part of a complex number as an array: NumPy's scalars hold their own type."""
    return op("Identity", np.array(part, to.numpy())) if isinstance(part, float) else part


def _is_complex(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_complex, value))
    if isinstance(value, Tensor):
        return value.dtype in COMPLEX
    return isinstance(value, complex)


def _is_float(value: Value) -> bool:
    return isinstance(value, Tensor) and value.dtype in _OF


def _flat(values: Sequence[Value]) -> list[Value]:
    return [y for x in values for y in (_flat(x) if isinstance(x, list | tuple) else [x])]


def _cast(x: Any, to: ir.DataType) -> Any:
    return op("Cast", x, to=to) if isinstance(x, Tensor) and x.dtype != to else x
