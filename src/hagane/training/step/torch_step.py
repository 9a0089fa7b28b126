"""The compiled training step of a module of PyTorch."""

from __future__ import annotations

import gc
import inspect
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.effects import Training
from hagane.ops.definition import Array
from hagane.runtime import InferenceSession, OrtValue, SessionOptions
from hagane.training.step.accumulation import GradientSums
from hagane.training.step.budget import MemoryChoice, StepMemory, parse_budget, within_budget
from hagane.training.step.byte_counts import bytes_of_results, bytes_of_states, sizes_of
from hagane.training.step.clipping import clip_by_norm
from hagane.training.step.large import LARGE, LargeUpdates
from hagane.training.step.planned import StepPlan, plan_of
from hagane.training.step.precision import checked_precision
from hagane.training.step.program import StepProgram, step_program
from hagane.training.step.refusals import check_hooks, check_parametrizations
from hagane.training.step.rules import RULES, Group, Rule, rule_of
from hagane.training.step.scaling import LossScaling, Scale
from hagane.training.step.sizes import Sizes

_MOST_PROGRAMS = 16

_logger = logging.getLogger("hagane.training")


class TorchStep:
    """One step of training: loss, gradients and update, compiled.

    A call is ``loss(module, *tensors).backward(); optimizer.step()``. Parameters,
    buffers and the states of the optimizer stay PyTorch's tensors and are current after each call;
    ``.grad`` is not set. The first size of tensors may vary without another compilation if all
    tensors share it; other sizes are fixed until they differ for the first time. Random numbers of
    dropout follow from PyTorch's generator.

    Args:
        loss: A function of a module and tensors that returns a tensor of one number. Its source
            is read.
        optimizer: One of ``torch.optim``: SGD, Adam, AdamW, NAdam, RAdam, Adamax, RMSprop,
            Adagrad or Adadelta. Learning rates may change between steps.
        options: Of the session that runs the step.
        memory_budget: The most bytes that a step may take beyond those in use now:
            a number, or a text such as ``"500MB"``. Values beyond it are computed again on the way
            back; results stay the same to the bit.
        accumulate: After how many calls parameters change, by the mean of the gradients.
        precision: ``"bf16"`` or ``"fp16"`` if products and convolutions are to take such numbers;
            parameters and all else stay float32. For float16 the loss is scaled as by PyTorch's
            ``GradScaler``, and a call whose gradients overflow updates nothing.
        max_norm: The norm of all gradients together that is not exceeded: they are scaled before
            the update, as by ``torch.nn.utils.clip_grad_norm_``.

    Raises:
        InvalidArgument: The optimizer is none of these, or has no parameters; the budget is no
            number of bytes, ``accumulate`` no number of calls; there is no such precision.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: Any,
        options: SessionOptions | None = None,
        *,
        memory_budget: int | float | str | None = None,
        accumulate: int = 1,
        precision: str | None = None,
        max_norm: float | None = None,
    ):
        rule = rule_of(optimizer)
        if rule is None:
            raise InvalidArgument(
                f"compile: expected an optimizer of torch.optim ({', '.join((*RULES, 'AdamW'))}), "
                f"got {type(optimizer).__module__}.{type(optimizer).__qualname__}"
            )
        self._names = list(inspect.signature(loss).parameters)
        if not self._names:
            raise InvalidArgument("compile: expected loss(module, *tensors), got no arguments")
        self._loss, self._optimizer, self._rule, self._options = loss, optimizer, rule, options
        self._budget = None if memory_budget is None else parse_budget(memory_budget)
        self._resident = sum(tensor.nbytes for tensor in _state_tensors(optimizer))
        self._sums = GradientSums(accumulate)
        self._precision = checked_precision(precision)
        self._scaling = LossScaling(used=precision == "fp16")
        self._clip = None if max_norm is None else clip_by_norm(max_norm)
        self._memory: StepMemory | None = None
        self._sizes: dict[object, Sizes] = {}
        self._programs: dict[object, _Program] = {}
        self._told: set[str] = set()

    def __call__(self, module: Any, *tensors: Any) -> Any:
        """Do one step.

        Args:
            module: A ``torch.nn.Module``.
            tensors: The other arguments of the loss: tensors, and plain values, which are fixed.

        Returns:
            The loss before the update, a tensor without axes.

        Raises:
            CaptureError: The loss cannot become a graph; file and line of each problem are named.
            InvalidArgument: The loss is no single number, or depends on no parameter.
            NotDifferentiable: An operator has no gradient.
        """
        self._check(module, tensors)
        program = self._program(module, tensors)
        self._memory = program.memory(tensors, self._resident)
        if self._budget is not None and self._memory.predicted > self._budget:
            # Planned for smaller sizes than these.
            program = self._program(module, tensors, anew=True)
            self._memory = program.memory(tensors, self._resident)
        return program.run(self._optimizer, tensors, self._sums, self._scaling)

    def plan(self, module: Any, *tensors: Any) -> StepPlan:
        """Return the plan of a step, which is neither compiled nor done.

        Args:
            module: As for a step.
            tensors: Likewise.

        Raises:
            CaptureError: As for a step; likewise the other errors of one.
        """
        self._check(module, tensors)
        return self._program(module, tensors).plan(tensors, self._resident, self._budget)

    def _check(self, module: Any, tensors: Sequence[Any]) -> None:
        """Raise ``InvalidArgument`` unless these are the arguments of a step."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(module, torch.nn.Module):
            raise InvalidArgument(
                f"step: expected a torch.nn.Module as first argument, got {type(module).__name__}"
            )
        if len(tensors) != len(self._names) - 1:
            raise InvalidArgument(
                f"step: expected a module and {', '.join(self._names[1:]) or 'nothing else'}, "
                f"got {len(tensors)} arguments after the module"
            )
        check_hooks(self._optimizer)

    def memory(self) -> dict[str, Any]:
        """Return the bytes of the last call's step beyond those at hand when it was compiled.

        Returns:
            ``predicted``: the planned peak. Of it, ``run``: values on the way, and weights in the
            engine's form; ``results``: new parameters, buffers and states; ``states``: tensors that
            the optimizer did not have yet. ``everything``: the peak if nothing were computed again.
            ``budget``: the bytes that were allowed, or None. ``again``: names of the nodes that are
            computed again; ``stages``: how many stages the forward half was divided into.

        Raises:
            InvalidArgument: There was no call yet.
        """
        if self._memory is None:
            raise InvalidArgument("step.memory: a step is planned by its first call; call it first")
        return {**self._memory.as_dict(), "budget": self._budget}

    @property
    def loss_scale(self) -> Scale | None:
        """The scale of the next call's loss, for ``precision="fp16"``; else None."""
        return self._scaling.now

    def set_loss_scale(self, **numbers: Any) -> None:
        """Go on from a scale that ``loss_scale.as_dict()`` returned before.

        Args:
            numbers: By name.

        Raises:
            InvalidArgument: The step has no scale, or they are no numbers of one.
        """
        self._scaling.set(numbers)

    def _program(self, module: Any, tensors: Sequence[Any], *, anew: bool = False) -> _Program:
        import torch

        plain = tuple(
            (str(item.dtype), item.dim()) if isinstance(item, torch.Tensor) else repr(item)
            for item in tensors
        )
        modes = tuple(part.training for part in module.modules())
        kind = (id(module), modes, plain, self._settings(), self._sums.share)
        shapes = [tuple(t.shape) if isinstance(t, torch.Tensor) else () for t in tensors]
        sizes = self._sizes.get(kind)
        if sizes is None:
            sizes = self._sizes[kind] = Sizes(shapes)
        texts = tuple(
            _type_text(item, names) if isinstance(item, torch.Tensor) else item
            for item, names in zip(tensors, sizes.describe(shapes), strict=True)
        )
        key = (kind, tuple(map(str, texts)))
        found = self._programs.pop(key, None)
        if found is None or anew:
            found = self._compile(module, texts, tensors)
        self._programs[key] = found  # the latest is the last
        if len(self._programs) > _MOST_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return found

    def _settings(self) -> object:
        """Return the settings of the optimizer that programs rest on."""
        return tuple(
            (
                tuple(repr(group.get(name)) for name in self._rule.fixed),
                bool(group.get("weight_decay")),
                tuple(id(p) for p in group["params"] if p.requires_grad),
            )
            for group in self._optimizer.param_groups
        )

    def _compile(self, module: Any, types: Sequence[Any], tensors: Sequence[Any]) -> _Program:
        check_parametrizations(module, self._names[0])
        training = Training()
        captured = capture_object(self._loss, (module, *types), {}, MeaningTables(), training)
        groups: list[Group] = self._optimizer.param_groups
        numbers = {id(p): n for n, group in enumerate(groups) for p in group["params"]}
        paths = {id(array): name for name, array in _arrays(module, self._names[0])}
        paths = {key: captured.names.get(key, name) for key, name in paths.items()}
        trained = {
            paths[id(p)]: numbers[id(p)]
            for p in module.parameters()
            if p.requires_grad and id(p) in numbers
        }
        made = step_program(
            captured.graph,
            [*paths.values()],
            trained,
            groups,
            self._rule,
            share=self._sums.share,
            prepare=self._clip,
            precision=self._precision,
            apart=LARGE,
        )
        if made.unreached:
            self._tell(
                f"the loss does not depend on {', '.join(made.unreached)}: the step leaves them as "
                "they are"
            )
        choice = None
        if self._budget is not None:
            sizes = sizes_of(made.model.graph, self._names[1:], tensors)
            results = bytes_of_results(made.model.graph, sizes)
            beside = results + max(0, bytes_of_states(made.model.graph, made) - self._resident)
            choice = within_budget(made.model, sizes, self._budget, beside, self._options)
            made = replace(made, model=choice.model)
            gc.collect()  # the graphs that were tried would stay for a while
        return _Program(
            made,
            self._rule,
            module,
            paths,
            self._names,
            self._options,
            choice,
            groups,
            dict(training.changes),
        )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _logger.warning(text)


class _Program:
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
        moved: Mapping[str, int] | None = None,
    ):
        self._moved = Counter(moved or {})  # buffers, and how often a call of the loss moves them
        self._choice = choice
        self._made, self._rule, self._module = made, rule, module
        self._arguments = arguments
        self._inputs = {str(value.name) for value in made.model.graph.inputs}
        self._outputs = [str(value.name) for value in made.model.graph.outputs]
        # Arrays of the module by their own path; the input may be called by another.
        self._called = {
            name: paths[id(array)]
            for name, array in _arrays(module, arguments[0])
            if paths.get(id(array)) in self._inputs
        }
        self._memories: dict[object, StepMemory] = {}
        if choice is not None:  # its plan holds for this graph alone
            options = replace(options or SessionOptions(), specialize=False, tune="off")
        self._options, self._groups = options, groups
        self._gradients: dict[str, OrtValue] = {}  # of large parameters, used again by each call

    @cached_property
    def _session(self) -> InferenceSession:
        return InferenceSession(self._made.model, self._options)

    @cached_property
    def _large(self) -> LargeUpdates:
        return LargeUpdates(self._made, self._groups, self._rule, self._options)

    def plan(self, tensors: Sequence[Any], resident: int, budget: int | None) -> StepPlan:
        """Return the plan of a call, without compiling."""
        graph = self._made.model.graph
        sizes = sizes_of(graph, self._arguments[1:], tensors)
        states = max(0, bytes_of_states(graph, self._made) - resident)
        return plan_of(self._made.model, sizes, states, budget, self._choice, self._options)

    def memory(self, tensors: Sequence[Any], resident: int) -> StepMemory:
        """Return the planned memory of a call.

        Args:
            tensors: The arguments of the call behind the module.
            resident: Bytes of the optimizer's states that were there before.
        """
        shapes = tuple(tuple(getattr(item, "shape", ())) for item in tensors)
        if shapes not in self._memories:
            graph = self._made.model.graph
            given = {
                name: shape
                for name, shape in zip(self._arguments[1:], shapes, strict=True)
                if name in self._inputs
            }
            plan = self._session.memory_plan(given)
            sizes = sizes_of(graph, self._arguments[1:], tensors)
            choice = self._choice
            self._memories[shapes] = StepMemory(
                run=plan.peak,
                results=bytes_of_results(graph, sizes),
                states=max(0, bytes_of_states(graph, self._made) - resident),
                saved=0 if choice is None else choice.everything - choice.arena,
                again=() if choice is None else choice.again,
                stages=0 if choice is None else choice.stages,
            )
        return self._memories[shapes]

    def run(
        self, optimizer: Any, tensors: Sequence[Any], sums: GradientSums, scaling: LossScaling
    ) -> Any:
        """Do one step and return the loss."""
        import torch

        arrays = {
            self._called[name]: array
            for name, array in _arrays(self._module, self._arguments[0])
            if name in self._called
        }
        feed = {name: _view(array) for name, array in arrays.items()}
        for name, item in zip(self._arguments[1:], tensors, strict=True):
            if isinstance(item, torch.Tensor) and name in self._inputs:
                feed[name] = _view(item)
        if "seed" in self._inputs:
            drawn = torch.randint(0, 2**32, (2,), dtype=torch.int64)
            feed["seed"] = drawn.numpy().astype(np.uint32)
        parameters = [arrays[item.name] for item in self._made.updated]
        before = None
        if scaling.now is not None:  # an overflow leaves the optimizer as it was
            before = [(p, dict(optimizer.state[p]) if p in optimizer.state else None)
                      for p in parameters]  # fmt: skip
        scalars = self._scalars(optimizer, arrays)
        feed.update(scaling.feed())
        feed.update({name: value for name, value in scalars.items() if name in self._inputs})
        states = self._states(optimizer, arrays)
        views = {name: _view(tensor) for name, tensor in states.items()}
        feed.update({name: view for name, view in views.items() if name in self._inputs})
        summed = {name: arrays[name] for name in self._made.summed}
        feed.update(sums.feed({name: (x, _view(x)) for name, x in summed.items()}))
        results = dict(zip(self._outputs, self._run(feed), strict=True))
        loss = results.pop(self._outputs[0])
        follow = scaling.advance(results)
        sums.advance(summed, results)
        results = {k: x for k, x in results.items() if not k.endswith(".gradient_sum.new")}
        gradients = {
            item.name: results.pop(f"{item.name}.gradient")
            for item in self._made.updated
            if item.apart
        }
        changed = {**arrays, **states}
        if follow:
            own = {name: _view(arrays[name]) for name in gradients}
            self._large.update(gradients, {**own, **views}, scalars)
        else:
            kept = {f"{name}.new" for name in (*(i.name for i in self._made.updated), *states)}
            results = {name: result for name, result in results.items() if name not in kept}
            for parameter, state in before or ():
                optimizer.state.pop(parameter, None)
                if state is not None:
                    optimizer.state[parameter] = state
        with torch.no_grad():
            for name, result in results.items():
                _put(changed[name.removesuffix(".new")], result)
            for path, part in self._module.named_modules(prefix=self._arguments[0]):
                count = self._moved[f"{path}.running_mean"]
                if count and part.num_batches_tracked is not None:
                    part.num_batches_tracked.add_(count)
        if self._made.updated:
            optimizer._opt_called = True  # by which schedules of learning rates know of a step
        return torch.from_numpy(np.array(loss)).reshape(())

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

    def _scalars(self, optimizer: Any, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Return the numbers of this step, which it counts."""
        import torch

        rule, seen = self._rule, dict[int, dict[str, float]]()
        for item in self._made.updated:
            keeps = rule.counted or item.states
            kept = optimizer.state[arrays[item.name]] if keeps else {}
            group = optimizer.param_groups[item.group]
            number = 1 + int(kept.get("step", 0))
            if not rule.counted:
                number = 1 if kept.get("momentum_buffer") is None else 2
            numbers = {
                name: float(kept.get(name, first)) for name, first in (rule.kept or {}).items()
            }
            scalars = dict(rule.scalars(group, number, numbers))
            if rule.counted:
                kept["step"] = torch.tensor(float(number))
            kept.update({name: torch.tensor(value) for name, value in numbers.items()})
            if seen.setdefault(item.group, scalars) != scalars:
                raise InvalidArgument(
                    f"step: parameters of group {item.group} of the optimizer were updated "
                    "differently often; give those that were added later a group of their own"
                )
        return {
            text: np.array(seen[number][name], np.float64)
            for number, names in enumerate(self._made.scalars)
            for name, text in names.items()
            if number in seen
        }

    def _states(self, optimizer: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors that the optimizer keeps; missing ones are made."""
        import torch

        found = {}
        for item in self._made.updated:
            parameter = arrays[item.name]
            group = optimizer.param_groups[item.group]
            for state in item.states:
                kept = optimizer.state[parameter]
                if kept.get(state) is None:
                    first = group.get("initial_accumulator_value", 0.0)
                    kept[state] = torch.full_like(parameter.detach(), first)
                found[f"{item.name}.{state}"] = kept[state]
        return found


def _state_tensors(optimizer: Any) -> Iterator[Any]:
    for states in optimizer.state.values():
        yield from (value for value in states.values() if hasattr(value, "nbytes"))


def _arrays(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield parameters and buffers with their paths."""
    yield from module.named_parameters(prefix=prefix)
    yield from module.named_buffers(prefix=prefix)


def _type_text(tensor: Any, sizes: Sequence[str]) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}[{', '.join(sizes)}]"


def _view(tensor: Any) -> Array:
    """Return a tensor's memory as an array."""
    import torch

    plain = tensor.detach()
    if plain.dtype == torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy().view(ir.DataType.BFLOAT16.numpy()))
    return np.asarray(plain.numpy())


def _put(target: Any, result: Array) -> None:
    """Write an array into a tensor."""
    import torch

    if target.dtype == torch.bfloat16:
        target.copy_(torch.from_numpy(result.view(np.int16)).view(torch.bfloat16))
    else:
        target.copy_(torch.from_numpy(result))
