"""Results of branches whose sizes the branches find in the data.

Each branch leaves its values where its kernels write them, and their sizes beside them. Behind both,
the sizes are those that the branch has left; there the results have their memory, and the values of
the branch that was taken are brought to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.control import Branch, Mark
from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Body, Kernel, Pointer
from hagane.native.kernels.tensor import Tensor, row_major
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import Place, find_sizes
from hagane.native.lowering.state import Lowering
from hagane.native.rules.control.bodies import Pointers, emit_control, result_of, single
from hagane.symbolic import Dim

INT64 = np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class FoundSizes:
    """Sizes of the results of an If that its branches find.

    Attributes:
        names: Each size behind the If, and what it is in each branch.
        place: Where the branch that is taken leaves them.
    """

    names: Mapping[Dim, tuple[Dim, ...]]
    place: Tensor

    @classmethod
    def of(cls, low: Lowering, names: Mapping[Dim, tuple[Dim, ...]]) -> FoundSizes:
        """Return the sizes, with a place for them."""
        return cls(names, low.recorder.new("sizes of the branch", INT64, (len(names),)))

    def has(self, value: ir.Value, low: Lowering) -> bool:
        """Whether a result has such a size."""
        return any(dim in self.names for dim in low.facts.shape(value))

    def leave(self, which: int) -> Callable[[Sequence[Tensor]], Kernel]:
        """Return what makes the last kernel of a branch, of the values that it leaves."""

        def kernel(values: Sequence[Tensor]) -> Kernel:
            body = Body()
            out = body.raw(self.place.buffer, written=True, ctype="int64_t")
            for i, dims in enumerate(self.names.values()):
                body.add(f"{out}[{i}] = {body.size(dims[which])};")
            at = (value.offset * value.dtype.itemsize for value in values)
            kept = (Pointer(v.buffer, o, False) for v, o in zip(values, at, strict=True))
            return Kernel(
                "sizes of the branch", body.code(), (*body.pointers, *kept), tuple(body.sizes), 1
            )

        return kernel

    def take(
        self,
        low: Lowering,
        node: ir.Node,
        left: Sequence[Sequence[Tensor]],
    ) -> None:
        """Bring the values that the branches leave to the results.

        Args:
            low: The state of lowering.
            node: The If, behind whose kernels this is.
            left: Of each branch, the values with such sizes, in the order of the results.
        """
        places = [(dim, Place(self.place, i)) for i, dim in enumerate(self.names)]
        find_sizes(low, node, places)
        results = [value for value in node.outputs if self.has(value, low)]
        targets = [result_of(low, value) for value in results]
        (condition,) = node.inputs
        assert condition is not None
        pointers = Pointers()
        branch = Branch(pointers.add(single(low, condition, "bool")))
        for target in targets:
            pointers.add(target, written=True)
        emit_control(low, node, branch, pointers.found)
        for mark, values in zip((Mark.OTHERWISE, Mark.END), left, strict=True):
            for value, target in zip(values, targets, strict=True):
                if value.dtype != target.dtype:
                    raise NotNative("its branches give different types")
                # (Its sizes are those of the result, in other names.)
                shape = target.shape
                source = Tensor(value.buffer, value.dtype, shape, row_major(shape), value.offset)
                emit_copy(low.recorder, source, target)
            emit_control(low, node, mark, ())
        for result, target in zip(results, targets, strict=True):
            low.forms[result] = target
