"""Which tensors gradients are recorded of, as far as types tell, and what ``backward`` has freed.

Three answers: yes, no, and not known. Only the first two are told of as errors, so every operation
that is not listed here, and every tensor of which nobody said anything, is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hagane.frontends.python.values.values import Place, Tensor
from hagane.symbolic.term import Term

_SAVING = frozenset(
    ("MatMul", "Gemm", "Conv", "ConvTranspose", "Relu", "Sigmoid", "Tanh", "Exp", "Softmax",
     "LogSoftmax", "BatchNormalization", "LayerNormalization", "LSTM", "GRU", "RNN")
)  # fmt: skip
# Operators through which gradients go to each real operand.
_DIFFERENTIABLE = frozenset(
    ("Abs", "Add", "AveragePool", "Cast", "Clip", "Concat", "Div", "Einsum", "Elu", "Erf", "Expand",
     "Flatten", "Gather", "GatherElements", "Gelu", "GlobalAveragePool", "HardSwish", "Identity",
     "InstanceNormalization", "LeakyRelu", "Log", "MaxPool", "Mul", "Neg", "Pad", "Pow",
     "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Reshape", "Selu", "Slice", "Softplus",
     "Sqrt", "Squeeze", "Sub", "Transpose", "Unsqueeze", *(_SAVING - {"LSTM", "GRU", "RNN"}))
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Freed:
    """How an intermediate value was freed: by which call, from where, on which path."""

    place: Place
    root: ir.Value
    decisions: frozenset[Term]


class Recorded:
    """What a program with types does to gradients.

    Attributes:
        trained: Values of parameters, and of tensors that are told to need gradients.
        leaves: Those of the latter.
        made: Results of layers with parameters.
        apart: Values without gradients: made while none are recorded, or by ``detach``.
        open: Values of which nothing is known, such as results of the program's own functions.
        through: Results of functions through which gradients go to each real operand.
        unready: Keys of objects before the ``__init__`` of their library's class.
        frozen: Whether some parameter may have been told to need no gradient.
    """

    def __init__(self) -> None:
        self.trained: set[ir.Value] = set()
        self.leaves: set[ir.Value] = set()
        self.made: set[ir.Value] = set()
        self.apart: set[ir.Value] = set()
        self.open: set[ir.Value] = set()
        self.through: set[ir.Value] = set()
        self.trusted = 0  # functions that are being followed whose results have gradients
        self.frozen = False
        self.unready: set[int] = set()
        self.own = 0  # functions with a backward of their own that are being followed
        self._freed: dict[ir.Node, Freed] = {}

    def note(self, given: Sequence[Tensor], values: Sequence[ir.Value], *, still: bool) -> None:
        """Note an operation on some tensors that makes some values."""
        for x in given:
            if x.parameter:
                self.trained.add(x.value)
        if still:
            self.apart.update(values)
        if self.trusted:
            self.through.update(values)

    def asks(self, x: Tensor, tensors: Mapping[ir.Value, Tensor]) -> bool | None:
        """Return whether a tensor needs gradients; None where that is not known."""
        if x.parameter:
            return None if self.frozen else True
        if x.value in self.trained and x.value not in self.leaves:
            return None  # the content of a parameter, under another name
        return self._answers(x, tensors)[x.value]

    def is_leaf(self, x: Tensor) -> bool:
        """Whether a tensor needs gradients, and no operation made it."""
        return not self.frozen and (x.parameter or x.value in self.leaves)

    def backward(
        self, x: Tensor, tensors: Mapping[ir.Value, Tensor], place: Place,
        decisions: frozenset[Term], *, keep: bool,
    ) -> Freed | None:  # fmt: skip
        """Free what gradients of a tensor are computed from; return how some of it was before."""
        answers = self._answers(x, tensors)
        nodes = [
            node for value, needs in answers.items()
            if needs and value not in self.trained and (node := value.producer()) is not None
        ]  # fmt: skip
        if not answers[x.value]:
            return None
        for node in nodes:
            before = self._freed.get(node) if node.op_type in _SAVING else None
            # (The turns of a loop that is followed more than once begin at the same place.)
            if before and before.decisions <= decisions and before.root is not x.value:
                return before
            if before and before.decisions <= decisions and before.place != place:
                return before
        if not keep:
            for node in nodes:
                self._freed.setdefault(node, Freed(place, x.value, decisions))
        return None

    def _answers(
        self, x: Tensor, tensors: Mapping[ir.Value, Tensor]
    ) -> dict[ir.Value, bool | None]:
        """Return the answer for a tensor, and for all values that it is computed from."""
        found: dict[ir.Value, bool | None] = {}
        waiting = [(x.value, False)]
        while waiting:
            value, ready = waiting.pop()
            if value in found:
                continue
            sources = self._sources(value, tensors)
            if not ready:
                waiting.append((value, True))
                waiting.extend((one, False) for one in sources if one not in found)
                continue
            known = self._known(value, tensors)
            if known is None and sources and value not in self.made:
                answers = [found[one] for one in sources]
                known = True if True in answers else None if None in answers else False
            found[value] = known
        return found

    def _sources(self, value: ir.Value, tensors: Mapping[ir.Value, Tensor]) -> Sequence[ir.Value]:
        """Return the values to which gradients of a value go on."""
        node = value.producer()
        if node is None or value in self.open or value in self.trained:
            return ()
        through = value in self.through or (not node.domain and node.op_type in _DIFFERENTIABLE)
        if not (through or value in self.made) or self._known(value, tensors) is False:
            return ()
        return [one for one in node.inputs if one is not None]

    def _known(self, value: ir.Value, tensors: Mapping[ir.Value, Tensor]) -> bool | None:
        """Return the answer for a value alone; None where what it is computed from decides."""
        tensor = tensors.get(value)
        if value in self.apart or (tensor is not None and not _is_real(tensor)):
            return False
        if value in self.open:
            return None
        if value in self.trained or value in self.made:
            return None if self.frozen else True
        return False if value.const_value is not None else None


def _is_real(x: Tensor) -> bool:
    return bool(x.dtype.is_floating_point()) or x.dtype.name.startswith("COMPLEX")


__all__ = ["Freed", "Recorded"]
