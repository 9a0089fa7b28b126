"""Tables that know which memory the tensors of a program share, and write it for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.complex.memory import COMPLEX
from hagane.frontends.libraries.memory.seeing import seen_as
from hagane.frontends.libraries.memory.viewing import (
    COPYING_WHERE_NEEDED,
    Put,
    is_view,
    put_back,
    same,
)
from hagane.frontends.libraries.memory.writing import (
    Into,
    check_handed_on,
    check_writable,
    copied,
    rename,
    tensors_in,
    unrecorded,
    write,
)
from hagane.frontends.libraries.memory.written import written
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import (
    ARRAY,
    base_of,
    lies_in_order,
    memory_of,
    note_contiguous,
    note_in_order,
    note_reshaped,
    own,
    share,
    sources_of_order,
)
from hagane.frontends.python.values.values import (
    DType,
    Host,
    ListRef,
    Tensor,
    Value,
)

# Functions that return the tensor itself if its elements lie in order.
_CONTIGUOUS = (
    "torch.Tensor.contiguous", "torch.ravel", "torch.Tensor.ravel", "numpy.ascontiguousarray",
    "numpy.ravel", "numpy.ndarray.ravel",
)  # fmt: skip
# Functions that return the tensor itself where they change nothing, and that are no views.
_ITSELF = frozenset(
    f"torch.{room}{name}"
    for room in ("", "nn.functional.")
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                 "feature_dropout", "feature_alpha_dropout")
) | {"torch.Tensor.sum_to_size"}  # fmt: skip
# Functions of NumPy that return arrays without axes, where most others return scalars.
_ARRAY_MAKERS = frozenset(
    ("array", "asarray", "asanyarray", "ascontiguousarray", "copy", "zeros", "ones", "empty",
     "full", "zeros_like", "ones_like", "empty_like", "full_like", "reshape", "squeeze", "ravel",
     "transpose", "broadcast_to", "view", "astype", "where", "tensordot", "select", "imag",
     "permute_dims", "moveaxis", "resize", "roll", "real_if_close", "isin", "cov", "i0",
     "broadcast_arrays", "asarray_chkfinite", "require", "lib.stride_tricks.as_strided")
)  # fmt: skip


class SharingTables(LibraryTables):
    """The tables of all libraries, with the views that the program has taken."""

    def __init__(self) -> None:
        # Views that indices took, with the whole and the index; and others, with the way back.
        self._parts: dict[ir.Value, tuple[Tensor, Value]] = {}
        self._views: dict[ir.Value, tuple[Tensor, Put]] = {}
        # The memory of which there are views if it lies in order, and the values that decide it.
        self._in_order: dict[ir.Value, set[ir.Value]] = {}
        self._arrays: set[ir.Value] = set()  # NumPy's arrays without axes, which are no scalars

    def writes(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> bool:
        """Whether a call changes the content of a tensor of a graph."""
        table = self.table_of(name)
        handler = None if table is None else table.functions.get(name)
        return any(True for _ in written(core, name, handler, arguments, keywords))

    def _noted_view(self, core: Core, name: str, whole: Value, made: Value) -> Value:
        """Note how a view that a function returned is written back, or that it may be a copy."""
        if isinstance(made, tuple) and isinstance(whole, Tensor) and type(made) is tuple:
            return tuple(self._noted_view(core, name, whole, part) for part in made)
        if isinstance(made, ListRef) and isinstance(whole, Tensor):
            if isinstance(parts := core.heap[made], tuple):
                core.heap[made] = self._noted_view(core, name, whole, parts)
            return made
        copies: bool | None = None
        if isinstance(whole, Tensor) and isinstance(made, Tensor):
            copies = self._certainly_copies(core, name, whole, made)
            if copies:
                made = copied(core, made, whole)
                note_in_order(made.value)
                return made
            if copies is None and made.value is whole.value:
                made = replace(made, value=core.op("Identity", made).value)
                note_contiguous(made.value)
            if name.rpartition(".")[2] in COPYING_WHERE_NEEDED and core.emit.builds:
                order = self._in_order.setdefault(base_of(whole.value), set())
                order |= sources_of_order(whole.value)
        put = put_back(name, whole, made, lambda: core.emit.base_of(whole), copies)
        if put is not None:
            self._views[made.value] = whole, put
        elif not isinstance(whole, Tensor) or not isinstance(made, Tensor):
            return made
        elif made.value is not whole.value:
            if not is_view(name):
                return copied(core, made, None)
            note_reshaped(made.value, whole.value)
        elif name.startswith(("torch.", "numpy.")) and not (is_view(name) or name in _ITSELF):
            return copied(core, made, whole)
        return self._shared(core, whole, made)

    def _certainly_copies(self, core: Core, name: str, whole: Tensor, made: Tensor) -> bool | None:
        """Whether a function that copies where it has to does; None where that is not known."""
        orders = name in _CONTIGUOUS
        if not orders and name.rpartition(".")[2] not in COPYING_WHERE_NEEDED:
            return False
        if whole.strides is None or made.shape is None:
            return False if lies_in_order(whole.value) else None
        strides, certain = (None, True) if orders else seen_as(core, whole, made.shape)
        if strides is not None:
            return False if certain else None
        assert whole.shape is not None
        # Of open sizes, some may be 1, and the whole lie in order.
        return True if all(isinstance(n, int) for n in (*whole.shape, *whole.strides)) else None

    def _shared(self, core: Core, whole: Tensor, made: Tensor) -> Tensor:
        """Return a view of known content, which no operator took from the whole, as one of it."""
        if made.known is None or base_of(made.value) is base_of(whole.value):
            return made
        made = replace(made, value=core.op("Identity", made).value)
        own(made.value)
        share(made.value, (whole.value,))
        return made

    def _written(
        self, core: Core, x: Tensor, remedy: str, run: Callable[[], Value],
        *, by_statement: bool = False,
    ) -> Value:  # fmt: skip
        """Give a tensor the content that a function returns.

        A part that was taken by an index is set as an item of the whole: ``x[i].zero_()``, and
        other views are put back into theirs: ``x.t().mul_(2)``.
        """
        core.emit.ordered |= self._in_order.get(base_of(x.value), set())
        if x.dtype in COMPLEX:
            self.complex_parts.check_writable(core, x, remedy)
            check_writable(core, x, remedy, by_statement=by_statement)
            check_handed_on(core, x)
            fresh = self.complex_parts.renewed(core, x, run())
            rename(core, {x.value: fresh})
            return fresh
        if x.value in self._views:
            whole, put = self._views[x.value]
            base = core.emit.base_of(whole)
            view = run()
            if not isinstance(view, Tensor) or view.dtype != x.dtype or view.shape != x.shape:
                return write(core, x, view)  # which is refused
            if put is same and core.emit.training is not None and core.emit.gradients_from(view)[0]:
                core.fail(
                    "capture",
                    "what is computed from parameters is written into a tensor that was detached, "
                    "which no compiled step follows; write into a copy, .detach().clone()",
                )
            now = self._written(core, whole, remedy, lambda: put(core, whole, view))
            assert isinstance(now, Tensor)
            old = whole.value if base is base_of(whole.value) else base  # of the program's arrays
            value = core.emit.again(x.value, old, now.value)
            made = core.emit.tensors[value] = replace(x, value=value, known=None)
            self._views[value] = now, put
            return made
        if x.value not in self._parts:
            check_writable(core, x, remedy, by_statement=by_statement)
            renewed: dict[ir.Value, Tensor] = {}
            views: dict[ir.Value, ir.Value] = {}
            made = write(
                core, x, run(), renewed, views,
                lambda view, now: self.view_of(core, view, x, now, views)
                if self._is_known_view(view, x) else None,
            )  # fmt: skip
            renew = partial(self._renewed, core, x, made, renewed, views)
            for old, fresh in renewed.items():
                if old in self._arrays:
                    self._arrays.add(fresh.value)
                if old in self._views:
                    whole, put = self._views[old]
                    self._views[fresh.value] = renew(whole), put
                elif old in self._parts:
                    whole, index = self._parts[old]
                    self._parts[fresh.value] = renew(whole), index
            return made
        (whole, index), item = self._parts[x.value], run()
        new = self._written(core, whole, remedy, lambda: self._with(core, whole, index, item))
        return self.tensor_item(core, new, index)

    def _renewed(
        self, core: Core, x: Tensor, made: Value, renewed: Mapping[ir.Value, Tensor],
        views: dict[ir.Value, ir.Value], view: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the tensor that stands for a view of one that was written, named or not."""
        if view.value in renewed or base_of(view.value) is not x.value:
            return renewed.get(view.value, view)
        assert isinstance(made, Tensor)
        return self.view_of(core, view, x, made, views)

    def _is_known_view(self, view: Tensor, whole: Tensor) -> bool:
        """Whether a tensor was taken from another one by views that are all on record."""
        value = view.value
        while value is not whole.value:
            if value in self._parts:
                value = self._parts[value][0].value
            elif value in self._views:
                value = self._views[value][0].value
            else:
                return base_of(value) is whole.value
        return True

    def view_of(
        self, core: Core, view: Tensor, whole: Tensor, now: Tensor,
        views: dict[ir.Value, ir.Value] | None = None,
    ) -> Tensor:  # fmt: skip
        """Return the view of ``now`` that ``view`` is of ``whole``, which may be all of it.

        ``views`` has those that are made already, and takes others.
        """
        if view.value is whole.value:
            return replace(now, kind=view.kind, device=view.device)
        if view.value in self._parts:
            around, index = self._parts[view.value]
            made = self.tensor_item(core, self.view_of(core, around, whole, now, views), index)
            assert isinstance(made, Tensor)
            return made
        if view.value in self._views:
            around, put = self._views[view.value]
            around_now = self.view_of(core, around, whole, now, views)
            value = core.emit.again(view.value, around.value, around_now.value, views)
            self._views[value] = around_now, put
        else:
            value = core.emit.again(view.value, whole.value, now.value, views)
        made = core.emit.tensors[value] = replace(view, value=value, known=None)
        return made

    def set_content(self, core: Core, x: Tensor, value: Value) -> bool:
        """Do ``x.data = value`` where a graph can tell it; whether it was done.

        From then on both would have one memory: no name may hold the value.
        """
        if not isinstance(value, Tensor) or x.dtype in COMPLEX or x.kind != "torch.Tensor":
            return False
        whole = self._views[value.value][0] if value.value in self._views else None
        if whole is not None and whole.value is x.value:  # x.data *= y has changed x already
            return True
        memory = memory_of(value.value)
        held = [t for content in core.heap.contents.values() for t in tensors_in(content)]
        if value.value in self._parts or any(memory & memory_of(t.value) for t in held):
            return False
        self._written(
            core, x, "make a new tensor", lambda: unrecorded(core, x, core.op("Identity", value))
        )
        return True

    def _into(
        self, core: Core, name: str, into: Into,
        run: Callable[[Sequence[Value], Mapping[str, Value]], Value],
    ) -> Value:  # fmt: skip
        """Write the result of a function into the array given as ``out``, where ``where`` holds."""

        def made() -> Value:
            found = self._like(core, run(into.arguments, into.keywords), into.target)
            if into.where is True:
                return found
            place = name.partition(".")[0] + ".where"
            found = self.call(core, place, [into.where, found, into.target], {})
            return self._like(core, found, into.target)

        now = self._written(core, into.target, "use its result, and leave out 'out'", made)
        if isinstance(now, Tensor) and now.kind == "numpy.ndarray":
            self._arrays.add(now.value)  # no scalar, though it may have no axes
        return now

    def _copied_to(
        self, core: Core, dst: Tensor, src: Value, casting: Value = "same_kind",
        where: Value = True,
    ) -> None:  # fmt: skip
        """Write an array into another one where a condition holds (``numpy.copyto``)."""
        array = "numpy.asarray"
        whole = dst.dtype.is_integer() and isinstance(src, int)
        given = self.call(core, array, [src], {"dtype": DType(dst.dtype, "numpy")} if whole else {})
        assert isinstance(given, Tensor)
        weak = isinstance(src, int | float) and not dst.dtype.is_integer()
        if not weak and not np.can_cast(given.dtype.numpy(), dst.dtype.numpy(), casting):
            core.fail(
                "dtype-mismatch",
                f"TypeError: Cannot cast {core.show(given)} to {core.show(dst)} according to the "
                f"rule '{casting}'",
                remedy="write np.copyto(x, y, casting='unsafe'), or x[...] = y",
            )
        target = Into(dst, where, [given], {})
        self._into(core, "numpy.copyto", target, lambda a, k: self.call(core, array, a, k))

    def _on_diagonal(self, core: Core, a: Value, val: Value, wrap: Value = False) -> None:
        """Write a number on the diagonal of a matrix (``numpy.fill_diagonal``)."""
        shape = a.shape if isinstance(a, Tensor) else None
        alone = val.shape == () if isinstance(val, Tensor) else not isinstance(val, tuple | ListRef)
        if shape is None or len(shape) != 2 or not alone or wrap is not False:
            raise CheckError(
                "capture",
                "'numpy.fill_diagonal' is captured for a matrix and one number, without wrap; got "
                f"{core.show(a)} and {core.show(val)}; write a[i, i] = values with "
                "i = np.arange(len(values))",
            )
        where = self.call(core, "numpy.eye", shape, {"dtype": Host(bool)})
        self._copied_to(core, a, val, where=where)

    def _like(self, core: Core, value: Value, x: Tensor) -> Tensor:
        """Return a tensor with the element type and shape of another one."""
        for name in ("torch.Tensor.type_as", "torch.Tensor.expand_as"):
            value = self.call_method(core, name, [value, x], {})
        made: Tensor = core.op("Identity", value)
        return made

    def _with(self, core: Core, value: Tensor, index: Value, item: Value) -> Tensor:
        """Return a tensor with another item."""
        if value.dtype in COMPLEX:
            made = self.complex_parts.with_item(
                core, value, item, lambda part, item: self._with(core, part, index, item)
            )
            assert isinstance(made, Tensor)
            return made
        made = core.op("Identity", value) if value.known is not None else replace(value)
        made.known = None
        super().set_tensor_item(core, made, index, item)
        copied(core, made, None)
        return made

    def is_scalar(self, value: Value) -> bool:
        """Whether a value is a scalar of NumPy, which no statement changes."""
        if not super().is_scalar(value):
            return False
        assert isinstance(value, Tensor)
        memory = {value.value, *memory_of(value.value)}
        return not self._arrays & memory and not any(ARRAY in one.meta for one in memory)

    def _noted(self, name: str, made: Value, given: Value) -> Value:
        """Return a result; arrays without axes are noted, as NumPy returns scalars elsewhere.

        Args:
            name: Of the function or method.
            made: The result.
            given: The first argument; of a scalar, methods and views are scalars.
        """
        last = name.removeprefix("numpy.").removeprefix("ndarray.")
        if last not in _ARRAY_MAKERS:
            return made
        if isinstance(made, tuple):
            for part in made:
                self._noted(name, part, part)
        if not isinstance(made, Tensor) or made.shape != ():
            return made
        keeps = name.startswith("numpy.ndarray.")
        keeps = keeps or last in ("reshape", "squeeze", "transpose", "imag")
        if not (keeps and self.is_scalar(given)):
            self._arrays.add(made.value)
        return made


__all__ = ["SharingTables"]
