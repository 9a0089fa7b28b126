"""A compiled training step of a link of hagane, for one set of types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.capture import Captured
from hagane.frontends.capture.interface.rebuilding import rebuilt
from hagane.frontends.python.interpret.emitting.effects import Training
from hagane.nn import reporter
from hagane.nn.autograd.variable import Variable
from hagane.nn.links.classifier import Classifier
from hagane.ops.definition import Array
from hagane.runtime import SessionOptions
from hagane.symbolic.substitute import number_of
from hagane.training.step.accumulation import GradientSums
from hagane.training.step.arguments import Given
from hagane.training.step.base import Program
from hagane.training.step.changed_state import ChangedArguments, value_of
from hagane.training.step.memory.byte_counts import sizes_of
from hagane.training.step.program import StepProgram
from hagane.training.step.read_arrays import guards_of, plain_array
from hagane.training.step.rules import Rule
from hagane.training.step.scaling import LossScaling


class LinkProgram(Program):
    """A compiled step of one link for one set of types."""

    def __init__(
        self,
        made: StepProgram,
        rule: Rule,
        captured: Captured,
        training: Training,
        arrays: Mapping[str, Any],
        names: Sequence[str],
        options: SessionOptions | None,
        choice: Any,
        written: ChangedArguments | None = None,
    ):
        super().__init__(made, rule, options, choice)
        self._arrays, self._names, self._state = arrays, names, captured.state
        self._changed = written or ChangedArguments(())
        self.guards = guards_of(captured, training.updates)
        inputs = {str(value.name): value for value in made.model.graph.inputs}
        self._read = [(a, inputs[a.path]) for a, _ in self._state if a.path in inputs]
        self._masks = [(f"mask.{n}", x, r) for n, (x, r) in enumerate(training.masks or ())]

    def changed(self) -> str:
        """Return which of its assumptions holds no longer; empty if all do."""
        return self.guards.broken() or next(
            (
                f"the type of '{attribute.path}' changed"
                for attribute, expected in self._read
                if not _fits(attribute.now(), expected)
            ),
            "",
        )

    def sizes(self, given: Sequence[Any]) -> Mapping[str, int]:
        """Return the sizes of a call by the names of the graph."""
        feed = self._fed(given)
        return sizes_of(self._made.model.graph, list(feed), list(feed.values()))

    def shapes(self, given: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs that a call decides, by name: masks too."""
        sizes = self.sizes(given)
        masks = {name: _shape(x, sizes) for name, x, _ in self._masks if name in self._inputs}
        return {name: tuple(x.shape) for name, x in self._fed(given).items()} | masks

    def _fed(self, given: Sequence[Any]) -> dict[str, Array]:
        """Return the arrays of a call, and those that the link holds, by the inputs' names."""
        held = {attribute.path: attribute.now() for attribute, _ in self._state}
        pairs = [*zip(self._names, given, strict=True), *held.items()]
        return {
            name: np.asarray(getattr(x, "array", x), order="C")
            for name, x in pairs
            if name in self._inputs
        }

    def run(
        self, optimizer: Any, arguments: Given, sums: GradientSums, scaling: LossScaling
    ) -> Variable:
        """Do one step and return the loss."""
        self._changed.check(arguments)
        is_update = sums.share is None or sums.share.last
        given = arguments.values
        feed = self._fed(given)
        sizes = self.sizes(given)
        for name, tensor, ratio in self._masks:
            dtype = tensor.dtype.numpy()
            if ratio is None:
                feed[name] = np.random.standard_normal(_shape(tensor, sizes)).astype(dtype)
                continue
            kept = np.random.rand(*_shape(tensor, sizes)) >= ratio
            feed[name] = np.asarray(kept * dtype.type(1 / (1 - ratio)), dtype)
        if "seed" in self._inputs:
            feed["seed"] = np.random.randint(0, 2**32, 2, np.uint32)
        for x in self._arrays.values():
            if isinstance(x, Variable) and not isinstance(x.array, np.ndarray):
                x.array = np.asarray(x.array)  # a program may give it a number of NumPy
        changed: dict[str, Array] = {
            name: x.array if isinstance(x, Variable) else x for name, x in self._arrays.items()
        }
        for item in self._made.updated:
            rule = self._arrays[item.name].update_rule
            rule._init_states(self._arrays[item.name])
            for state in item.states:
                changed[f"{item.name}.{state}"] = rule.state[state]
        summed = {name: self._arrays[name] for name in self._made.summed}
        feed.update(sums.feed({name: (x, x.array) for name, x in summed.items()}))
        feed.update(self._scalars())
        feed.update(self._changed.numbers(arguments, self._inputs))
        feed.update(scaling.feed())
        feed.update((name, plain_array(x)) for name, x in changed.items())
        feed = {name: array for name, array in feed.items() if name in self._inputs}
        results = dict(zip(self._outputs, self._session.run(None, feed), strict=True))
        self._check(results, feed)
        loss = Variable(np.array(results[self._outputs[0]]))
        self._changed.apply(arguments, results)
        left, follow = self._outcome(results, summed, sums, scaling)
        pairs = zip(self._names, given, strict=True)
        changed |= {name: array for name, array in pairs if name in self._changed.written}
        for name, array in changed.items():
            if f"{name}.new" in left:
                np.copyto(array, left[f"{name}.new"])
        if is_update:
            self._advance(optimizer, follow=follow)
        for attribute, structure in self._state:
            setattr(attribute.owner, attribute.name, rebuilt(structure, results, value_of, {}))
        for owner in {id(a.owner): a.owner for a, _ in self._state}.values():
            if isinstance(owner, Classifier):
                told = {"loss": owner.loss, "accuracy": owner.accuracy}
                reporter.report({k: v for k, v in told.items() if v is not None}, owner)
        return loss

    def _scalars(self) -> dict[str, Array]:
        """Return the numbers of this step."""
        found: dict[str, Array] = {}
        for item in self._made.updated:
            param = self._arrays[item.name]
            numbers, number_of_step = numbers_of(param), param.update_rule.t + 1
            for name, number in self._rule.scalars(numbers, number_of_step, {}).items():
                found[f"group.{item.group}.{name}"] = np.array(number, np.float64)
        return found

    def _advance(self, optimizer: Any, *, follow: bool) -> None:
        """Count the step; where gradients overflowed, by the optimizer alone, as it does itself."""
        optimizer.t += 1
        if not follow:
            return
        for param in optimizer.target.params():
            rule = param.update_rule
            if rule is not None and rule.enabled:
                rule._init_states(param)  # those of parameters that no gradient reaches, too
                rule.t += 1
                if hasattr(rule, "beta_power"):
                    rule.beta_power *= rule.hyperparam.beta
            param.cleargrad()


def _fits(held: Any, expected: ir.Value) -> bool:
    """Whether a link holds what an input takes, at an attribute that calls change."""
    array = getattr(held, "array", held)
    if array is None or isinstance(array, str | tuple | list | dict):
        return False
    array, dims = np.asarray(array), tuple(expected.shape or ())
    return (
        expected.dtype is not None
        and array.dtype == expected.dtype.numpy()
        and array.ndim == len(dims)
        and all(
            not isinstance(dim, int) or dim == size
            for dim, size in zip(dims, array.shape, strict=True)
        )
    )


def _shape(tensor: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(number_of(dim, sizes) for dim in tensor.shape)


def numbers_of(param: Any) -> dict[str, Any]:
    """Return the inputs of a parameter's update besides its states."""
    rule = param.update_rule
    more = {n: getattr(rule, n) for n in ("initial_alpha", "beta_power") if hasattr(rule, n)}
    return {"dtype": str(param.dtype), **rule.hyperparam.get_dict(), **more}
