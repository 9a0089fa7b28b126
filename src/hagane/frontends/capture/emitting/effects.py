"""What programs in training do besides their result: random numbers, changes of buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from hagane.frontends.capture.emitting.scope import Branch, Scope
from hagane.frontends.python.interpret.emitting.effects import Noise, Training
from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.values.values import Tensor
from hagane.symbolic import Dim


class Effects(Emitter):
    """Notes the effects of a program in training, which its graph has as inputs and outputs.

    Attributes:
        root: The graph itself.
    """

    root: Scope

    @property
    def scope(self) -> Scope:
        """Where the next node lies."""
        raise NotImplementedError

    def add_input(self, tensor: Tensor, name: str) -> None:
        """Make a tensor an input of the graph."""
        raise NotImplementedError

    def _named(self, buffer: Tensor) -> str:
        raise NotImplementedError

    def objects(self) -> dict[ir.Value, int]:
        """Return the identities of the real arrays behind initializers."""
        raise NotImplementedError

    def born(self, value: ir.Value) -> int:
        """Return how many values there were before one."""
        raise NotImplementedError

    def made_so_far(self) -> int:
        """Return how many values there are."""
        raise NotImplementedError

    def draw(self) -> tuple[Tensor, int]:
        """Return the input ``seed``, two numbers of type uint32, and the number of this draw.

        Raises:
            CheckError: It is drawn in a loop, in which all iterations would draw the same.
        """
        assert self.training is not None
        training = self.training
        if not all(isinstance(scope.owner, Branch) for scope in self.scope.chain()[:-1]):
            self.fail("capture", "random numbers are drawn in a loop whose end the data decide, "
                      "which is not captured; do it outside")  # fmt: skip
        if training.seed is None:
            training.seed = self.new(ir.DataType.UINT32, (2,), name="seed")
            self.add_input(training.seed, "seed")
        training.draws += 1
        return training.seed, training.draws

    def mask(self, x: Tensor, ratio: float | None) -> Tensor:
        """Return an input ``mask.N`` of a tensor's sizes: the factors of dropout.

        Args:
            x: The tensor.
            ratio: The share that is dropped; None for normal numbers in place of a mask.

        Raises:
            CheckError: It is drawn in a branch or a loop.
        """
        masks = self._at_root("random numbers are drawn").masks
        assert masks is not None
        assert x.shape is not None
        made = self.new(x.dtype, x.shape, name=f"mask.{len(masks)}")
        self.add_input(made, f"mask.{len(masks)}")
        masks.append((made, ratio))
        return made

    def noise(self, kind: str, x: Tensor, bounds: Sequence[Dim | float]) -> Tensor:
        """Return an input ``noise.N`` of a tensor's type: random numbers that the caller draws.

        Args:
            kind: The function that draws them.
            x: A tensor of their type.
            bounds: Further arguments of the function.

        Raises:
            CheckError: They are drawn in a branch or a loop.
        """
        noises = self._at_root("random numbers are drawn").noises
        assert noises is not None
        assert x.shape is not None
        made = self.new(x.dtype, x.shape, kind=x.kind, name=f"noise.{len(noises)}")
        self.add_input(made, f"noise.{len(noises)}")
        noises.append(Noise(f"noise.{len(noises)}", kind, x.dtype, x.shape, tuple(bounds)))
        return made

    def change(self, buffer: Tensor, new: Callable[[Tensor], Tensor]) -> None:
        """Give a buffer of a model a new content, which follows from its present one.

        Raises:
            CheckError: It is done in a branch or a loop.
        """
        training = self._at_root("a buffer changes")
        name = self._named(buffer)
        training.updates[name] = new(training.updates.get(name, buffer))
        training.moved.setdefault(id(self.object_of(buffer)), self.made_so_far())

    def moved_and_read(self) -> str:
        """Return the name of a buffer that the program reads after its change; empty if none."""
        moved = {} if self.training is None else self.training.moved
        for value, found in self.objects().items():
            readers = (made for use in value.uses() for made in use.node.outputs)
            if found in moved and any(self.born(made) >= moved[found] for made in readers):
                return str(value.name)
        return ""

    def _at_root(self, action: str) -> Training:
        assert self.training is not None
        if self.scope is not self.root:
            self.fail("capture", f"{action} in a branch or loop that the data decide, which is not "
                      "captured; do it outside")  # fmt: skip
        return self.training
