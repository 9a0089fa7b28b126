"""A compiled training step of a module of PyTorch, for one set of types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.interface.guards import Guards
from hagane.ops.definition import Array
from hagane.runtime import OrtValue, SessionOptions
from hagane.training.step.accumulation import GradientSums
from hagane.training.step.arguments import Given
from hagane.training.step.base import Program
from hagane.training.step.changed_state import ChangedArguments, ChangedState
from hagane.training.step.memory.budget import MemoryChoice
from hagane.training.step.memory.byte_counts import sizes_of
from hagane.training.step.modules.hooks import follow as follow_gradients
from hagane.training.step.modules.large import LargeUpdates
from hagane.training.step.modules.noise import NoiseSource
from hagane.training.step.program import StepProgram, reached_name
from hagane.training.step.read_arrays import plain_array
from hagane.training.step.rules import Group, Rule
from hagane.training.step.scaling import LossScaling


class TorchProgram(Program):
    """A compiled step of one module for one set of types."""

    def __init__(
        self,
        made: StepProgram,
        rule: Rule,
        module: Any,
        paths: Mapping[int, str],
        arguments: Sequence[str],
        options: SessionOptions | None,
        choice: MemoryChoice | None = None,
        groups: Sequence[Group] = (),
        moved: Sequence[tuple[Any, int]] = (),
        guards: Guards | None = None,
        others: Mapping[str, Any] | None = None,
        modules: Sequence[Any] = (),
        foreign: Sequence[str] = (),
        written: ChangedArguments | None = None,
        state: ChangedState | None = None,
        noise: NoiseSource | None = None,
    ):
        self._noise = noise or NoiseSource((), made.model.graph)
        self.state = state or ChangedState((), ())  # attributes that the loss changes
        self.modules = modules  # that the loss calls
        self.foreign = foreign  # parameters of the optimizer that the loss does not read, in words
        self.guards = guards or Guards((), (), (), ())  # what was read besides the arguments
        self._moved = moved  # counters of calls, and by how much the loss moves them
        self._changed = written or ChangedArguments(())
        super().__init__(made, rule, options, choice)
        self._module = module
        self._arguments = arguments
        # Arrays of the module by their own path; the input may be called by another.
        self._called = {
            name: paths[id(array)]
            for name, array in arrays_of(module, arguments[0])
            if (path := paths.get(id(array))) in self._inputs or f"{path}.new" in self._outputs
        }
        self._others = {n: x for n, x in (others or {}).items() if n in self._inputs}
        self._groups = groups
        self._gradients: dict[str, OrtValue] = {}  # of large parameters, used again by each call

    @cached_property
    def _large(self) -> LargeUpdates:
        return LargeUpdates(self._made, self._groups, self._rule, self._options)

    @cached_property
    def _holders(self) -> list[tuple[str, Any, str, str]]:
        """The inputs that are arrays of the module: name, owner, kind and name of the array.

        (Another module in the place of one is another program, by what capture has read.)
        """
        return [
            (called, part, kind, key)
            for path, part in self._module.named_modules(prefix=self._arguments[0])
            for kind in ("_parameters", "_buffers")
            for key in vars(part)[kind]
            if (called := self._called.get(f"{path}.{key}")) is not None
        ]

    def changed(self) -> str:
        """Return which of its assumptions holds no longer; empty if all do."""
        return self.guards.broken() or self.state.broken()

    def sizes(self, given: Sequence[Any]) -> Mapping[str, int]:
        """Return the sizes of a call by the names of the graph."""
        state = self.state.feed(view_of)
        names = [*self._arguments[1:], *state]
        return sizes_of(self._made.model.graph, names, [*given, *state.values()])

    def shapes(self, given: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs that a call decides, by name."""
        found = {
            name: tuple(getattr(item, "shape", ()))
            for name, item in zip(self._arguments[1:], given, strict=True)
        }
        found.update(self.state.shapes())
        found.update(self._noise.shapes(self.sizes(given)))
        return {name: shape for name, shape in found.items() if name in self._inputs}

    def run(
        self, optimizer: Any, arguments: Given, sums: GradientSums, scaling: LossScaling
    ) -> Any:
        """Do one step and return the loss."""
        import torch

        self._changed.check(arguments)
        given = arguments.values
        arrays = {
            name: vars(part)[kind][key] for name, part, kind, key in self._holders
        } | self._others
        feed = {
            name: view_of(plain_array(array))
            for name, array in arrays.items()
            if name in self._inputs
        }
        read = self.state.feed(view_of)
        feed.update({name: array for name, array in read.items() if name in self._inputs})
        for name, item in zip(self._arguments[1:], given, strict=True):
            if name in self._inputs:
                feed[name] = view_of(item)
        if self._noise.draws:
            numbers = self._noise.draw(self.sizes(given))
            feed.update({name: view_of(x) for name, x in numbers.items() if name in self._inputs})
        if "seed" in self._inputs:
            drawn = torch.randint(0, 2**32, (2,), dtype=torch.int64)
            feed["seed"] = drawn.numpy().astype(np.uint32)
        # What no gradient reaches stays as it was, and all of it in an overflow.
        before = {
            item.name: _state_of(optimizer, arrays[item.name])
            for item in self._made.updated
            if scaling.now is not None or item.name in self._made.conditional
        }
        scalars, counts = self._scalars(optimizer, arrays)
        feed.update(self._changed.numbers(arguments, self._inputs))
        feed.update(scaling.feed())
        for item in self._made.updated:
            feed.update({n: v for n, v in scalars[item.name].items() if n in self._inputs})
        states, made = self._states(optimizer, arrays)
        views = {name: view_of(tensor) for name, tensor in states.items()}
        feed.update({name: view for name, view in views.items() if name in self._inputs})
        summed = {name: arrays[name] for name in self._made.summed}
        feed.update(sums.feed({name: (x, view_of(x)) for name, x in summed.items()}))
        results = dict(zip(self._outputs, self._run(feed), strict=True))
        self._check(results, feed)
        for name, state, tensor in made:  # (A run that fails leaves the optimizer without them.)
            optimizer.state[arrays[name]][state] = tensor
        everything = dict(results)
        loss = results.pop(self._outputs[0])
        come = {n: bool(results.pop(reached_name(n))) for n in self._made.conditional}
        unreached = sums.unreached(arrays, summed, come)
        results, follow = self._outcome(results, summed, sums, scaling)
        gradients = {
            item.name: results.pop(f"{item.name}.gradient")
            for item in self._made.updated
            if item.apart
        }
        gradients = {name: g for name, g in gradients.items() if name not in unreached}
        pairs = zip(self._arguments[1:], given, strict=True)
        leaves = {name: item for name, item in pairs if name in self._changed.written}
        changed = {**arrays, **states, **leaves}
        if follow and self._rule.by_itself:
            if self._made.updated:
                copies = {id(arrays[n]): _tensor(g.copy()) for n, g in gradients.items()}
                follow_gradients(optimizer, copies)
        elif follow:
            own = {
                name: feed[name] if name in feed and not x.is_complex() else view_of(x)
                for name, x in ((name, arrays[name]) for name in gradients)
            }
            self._large.update(gradients, {**own, **views}, scalars)
            for parameter, name, number in counts:
                if parameter not in unreached:
                    _count(optimizer.state[arrays[parameter]], name, number)
        for name in unreached & before.keys() if follow else before:
            optimizer.state.pop(arrays[name], None)
            if before[name] is not None:
                optimizer.state[arrays[name]] = before[name]
        self._changed.apply(arguments, everything)
        with torch.no_grad():
            self.state.take(results, _tensor)
            for name, result in results.items():
                target = name.removesuffix(".new")
                if target in changed:  # (others are content of dicts, lists and objects)
                    _put(changed[target], result)
            for part, count in self._moved:
                part.num_batches_tracked.add_(count)
        if self._made.updated:
            optimizer._opt_called = True  # by which schedules of learning rates know of a step
        return _tensor(np.array(loss))

    def _run(self, feed: Mapping[str, Array]) -> list[Array]:
        """Run the graph; large gradients lie in memory that is used again by each call."""
        named = [name for name in self._outputs if name.endswith(".gradient")]
        if not named:
            return self._session.run(None, feed)
        binding = self._session.io_binding()
        for name, array in feed.items():
            binding.bind_cpu_input(name, array)
        for name in self._outputs:
            if name in self._gradients:
                binding.bind_ortvalue_output(name, self._gradients[name])
            else:
                binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        found = binding.get_outputs()
        for name, value in zip(self._outputs, found, strict=True):
            if name.endswith(".gradient"):
                self._gradients[name] = value
        return [value.numpy() for value in found]

    def _scalars(
        self, optimizer: Any, arrays: Mapping[str, Any]
    ) -> tuple[dict[str, Mapping[str, Array]], list[tuple[str, str, float]]]:
        """Return the numbers of this step of each parameter, and those to keep after it.

        The latter are a parameter's name, a name in its state, and the number.
        """
        import torch

        rule, found = self._rule, dict[str, Mapping[str, Array]]()
        counts: list[tuple[str, str, float]] = []
        known: dict[tuple[object, ...], Mapping[str, Array]] = {}
        for item in self._made.updated:
            kept = _kept(optimizer, arrays[item.name])
            group = optimizer.param_groups[item.group]
            number = 1 + int(kept.get("step", 0))
            if not rule.counted:
                number = 1 if kept.get("momentum_buffer") is None else 2
            numbers = {
                name: kept.get(name, torch.tensor(first)).numpy()[()]
                for name, first in (rule.kept or {}).items()
            }
            key = (item.group, number, *numbers.values())
            if numbers or key not in known:
                scalars = rule.scalars(group, number, numbers)  # changes `numbers`
            if rule.counted:
                counts.append((item.name, "step", float(number)))
            counts.extend((item.name, name, value) for name, value in numbers.items())
            if key not in known:
                known[key] = {
                    f"group.{item.group}.{name}": np.array(value, np.float64)
                    for name, value in scalars.items()
                }
            found[item.name] = known[key]
        return found, counts

    def _states(
        self, optimizer: Any, arrays: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
        """Return the tensors that the optimizer keeps, and those among them that it has not yet.

        The latter are a parameter's name, a name in its state, and the tensor.
        """
        import torch

        found, made = dict[str, Any](), list[tuple[str, str, Any]]()
        for item in self._made.updated:
            parameter = arrays[item.name]
            group, kept = optimizer.param_groups[item.group], _kept(optimizer, parameter)
            for state in item.states:
                tensor = kept.get(state)
                if tensor is None:
                    first = group.get("initial_accumulator_value", 0.0)
                    tensor = torch.full_like(parameter.detach(), first)
                    made.append((item.name, state, tensor))
                elif tensor.dtype != parameter.dtype or tensor.shape != parameter.shape:
                    raise InvalidArgument(
                        f"step: the optimizer keeps '{state}' of '{item.name}' as {tensor.dtype} "
                        f"{tuple(tensor.shape)}, and the parameter is {parameter.dtype} "
                        f"{tuple(parameter.shape)} now: convert what the optimizer keeps by "
                        "optimizer.load_state_dict(optimizer.state_dict()), or make another one "
                        "where sizes changed"
                    )
                found[f"{item.name}.{state}"] = tensor
        return found, made


def moved_by(
    modules: Iterable[Any], counted: Mapping[int, int], state: Set[int]
) -> list[tuple[Any, int]]:
    """Return the modules that count their calls, and how often a call of the loss calls each.

    Args:
        modules: Modules of PyTorch that the loss may call.
        counted: How often it calls those that count, by identity.
        state: The identities of tensors whose new content the graph computes.
    """
    found = {id(m): (m, counted[id(m)]) for m in modules if id(m) in counted}
    return [
        (module, count)
        for module, count in found.values()
        if module.num_batches_tracked is not None and id(module.num_batches_tracked) not in state
    ]


def arrays_of(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the parameters and buffers of a module with their paths."""
    yield from module.named_parameters(prefix=prefix)
    yield from module.named_buffers(prefix=prefix)


def view_of(tensor: Any) -> Array:
    """Return a tensor's memory as an array."""
    if isinstance(tensor, np.ndarray | np.generic):
        return np.asarray(tensor, order="C")
    if tensor.dtype.itemsize == 2 and str(tensor.dtype) == "torch.bfloat16":
        import torch

        plain = tensor.detach().resolve_neg()
        return np.asarray(plain.view(torch.int16).numpy().view(ir.DataType.BFLOAT16.numpy()))
    found: Array = tensor.numpy(force=True)  # as .detach().resolve_neg().numpy(), in one call
    return found


def _kept(optimizer: Any, parameter: Any) -> Mapping[str, Any]:
    """Return the state of a parameter; an optimizer without one gets none by it."""
    found: Mapping[str, Any] = optimizer.state.get(parameter) or {}
    return found


def _state_of(optimizer: Any, parameter: Any) -> dict[str, Any] | None:
    """Return the tensors that an optimizer keeps for a parameter, if it has any."""
    return dict(optimizer.state[parameter]) if parameter in optimizer.state else None


def _count(kept: Any, name: str, number: float) -> None:
    """Keep a number in the state of a parameter: in the tensor that is there, as PyTorch does."""
    import torch

    there = kept.get(name)
    if isinstance(there, torch.Tensor):
        there.fill_(number)
    else:
        kept[name] = torch.tensor(number)


def _tensor(array: Array) -> Any:
    """Return an array's memory as a tensor."""
    import torch

    if array.dtype == ir.DataType.BFLOAT16.numpy():
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _put(target: Any, result: Array) -> None:
    """Write an array into a tensor or another array."""
    if isinstance(target, np.ndarray):
        np.copyto(target, result)
    else:
        target.copy_(_tensor(result))
