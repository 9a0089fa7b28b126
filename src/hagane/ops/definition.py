"""Operators: frozen records that hold every meaning hagane gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hagane.errors import KernelError
from hagane.graph.types import Shape, Type
from hagane.ops.traits import Trait

if TYPE_CHECKING:
    from hagane.ops.builder.interpreter import Call
    from hagane.ops.context import InferContext

Array: TypeAlias = npt.NDArray[Any]
# A list is an ONNX sequence, a dict an ONNX map, None an absent optional value.
RuntimeValue: TypeAlias = "Array | list[Any] | dict[Any, Any] | None"
Kernel: TypeAlias = Callable[..., Any]
InferRule: TypeAlias = "Callable[[InferContext], Sequence[Shape | Type | None]]"
DataRule: TypeAlias = "Callable[[InferContext], Sequence[Array | None]]"
VjpRule: TypeAlias = "Callable[[Call, Sequence[Any]], Sequence[Any]]"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A facet that an operator lacks, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class CSource:
    """An operator's kernel in C, of a user's.

    Attributes:
        text: The C source; functions other than ``entry`` are static, with names of their own.
        entry: The function that computes items, as ``docs/ship.md`` states its signature.
        parallel: So many leading axes of the first output are shared out: an item is an element
            of them. 0: all is one item.
        cost: Nanoseconds that an element of the first output takes; decides on waking threads.
    """

    text: str
    entry: str
    parallel: int = 0
    cost: float = 1.0


_OPEN = Unsupported("its gradient is not written yet")


@dataclass(frozen=True, slots=True)
class OpDef:
    """One operator: name, type rule, meaning in NumPy and gradient.

    Attributes:
        name: The ONNX operator type.
        infer: Maps a node's input types to its output types. A bare shape stands for a tensor
            whose element type the ONNX schema determines.
        reference: The meaning that every other engine is tested against. Called with the inputs
            in order and the attributes as keywords; ``n_outputs``, and ``attributes`` as a whole,
            are passed where they are named.
        domain: The operator's domain, empty for ``ai.onnx``.
        data: Computes output values from input values that hold dimensions, so that shape
            arithmetic inside a graph resolves. None where values of outputs never matter.
        vjp: The gradient, written in other operators: takes the call, with its outputs, and the
            gradients of these (None where there is none), and returns the gradient of each input:
            a value, or a function that makes it and is called if that is wanted, or None where
            the result does not depend on the input. That of its composition where it has one and
            nothing else is said.
        compose: The operator as other operators over the builder, called as the reference is; it
            may return None for a call that it cannot write so. None where the operator is not made
            of others, ``Unsupported`` where it would serve and cannot be had.
        source: Its kernel in C, where a user gave one.
        ready: Takes the attributes as keywords and returns the reference kernel of nodes that have
            these, where there is work that all its calls share. None for no such work.
        traits: The properties that passes and engines may take for granted of it.
        keywords: The attributes that the reference kernel takes.
        needed: Those among them that it cannot do without, be they optional in the schema.
    """

    name: str
    infer: InferRule
    reference: Kernel | Unsupported
    domain: str = ""
    data: DataRule | None = None
    vjp: VjpRule | Unsupported = _OPEN
    compose: Kernel | Unsupported | None = None
    source: CSource | None = None
    ready: Kernel | None = None
    traits: Trait = Trait.NONE
    keywords: frozenset[str] = field(init=False, default=frozenset())
    needed: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if self.vjp is _OPEN and callable(self.compose):
            from hagane.ops.vjp import through

            object.__setattr__(self, "vjp", through(self.compose))
        if not isinstance(self.reference, Unsupported):
            parameters = inspect.signature(self.reference).parameters.values()
            named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
            needed = {p.name for p in named if p.default is p.empty} - {"attributes", "n_outputs"}
            object.__setattr__(self, "keywords", frozenset(p.name for p in named))
            object.__setattr__(self, "needed", frozenset(needed))

    @property
    def key(self) -> tuple[str, str]:
        """Domain and name."""
        return self.domain, self.name

    @property
    def random(self) -> bool:
        """Whether two runs may differ."""
        return Trait.RANDOM in self.traits

    def __call__(
        self, inputs: Sequence[RuntimeValue], attributes: dict[str, Any], n_outputs: int
    ) -> tuple[RuntimeValue, ...]:
        """Run the reference kernel and return its outputs.

        Raises:
            KernelError: There is none.
        """
        result = self.bound(attributes, n_outputs)(*inputs)
        return result if isinstance(result, tuple) else (result,)

    def bound(self, attributes: dict[str, Any], n_outputs: int) -> Callable[..., Any]:
        """Return the reference kernel of a node as a function of its inputs alone.

        Raises:
            KernelError: There is none.
        """
        if isinstance(self.reference, Unsupported):
            raise KernelError(f"{self.name} cannot be run: {self.reference.reason}")
        keywords = {name: attributes[name] for name in self.keywords if name in attributes}
        if "attributes" in self.keywords:
            keywords["attributes"] = attributes
        if "n_outputs" in self.keywords:
            keywords["n_outputs"] = n_outputs
        if self.ready is not None:
            made: Callable[..., Any] = self.ready(**keywords)
            return made
        return partial(self.reference, **keywords)


def data_by_reference(ctx: InferContext) -> Sequence[Array | None]:
    """Run the reference kernel on arrays of dimensions.

    For kernels that only move elements or use ``+ - *`` this is exact: NumPy applies them to
    arrays of expressions as it does to numbers.
    """
    # Of an input that is present the type may be unknown.
    present = [value is not None for value in ctx.node.inputs]
    inputs = [ctx.data(i) if there else None for i, there in enumerate(present)]
    if any(there and inputs[i] is None for i, there in enumerate(present)):
        return [None] * ctx.n_outputs
    outputs = ctx.op(inputs, ctx.attributes, ctx.n_outputs)
    return [np.asarray(output) for output in outputs]
