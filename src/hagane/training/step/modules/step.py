"""The compiled training step of a module of PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.emitting.effects import Training
from hagane.graph.types import TensorType
from hagane.runtime import SessionOptions
from hagane.training.step.arguments import Given, Signature, check_result
from hagane.training.step.base import Step
from hagane.training.step.changed_state import ChangedArguments, ChangedState, read_state
from hagane.training.step.clipping import clip_by_norm
from hagane.training.step.memory.planned import StepPlan
from hagane.training.step.modules.hooks import has_hooks
from hagane.training.step.modules.large import LARGE
from hagane.training.step.modules.noise import NoiseSource
from hagane.training.step.modules.program import TorchProgram, arrays_of, moved_by, view_of
from hagane.training.step.modules.refusals import (
    check_arguments,
    check_computed,
    check_groups,
    check_memory,
    check_module_hooks,
    check_parameter_hooks,
)
from hagane.training.step.open_numbers import check_numbers
from hagane.training.step.program import step_program
from hagane.training.step.read_arrays import guards_of, read_arrays
from hagane.training.step.rules import BY_ITSELF, Group, rule_of

_GATHERED: dict[type, str] = {
    list: ": gather the modules in a torch.nn.ModuleList",
    tuple: ": gather the modules in a torch.nn.ModuleList",
    dict: ": gather the modules in a torch.nn.ModuleDict",
}

_COMPUTED = "compute it in the loss, or pass its .detach()"
_COMPUTED_READ = "compute it in the loss"


class TorchStep(Step[TorchProgram]):
    """One step of training: loss, gradients and update, compiled.

    A call is ``loss(module, *tensors).backward(); optimizer.step()``. Parameters,
    buffers and the states of the optimizer stay PyTorch's tensors and are current after each call;
    ``.grad`` is not set. The first size of tensors may vary without another compilation if all
    tensors share it; other sizes are fixed until they differ for the first time. Random numbers of
    dropout follow from PyTorch's generator.

    Args:
        loss: A function of a module and tensors that returns a tensor of one number. Its source
            is read.
        optimizer: A ``torch.optim.Optimizer``. SGD, Adam, AdamW, NAdam, RAdam, Adamax, RMSprop,
            Adagrad and Adadelta are compiled; of others ``step`` is called with the gradients.
            Learning rates may change between steps.
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
        InvalidArgument: The optimizer is none, or calls the loss itself; the budget is no
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
        self._rule = self._unhooked = rule_of(optimizer)
        self._rule_of = _function(optimizer.step)
        is_module = isinstance(loss, sys.modules["torch"].nn.Module)
        self._signature = Signature(getattr(loss, "forward", loss) if is_module else loss, "module")
        if is_module and not self._signature.names:
            raise InvalidArgument(
                f"compile: expected loss(module, *tensors), got a {type(loss).__qualname__} that "
                "takes one argument: write a function that calls it and returns the loss"
            )
        self._loss, self._optimizer = loss, optimizer
        resident = sum(tensor.nbytes for tensor in _state_tensors(optimizer))
        super().__init__(options, resident, memory_budget, accumulate, precision)
        self._settings_given["max_norm"] = max_norm
        self._clip = None if max_norm is None else clip_by_norm(max_norm)
        changing = {
            "accumulate": accumulate != 1,
            "max_norm": self._clip,
            "precision='fp16'": precision == "fp16",
        }
        self._alone = next((name for name, there in changing.items() if there), "")

    def __call__(self, module: Any, /, *tensors: Any, **named: Any) -> Any:
        """Do one step.

        Args:
            module: A ``torch.nn.Module``.
            tensors: The other arguments of the loss: tensors and arrays, alone or in dicts, lists,
                tuples and objects; and plain values, which are fixed.
            named: Likewise, by name.

        Returns:
            The loss before the update, a tensor without axes.

        Raises:
            CaptureError: The loss cannot become a graph; file and line of each problem are named.
            InvalidArgument: The loss is no single number, or depends on no parameter.
            NotDifferentiable: An operator has no gradient.
        """
        given = self._given(module, tensors, named)
        program = self._planned(module, given)
        return program.run(self._optimizer, given, self._sums, self._scaling)

    def plan(self, module: Any, /, *tensors: Any, **named: Any) -> StepPlan:
        """Return the plan of a step, which is neither compiled nor done.

        Args:
            module: As for a step.
            tensors: Likewise.
            named: Likewise.

        Raises:
            CaptureError: As for a step; likewise the other errors of one.
        """
        given = self._given(module, tensors, named)
        return self._program(module, given).plan(given.values, self._resident, self._budget)

    def _given(self, module: Any, tensors: Sequence[Any], named: Mapping[str, Any]) -> Given:
        """Return the arguments of a step; raise ``InvalidArgument`` unless they are some."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(module, torch.nn.Module):
            raise InvalidArgument(
                f"step: expected a torch.nn.Module as first argument, got {type(module).__name__}"
                f"{_GATHERED.get(type(module), '')}"
            )
        if _function(self._optimizer.step) is not self._rule_of:  # a program has put another there
            self._unhooked = rule_of(self._optimizer)
            self._rule_of = _function(self._optimizer.step)
        given = Given(self._signature.complete(tensors, named))
        check_groups(self._optimizer)
        self._rule = BY_ITSELF if has_hooks(self._optimizer, self._alone) else self._unhooked
        check_memory(given.leaves.items(), "pass its .cpu()")
        check_arguments(given.leaves, self._optimizer.param_groups)
        return given

    def _program(self, module: Any, given: Given, *, anew: bool = False) -> TorchProgram:
        modes = tuple(part.training for part in module.modules())
        share = (self._sums.share, frozenset(map(id, self._sums.held)))
        kind = (id(module), modes, self._settings(), _casting(), share)

        def check(found: TorchProgram) -> None:
            check_module_hooks(found.modules, module, self._signature.model)
            check_parameter_hooks(found.modules, module, self._signature.model, groups)

        def made(sizes: Sequence[Sequence[str]], free: frozenset[str]) -> TorchProgram:
            return self._compile(module, given, sizes, free)

        groups = self._optimizer.param_groups
        found = self._found(kind, given, made, check=check, anew=anew)
        arguments = [(f"the argument '{name}'", value) for name, value in given.leaves.items()]
        check_computed(arguments, groups, found.foreign, _COMPUTED)
        return found

    def _settings(self) -> object:
        """Return the settings of the optimizer that programs rest on."""
        if self._rule.by_itself:
            return tuple(
                tuple(id(p) for p in group["params"] if p.requires_grad)
                for group in self._optimizer.param_groups
            )
        return tuple(
            (
                tuple(repr(group.get(name)) for name in self._rule.fixed),
                bool(group.get("weight_decay")),
                bool(group.get("momentum")),
                tuple(id(p) for p in group["params"] if p.requires_grad),
            )
            for group in self._optimizer.param_groups
        )

    def _compile(
        self, module: Any, given: Given, sizes: Sequence[Sequence[str]], free: frozenset[str]
    ) -> TorchProgram:
        import torch

        prefix = self._signature.model
        check_memory(arrays_of(module, prefix), "move the module by .cpu() or .to_empty()")
        training = Training(noises=[], models={prefix: module})
        types, named = given.types(sizes, free)
        loss, casting = self._loss, _casting()
        if casting is not None:  # around the call of the step
            loss = torch.autocast("cpu", casting)(loss)
        captured = capture_object(loss, (module, *types), named, MeaningTables(), training)
        captured = read_state(captured)
        check_result(captured.structure)
        check_numbers(captured.graph, free)
        groups: list[Group] = self._optimizer.param_groups
        check_module_hooks(captured.reads.modules, module, prefix)
        check_parameter_hooks(captured.reads.modules, module, prefix, groups)
        numbers = {id(p): n for n, group in enumerate(groups) for p in group["params"]}
        changed = ChangedState(
            captured.state,
            [*module.modules(), *captured.reads.modules],
            {str(value.name) for value in captured.graph.inputs},
            {id(p) for group in groups for p in group["params"] if p.requires_grad},
        )
        written = ChangedArguments(captured.changes)
        paths = {id(array): name for name, array in arrays_of(module, prefix)}
        paths = {key: captured.names.get(key, name) for key, name in paths.items()}
        others = read_arrays(captured, paths.keys(), training.updates)
        read = [(name, p) for name, p in others.items() if isinstance(p, torch.Tensor)]
        registered = torch.nn.Module.parameters(module)  # whatever else its class has by that name
        trained = {
            name: numbers[id(p)]
            for name, p in [*((paths[id(p)], p) for p in registered), *read]
            if p.requires_grad and id(p) in numbers
        }
        known = {*paths, *(id(p) for _, p in read)}
        held, elsewhere = self._held(paths, read, numbers)
        foreign = [
            f"parameter {index} of group {number} of the optimizer"
            for number, group in enumerate(groups)
            for index, p in enumerate(group["params"])
            if p.requires_grad and id(p) not in known
        ]
        reads = [(f"'{name}', which the loss reads,", value) for name, value in others.items()]
        check_computed(reads, groups, foreign, _COMPUTED_READ)
        made = step_program(
            captured.graph,
            [*paths.values(), *others],
            trained,
            groups,
            self._rule,
            share=self._sums.share,
            prepare=self._clip,
            precision=self._precision,
            apart=0 if self._rule.by_itself else LARGE,
            held=held,
        )
        made = replace(made, unreached=(*made.unreached, *foreign))
        made, choice = self._chosen(made, given)
        program = TorchProgram(
            made,
            self._rule,
            module,
            paths,
            [prefix, *given.leaves],
            self._options,
            choice,
            groups,
            moved_by(
                [*module.modules(), *captured.reads.modules],
                training.counted,
                {id(attribute.now()) for attribute, _ in captured.state},
            ),
            guards_of(captured, training.updates),
            others | elsewhere,
            tuple(captured.reads.modules),
            foreign,
            written,
            changed,
            NoiseSource(training.noises or (), made.model.graph),
        )
        program.not_one = captured.not_one
        return program

    def _held(
        self, paths: Mapping[int, str], read: Sequence[tuple[str, Any]], numbers: Mapping[int, int]
    ) -> tuple[dict[str, tuple[int, TensorType]], dict[str, Any]]:
        """Return the parameters with sums of earlier calls, and those elsewhere than in the module.

        Args:
            paths: The names of the module's parameters by identity.
            read: Names and parameters that the loss reads besides.
            numbers: The groups of the optimizer's parameters by identity.
        """
        names = {id(p): name for name, p in read} | dict(paths)
        held, elsewhere = dict[str, tuple[int, TensorType]](), dict[str, Any]()
        for place, parameter in enumerate(self._sums.held):
            if id(parameter) not in numbers:
                continue
            name = names.get(id(parameter))
            if name is None:
                name = f"held.{place}"
                elsewhere[name] = parameter
            dtype = ir.DataType.from_numpy(view_of(parameter).dtype)
            held[name] = numbers[id(parameter)], TensorType(dtype, tuple(parameter.shape))
        return held, elsewhere


def _function(method: Any) -> Any:
    """Return the function of a method that an object makes anew each time it is asked for it."""
    return getattr(method, "__func__", method)


def _casting() -> Any:
    """Return the element type of ``torch.autocast`` around the present call; None without one."""
    import torch

    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


def _state_tensors(optimizer: Any) -> Iterator[Any]:
    for states in optimizer.state.values():
        yield from (value for value in states.values() if hasattr(value, "nbytes"))
