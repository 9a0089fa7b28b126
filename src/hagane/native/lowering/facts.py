"""Knowledge of a graph's values before anything runs, and the target of generated kernels."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.machine import Level
from hagane.native.kernels.kernel import C_TYPES
from hagane.native.lowering.choices import Choices
from hagane.native.tiles.tile import Words
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.symbolic import Dim, Expr

# Why a node is not native yet: it will be, once the sizes of the inputs are known.
AT_RUN_TIME = "a size is known only at run time"
# Why a node is never native: two runs of it differ by intent.
DRAWN = "it draws at random, and ONNX fixes no stream of numbers"
# Metadata of a value that counts as one more reader: it is stored, for any readers.
STORED = "hagane.stored"


class NotNative(Exception):
    """A node that has no native kernel as it stands; the message says why."""


def sizes_content(types: GraphTypes, value: ir.Value) -> Array | None:
    """Return the content of a value that whole numbers and sizes make up; None of others.

    Formulas of sizes are computed in integers: a tenth of a size, as rotary embeddings have it, is
    computed by the kernels of its operators.
    """
    known, type_ = types.values.get(value), types.types.get(value)
    if known is None or known.dtype != object or not isinstance(type_, TensorType):
        return known
    if type_.dtype == ir.DataType.STRING:
        return None
    if type_.dtype.is_integer() or type_.dtype == ir.DataType.BOOL:
        return known
    return known if all(map(_is_whole, known.flat)) else None


def _is_whole(item: Any) -> bool:
    """Whether a number is whole, as are the largest and least of whole ones and what is floored."""
    if not isinstance(item, Expr):
        return Fraction(item).denominator == 1
    if any(Fraction(number).denominator != 1 for number in item.terms.values()):
        return False
    atoms = [atom for monomial in item.terms for atom, _ in monomial if not atom.is_symbol]
    return all(_is_whole(part) for atom in atoms if atom.head != "floor" for part in atom.arguments)


@dataclass
class Facts:
    """Types, constants and readers of the values of one segment or body, and its target.

    Attributes:
        level: Vector instructions to generate for.
        types: Types and known contents of the graph's values.
        constants: Arrays of initializers.
        outputs: Values that others read after the segment; those of a body are known when it is
            lowered.
        threads: How many threads the kernels will be shared between.
        pairs: Whether products may be computed in bfloat16.
        choices: Forms of kernels that were found to be fastest.
        direct_only: Whether convolutions are computed as they are defined.
        varying: Whether weights are packed in each run; Winograd's algorithm transforms them then.
        nodes: The nodes of the segment or body.
        given: Names of sizes that the shapes of values outside give.
    """

    level: Level
    types: GraphTypes
    constants: Mapping[ir.Value, Array]
    outputs: frozenset[ir.Value]
    threads: int = 1
    pairs: bool = False
    choices: Choices = field(default_factory=dict)
    direct_only: bool = False
    varying: bool = False
    nodes: frozenset[ir.Node] = frozenset()
    given: frozenset[str] = frozenset()

    @property
    def words(self) -> Words:
        """The operands of products of floats, where tiles or pairs are at hand."""
        if self.pairs:
            return Words.PAIR
        return Words.TRIPLE if self.level.tiles else Words.FLOAT

    @property
    def circumstances(self) -> str:
        """Precision, level and threads: with a kernel's sizes they decide its best form."""
        precision = "bf16" if self.pairs else "fp32"
        return f"{precision} {self.level.name} threads {self.threads}"

    def type(self, value: ir.Value | None) -> TensorType:
        """Return the type of a tensor whose rank is known."""
        found = None if value is None else self.types.types.get(value)
        if not isinstance(found, TensorType) or found.shape is None:
            raise NotNative("an input or output is no tensor of known rank")
        return found

    def shape(self, value: ir.Value | None) -> tuple[Dim, ...]:
        """Return the dimensions of a value."""
        shape = self.type(value).shape
        assert shape is not None
        return shape

    def fixed_shape(self, value: ir.Value | None) -> tuple[int, ...]:
        """Return the dimensions of a value whose sizes are all numbers."""
        shape = self.shape(value)
        if not all(isinstance(dim, int) for dim in shape):
            raise NotNative(AT_RUN_TIME)
        return tuple(int(dim) for dim in shape)

    def dtype(self, value: ir.Value | None) -> np.dtype[Any]:
        """Return the element type of a value, if kernels can hold it."""
        dtype = self.type(value).dtype
        try:
            found = np.dtype(dtype.numpy())
        except TypeError:
            raise NotNative(f"element type {dtype.name}") from None
        if found.name not in C_TYPES:
            raise NotNative(f"element type {dtype.name}")
        return found

    def constant(self, value: ir.Value | None) -> Array | None:
        """Return the content of a value that the model fixes."""
        if value is None:
            return None
        if value in self.constants:
            return self.constants[value]
        known = self.types.values.get(value)
        if known is None or known.dtype == object:
            return None
        return known.reshape(self.fixed_shape(value))

    def is_float(self, value: ir.Value | None) -> bool:
        """Whether a value is float32."""
        return self.dtype(value) == np.float32

    def uses(self, value: ir.Value) -> int:
        """Return how often a value is read, by nodes and as an output of the segment."""
        return len(value.uses()) + (value in self.outputs) + (STORED in value.metadata_props)

    def choice(self, node: ir.Node, name: str, known: Container[str]) -> str:
        """Return an attribute that is one of some texts.

        Raises:
            NotNative: It is another one.
        """
        found = str(self.attributes(node)[name])
        if found not in known:
            raise NotNative(f"an unknown {name}")
        return found

    def attributes(self, node: ir.Node) -> dict[str, Any]:
        """Return a node's attributes, defaults filled in."""
        return known_attributes(node, schema_of(node).defaults)
