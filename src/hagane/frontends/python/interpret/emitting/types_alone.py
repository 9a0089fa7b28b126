"""Questions that a graph answers; where only types are followed, these are the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.interpret.emitting.claims import Claims
from hagane.frontends.python.interpret.emitting.effects import Training
from hagane.frontends.python.values.values import (
    Kinds,
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.graph.types import Shape
from hagane.ops.definition import Array
from hagane.symbolic import Dim


class TypesAlone(Claims):
    """The answers where no graph is written: nothing is computed, drawn or changed."""

    training: Training | None = None  # None: random numbers and changes of buffers are refused

    # Random numbers and changes, where a graph has them.

    def draw(self) -> tuple[Tensor, int]:
        """Return the numbers that random numbers follow from, and the number of this draw."""
        raise NotImplementedError

    def mask(self, x: Tensor, ratio: float | None) -> Tensor:
        """Return dropout's factors of a tensor, or normal numbers, which the caller draws."""
        raise NotImplementedError

    @property
    def draws_noise(self) -> bool:
        """Whether the caller of the graph draws the random numbers of the program."""
        return self.builds and self.training is not None and self.training.noises is not None

    def noise(self, kind: str, x: Tensor, bounds: Sequence[Dim | float]) -> Tensor:
        """Return random numbers of a tensor's type, which the caller draws."""
        raise NotImplementedError

    def change(self, buffer: Tensor, new: Callable[[Tensor], Tensor]) -> None:
        """Give a buffer of a model a new content, which follows from its present one."""
        raise NotImplementedError

    # Gradients and real objects.

    def gradients(
        self, of: Sequence[Tensor], seeds: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Return the gradients of tensors by others, where a graph is built."""
        raise NotImplementedError

    def gradients_from(self, tensor: Tensor) -> tuple[list[Any], bool]:
        """Return the trained arrays whose gradients a tensor has, and whether that is all."""
        return [], False

    def may_be_trained(self, tensor: Tensor) -> bool:
        """Whether a parameter may be among the tensors that one is computed from."""
        return tensor.parameter

    def keep(self, tensor: Tensor, found: Any, content: Callable[[], Array]) -> None:
        """Take note of the real object behind a tensor, and of how to get at its content."""

    def is_kept(self, tensor: Tensor) -> bool:
        """Whether a real object is behind a tensor, whose content can be had."""
        return False

    def object_of(self, tensor: Tensor) -> Any:
        """Return the real object behind a tensor; None if there is none."""
        return None

    def real_pair(self, tensor: Tensor) -> Tensor | None:
        """Return the real object behind a complex tensor, with its parts in a last axis of 2."""
        return None

    def explain(self, tensor: Tensor, reason: str) -> None:
        """Say why nothing computes a tensor of which only the type is known."""

    # Arguments, and numbers that the data decide.

    def item_name(self, name: str, place: int) -> str:
        """Return the name of an item of an argument that is a tuple or list."""
        return f"{name}_{place}"

    def argument(self, value: Value, name: str) -> Value:
        """Return an argument of the call that is interpreted."""
        del name
        return value

    def real_scalar(self, value: Real) -> Tensor | None:
        """Return a float that is not known as a tensor without axes, if it can be had."""
        return None

    def truth_scalar(self, value: Truth) -> Tensor | None:
        """Return a truth value that is not known as a tensor without axes, if it can be had."""
        return None

    def also(self, value: Value) -> Kinds:
        """Return the types besides its own that a number may have, as the data decide."""
        return value.also if isinstance(value, Real) else frozenset()

    @contextmanager
    def types_only(self) -> Iterator[None]:
        """Ask for types inside the block: values made there compute nothing."""
        yield

    # Code that the program may run later.

    def born(self, value: ir.Value) -> int:
        """Return how many values there were before one; -1 where nobody counts."""
        del value
        return -1

    def made_so_far(self) -> int:
        """Return how many values there are."""
        return 0

    @contextmanager
    def lazily(self) -> Iterator[None]:
        """Note that the program may run the code of the block later."""
        yield

    def late(self) -> frozenset[ir.Value]:
        """Return the memory that lazy code may read after it seems to have."""
        return frozenset()

    def forget_late(self, before: frozenset[ir.Value]) -> None:
        """Note that all lazy code since ``before``, a result of ``late``, has run to its end."""

    def handed(self, value: Value) -> None:
        """Note that lazy code has given out a value."""

    def is_late(self, value: ir.Value) -> bool:
        """Whether the program may read or write the memory of a value in another order."""
        del value
        return False

    # Memory and places of a graph.

    def leaves_loop(self, value: ir.Value) -> bool:
        """Whether a value lies outside of the loop of the graph that is being made."""
        del value
        return False

    def base_of(self, tensor: Tensor) -> ir.Value:
        """Return the value whose memory a tensor has."""
        return tensor.value

    def again(
        self,
        value: ir.Value,
        old: ir.Value,
        new: ir.Value,
        known: dict[ir.Value, ir.Value] | None = None,
    ) -> ir.Value:
        """Return a view of one value as the same view of another one."""
        del old, new
        return value

    def show_sizes(self, tensor: Tensor, shape: Shape) -> None:
        """Give a tensor the sizes by which the program's reader knows its own."""
        tensor.shape = shape

    def at_root(self) -> AbstractContextManager[None]:
        """Add nodes in front of all branches and loops inside the block."""
        return nullcontext()
