"""Complex tensors in a graph: two real ones, since ONNX's operators compute real numbers.

A function that is linear over the reals is that function of both parts; products, magnitudes and
transforms have formulas in ``ops/functions/sums/spectra.py``. A complex tensor itself is no input
or result of a graph: its parts are, by ``torch.view_as_real``, ``.real`` and ``.imag``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.complex.forms import FORMS, WHOLE, Call, flat, is_complex
from hagane.frontends.libraries.complex.memory import COMPLEX, SharedMemory
from hagane.frontends.libraries.complex.rules import (
    CONVERTING,
    FILLING,
    MAKING,
    RULES,
    cast,
    operands,
)
from hagane.frontends.libraries.complex.transforms import (
    FFT,
    ISTFT,
    STFT,
    frames,
    signal_of,
    transformed,
)
from hagane.frontends.libraries.memory.viewing import is_view
from hagane.frontends.libraries.memory.writing import fitting
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import PART
from hagane.frontends.python.values.values import (
    DType,
    Host,
    Real,
    Tensor,
    Value,
    is_plain,
)
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.numbers.elementary import add, mul, sub
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors.parts import element
from hagane.ops.functions.tensors.shapes import expand_like, zeros_like

_WITHOUT_FORMULA = (
    "a complex tensor is two real ones in a graph, and no formula tells what becomes of these "
    "here; use torch.view_as_real, or .real and .imag"
)
_NAMES = {"complex64": ir.DataType.COMPLEX64, "complex128": ir.DataType.COMPLEX128}
_NAMES |= {"complex": ir.DataType.COMPLEX128, "c8": ir.DataType.COMPLEX64}
_OF = {real: whole for whole, real in COMPLEX.items()}
Run = Callable[[Sequence[Value], Mapping[str, Value]], Value]
Arguments = tuple[Sequence[Value], Mapping[str, Value]]

_SCALED = ("add", "sub", "subtract")  # whose second operand has a factor, alpha


class ComplexParts:
    """The real and imaginary parts of the complex tensors of one graph."""

    def __init__(self) -> None:
        self._pairs: dict[ir.Value, Pair] = {}
        self._memory = SharedMemory()
        self._numbers: set[ir.Value] = set()  # Python's, no scalars of NumPy

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
        own = " " in name or name.endswith(".conjugate")  # Python's numbers have it, too
        own = own and all(not isinstance(x, Tensor) or self.is_number(x) for x in arguments)
        if own and isinstance(found, Tensor) and found.dtype in COMPLEX:
            self._numbers.add(found.value)
        if found is not NotImplemented and is_view(name.replace(" ", ".")) and arguments:
            self._note_shared(arguments[0], found)
        return found

    def _note_shared(self, whole: Value, found: Value) -> None:
        """Note that tensors may lie in the memory of another one."""
        if isinstance(whole, Tensor):
            parts = [x.value for x in self._pairs.get(whole.value, ()) if isinstance(x, Tensor)]
            self._memory.note(whole, [x for x in flat([found]) if isinstance(x, Tensor)], parts)

    def check_writable(self, core: Core, x: Tensor, remedy: str) -> None:
        """Refuse to write a tensor whose memory another one may have.

        Raises:
            CheckError: It is a part, the program has an array of it, or names hold parts of it.
        """
        is_kept = core.emit.real_pair(x) is not None and PART not in x.value.meta
        if is_kept or self._memory.is_shared(core, x):
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
        found = self.wrapped(core, self.pair(core, made), x.kind, None)
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
        parts = self.pair(core, x)
        core.emit.kind = x.kind
        with interpreting(core.emit):
            imaginary = zeros_like(parts[0]) if parts[1] is None else parts[1]
        items = self.pair(core, item)
        if isinstance(item, int | float):
            items = float(item), None
        pair = put(parts[0], items[0]), put(imaginary, 0.0 if items[1] is None else items[1])
        return self.wrapped(core, pair, x.kind, None)

    def _filled(
        self, core: Core, last: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        again: Run,
    ) -> Value:  # fmt: skip
        """Return a new complex tensor of one real number; ``NotImplemented`` if it is real."""
        given = [*arguments, *keywords.values()]
        dtype = next(filter(None, map(_asked_dtype, given)), None)
        like = arguments[0] if last.endswith("_like") or last.startswith("new_") else None
        said = keywords.get("dtype") is not None or (last.endswith("_like") and len(arguments) > 1)
        if not said and isinstance(like, Tensor):
            dtype = like.dtype
        if dtype not in COMPLEX:
            return NotImplemented
        library = next((x.library for x in given if isinstance(x, DType)), "numpy")
        real = DType(COMPLEX[dtype], library)
        changed = [real if _asked_dtype(x) else x for x in arguments]
        named = {name: real if _asked_dtype(x) else x for name, x in keywords.items()}
        if like is not None:
            changed[0] = self.pair(core, like)[0]
            named["dtype"] = real
        made = again(changed, named)
        return self.wrapped(core, (made, None), made.kind, None)

    def _result(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        typed: Run, again: Run,
    ) -> Value:  # fmt: skip
        if not core.emit.builds:
            return NotImplemented
        last = name.replace(" ", ".").rpartition(".")[2]
        transforms = last in FFT and ".fft." in name
        given = [*arguments, *keywords.values()]
        if last in FILLING:
            return self._filled(core, last, arguments, keywords, again)
        concerned = any(map(is_complex, given))
        if concerned and name in _SPACED:
            return _spaced(core, name, arguments, keywords)
        own = "numpy.ndarray" if name.startswith("numpy.") else "torch.Tensor"
        if (transforms and own == "numpy.ndarray") or (concerned and last in RULES):
            core.emit.kind = own
            arguments = [*_as_arrays(core, arguments[:1]), *arguments[1:]]
        if last in CONVERTING and (concerned or any(map(_asked_dtype, given))):
            return self._converted(core, name, arguments, keywords, typed)
        if not (concerned or transforms or name in MAKING):
            return NotImplemented
        kind = next((x.kind for x in flat(given) if isinstance(x, Tensor)), own)
        core.emit.kind = kind
        if transforms or name in MAKING:
            promised = typed(arguments, keywords)
            if not isinstance(promised, Tensor):
                return promised
            with interpreting(core.emit):
                made = self._made(core, last, promised, arguments, keywords)
            return self.wrapped(core, made, kind, promised)
        rule = RULES.get(last)
        if rule is not None and name not in WHOLE:
            promised = typed(arguments, keywords)
            to = (
                COMPLEX.get(promised.dtype, promised.dtype)
                if isinstance(promised, Tensor)
                else None
            )
            scale = keywords.get("alpha", 1) if last in _SCALED else 1
            rest = {k: v for k, v in keywords.items() if k != "alpha" or last not in _SCALED}
            given = [*arguments, *operands(name, rest)]
            with interpreting(core.emit):
                pairs = [self.pair(core, x) for x in given]
                if to in _OF:
                    if not any(isinstance(x, Tensor) for x in arguments):
                        pairs = [(_array(a, to), _array(b, to)) for a, b in pairs]
                    pairs = [(cast(a, to), cast(b, to)) for a, b in pairs]
                if scale != 1:
                    pairs[1] = RULES["mul"](pairs[1], self.pair(core, scale))
                found = rule(*pairs)
            return self.wrapped(core, found, kind, None)
        form = WHOLE.get(name, FORMS.get(last))
        if form is None:
            return NotImplemented
        return form(Call(self, core, name, arguments, keywords, again, kind))

    def _converted(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        typed: Run,
    ) -> Value:  # fmt: skip
        """Return a tensor as a complex one, or in another precision."""
        x = arguments[0]
        made = typed(arguments, keywords)
        if not isinstance(made, Tensor) or not isinstance(x, Tensor):
            return NotImplemented
        if made.dtype not in COMPLEX:
            if is_complex(x):
                raise CheckError(
                    "capture", f"'{name}' drops the imaginary parts; take x.real before"
                )
            return NotImplemented
        if made.value is x.value:
            return x
        to = COMPLEX[made.dtype]
        with interpreting(core.emit):
            real, imaginary = (None if y is None else op("Cast", y, to=to)
                               for y in self.pair(core, x))  # fmt: skip
        return self.wrapped(core, (real, imaginary), x.kind, None)

    def item(self, core: Core, value: Tensor, again: Callable[[Tensor], Value]) -> Value:
        """Return an item or a slice of a complex tensor."""
        pair = tuple(None if x is None else again(x) for x in self.pair(core, value))
        found = self.wrapped(core, pair, value.kind, None)
        self._note_shared(value, found)
        return found

    def _made(
        self, core: Core, last: str, promised: Tensor, arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Any:  # fmt: skip
        """Return the parts of the result of a function that makes complex numbers, or ends them."""
        to = COMPLEX.get(promised.dtype, promised.dtype)
        if last in FFT:
            return transformed(core, partial(self.pair, core), last, to, arguments, keywords)
        if last in ("stft", "istft"):
            names, rule = (STFT, frames) if last == "stft" else (ISTFT, signal_of)
            found = {**dict(zip(names, arguments, strict=False)), **keywords}
            return rule(partial(self.pair, core), promised, to, **found)
        if last in ("cfloat", "cdouble"):
            real, turn = self.pair(core, arguments[0])
            return cast(real, to), None if turn is None else cast(turn, to)
        real, *rest = (cast(self.pair(core, x)[0], to) for x in (*arguments, *keywords.values()))
        if last == "view_as_complex":
            rank = len(real.shape)
            return element(real, rank - 1, 0), element(real, rank - 1, 1)
        if last == "polar":
            return mul(real, op("Cos", rest[0])), mul(real, op("Sin", rest[0]))
        return expand_like(real, rest[0]), expand_like(rest[0], real)

    # Tensors and their parts.

    def pair(self, core: Core, value: Value) -> Pair:
        """Return the parts of a tensor or a number."""
        if isinstance(value, Real):
            return core.emit.real_tensor(value), None
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
        if value.known is not None and value.known.dtype.kind == "c":
            known = value.known.astype(value.dtype.numpy())
            with core.emit.at_root():
                return core.emit.constant(known.real.copy()), core.emit.constant(known.imag.copy())
        real = core.emit.real_pair(value)
        if real is None:
            raise CheckError(
                "capture",
                "a complex tensor whose parts no operator of the graph computes: give them in a "
                "last axis of 2, and use torch.view_as_complex",
            )
        with core.emit.at_root(), interpreting(core.emit):
            return self._divided(real)

    @staticmethod
    def _divided(real: Any) -> Pair:
        return element(real, real.rank - 1, 0), element(real, real.rank - 1, 1)

    def joined(self, core: Core, x: Tensor) -> Tensor:
        """Return the parts of a complex tensor in a last axis of 2."""
        pair = self.pair(core, x)
        core.emit.kind = x.kind
        with interpreting(core.emit):
            made: Tensor = RULES["view_as_real"](pair)
        return made

    def divided(self, core: Core, real: Tensor, kind: str) -> Tensor:
        """Return the complex tensor whose parts lie in a last axis of 2."""
        with interpreting(core.emit):
            pair = self._divided(real)
        made = self.wrapped(core, pair, kind, None)
        assert isinstance(made, Tensor)
        return made

    def number(self, core: Core, real: Value, imaginary: Value) -> Value:
        """Return ``real + imaginary * 1j`` of two numbers, of which the data decide one."""
        core.emit.kind = "numpy.ndarray"
        if not core.emit.builds:
            return core.emit.new(ir.DataType.COMPLEX128, (), kind="numpy.ndarray")
        parts = [
            (self.pair(core, x)) if isinstance(x, Tensor | complex)
            else (core.emit.real_tensor(x), None)
            for x in (real, imaginary)
        ]  # fmt: skip
        double = ir.DataType.DOUBLE
        with interpreting(core.emit):
            (a, b), (c, d) = ([cast(_array(y, double), double) for y in pair] for pair in parts)
            found = (a if d is None else sub(a, d)), (c if b is None else add(c, b))
        made = self.wrapped(core, found, "numpy.ndarray", None)
        if isinstance(made, Tensor):
            self._numbers.add(made.value)
        return made

    def is_number(self, x: Tensor) -> bool:
        """Whether a complex tensor is a number of Python, as ``complex(x, y)`` makes one."""
        return x.value in self._numbers

    def chosen(
        self, core: Core, yes: Tensor, no: Tensor, choose: Callable[[Tensor, Tensor], Value]
    ) -> Tensor:
        """Return one of two complex tensors of one type.

        Args:
            core: The interpreter.
            yes: One.
            no: The other one.
            choose: Returns one of two real tensors.
        """
        core.emit.kind = yes.kind
        pairs = []
        for x in (yes, no):
            pair = self.pair(core, x)
            with interpreting(core.emit):
                pairs.append((pair[0], zeros_like(pair[0]) if pair[1] is None else pair[1]))
        found = tuple(choose(a, b) for a, b in zip(*pairs, strict=True))
        made = self.wrapped(core, found, yes.kind, None)
        assert isinstance(made, Tensor)
        if self.is_number(yes) and self.is_number(no):
            self._numbers.add(made.value)
        return made

    def wrapped(self, core: Core, found: Any, kind: str, promised: Tensor | None) -> Value:
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
        core.emit.explain(made, _WITHOUT_FORMULA)
        self._pairs[made.value] = real, imaginary
        return made


_SPACED = ("numpy.linspace", "numpy.geomspace", "numpy.logspace", "numpy.arange")


def _spaced(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """Return complex numbers between two that are known."""
    if not all(map(is_plain, (*arguments, *keywords.values()))):
        raise CheckError("capture", f"'{name}' of complex numbers that the data decide")
    function = getattr(np, name.rpartition(".")[2])
    core.emit.kind = "numpy.ndarray"
    try:
        return core.emit.constant(function(*arguments, **keywords))
    except (TypeError, ValueError) as error:
        raise CheckError("value", f"{type(error).__name__}: {error}") from None


def _array(part: Any, to: ir.DataType) -> Any:
    """Return a part of a complex number as an array: NumPy's scalars hold their own type."""
    return op("Identity", np.array(part, to.numpy())) if isinstance(part, float) else part


def _as_arrays(core: Core, values: Sequence[Value]) -> list[Value]:
    """Return arguments of NumPy with lists of complex numbers, and of numbers alone, as arrays."""
    made: list[Value] = []
    for value in values:
        numbers = flat([value]) if isinstance(value, list | tuple) else []
        if numbers and all(isinstance(x, int | float | complex) for x in numbers):
            try:
                made.append(core.emit.constant(np.array(value)))
            except ValueError:  # rows of several lengths
                made.append(value)
        else:
            made.append(value)
    return made


def _asked_dtype(value: Value) -> ir.DataType | None:
    """Return the complex type that an argument names; None for any other value."""
    if isinstance(value, DType):
        return value.dtype if value.dtype in COMPLEX else None
    if isinstance(value, str):
        return _NAMES.get(value)
    return ir.DataType.COMPLEX128 if isinstance(value, Host) and value.object is complex else None
