"""The compiled training step of a module of PyTorch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.effects import Training
from hagane.runtime import SessionOptions
from hagane.training.step.base import Step
from hagane.training.step.clipping import clip_by_norm
from hagane.training.step.large import LARGE
from hagane.training.step.planned import StepPlan
from hagane.training.step.program import step_program
from hagane.training.step.read_arrays import guards_of, read_arrays
from hagane.training.step.refusals import check_hooks, check_parametrizations
from hagane.training.step.rules import RULES, Group, rule_of
from hagane.training.step.sizes import Sizes
from hagane.training.step.torch_program import TorchProgram, arrays_of, moved_by


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
        self._loss, self._optimizer, self._rule = loss, optimizer, rule
        resident = sum(tensor.nbytes for tensor in _state_tensors(optimizer))
        super().__init__(options, resident, memory_budget, accumulate, precision)
        self._clip = None if max_norm is None else clip_by_norm(max_norm)

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
        program = self._planned(module, tensors)
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

    def _program(self, module: Any, tensors: Sequence[Any], *, anew: bool = False) -> TorchProgram:
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
        changed = "" if found is None else found.guards.broken()
        if changed:
            self._tell_changed(changed)
        if found is None or anew or changed:
            found = self._compile(module, texts, tensors)
        return self._keep(key, found)

    def _settings(self) -> object:
        """Return the settings of the optimizer that programs rest on."""
        return tuple(
            (
                tuple(repr(group.get(name)) for name in self._rule.fixed),
                bool(group.get("weight_decay")),
                bool(group.get("momentum")),
                tuple(id(p) for p in group["params"] if p.requires_grad),
            )
            for group in self._optimizer.param_groups
        )

    def _compile(self, module: Any, types: Sequence[Any], tensors: Sequence[Any]) -> TorchProgram:
        import torch

        check_parametrizations(module, self._names[0])
        training = Training()
        captured = capture_object(self._loss, (module, *types), {}, MeaningTables(), training)
        for attribute, _ in captured.state:
            raise InvalidArgument(
                f"step: the loss changes '{attribute.path}' of a {type(attribute.owner).__name__}, "
                "which a compiled step does not: return it from the module and change it between "
                "steps"
            )
        groups: list[Group] = self._optimizer.param_groups
        numbers = {id(p): n for n, group in enumerate(groups) for p in group["params"]}
        paths = {id(array): name for name, array in arrays_of(module, self._names[0])}
        paths = {key: captured.names.get(key, name) for key, name in paths.items()}
        others = read_arrays(captured, paths.keys(), training.updates)
        named = [(name, p) for name, p in others.items() if isinstance(p, torch.Tensor)]
        trained = {
            name: numbers[id(p)]
            for name, p in [*((paths[id(p)], p) for p in module.parameters()), *named]
            if p.requires_grad and id(p) in numbers
        }
        made = step_program(
            captured.graph,
            [*paths.values(), *others],
            trained,
            groups,
            self._rule,
            share=self._sums.share,
            prepare=self._clip,
            precision=self._precision,
            apart=LARGE,
        )
        made, choice = self._chosen(made, self._names[1:], tensors)
        return TorchProgram(
            made,
            self._rule,
            module,
            paths,
            self._names,
            self._options,
            choice,
            groups,
            moved_by(
                [*module.modules(), *captured.reads.modules],
                paths | {id(x): name for name, x in others.items()},
                training.changes,
            ),
            guards_of(captured, training.updates),
            others,
        )


def _state_tensors(optimizer: Any) -> Iterator[Any]:
    for states in optimizer.state.values():
        yield from (value for value in states.values() if hasattr(value, "nbytes"))


def _type_text(tensor: Any, sizes: Sequence[str]) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}[{', '.join(sizes)}]"
