"""The compiled training step of a link of hagane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.emitting.effects import Training
from hagane.graph.types import TensorType
from hagane.nn.autograd.configuration import config, no_backprop_mode, using_config
from hagane.nn.autograd.variable import Variable
from hagane.nn.model.link import Link
from hagane.nn.optimizers.optimizer import GradientMethod
from hagane.ops.definition import Array
from hagane.runtime import SessionOptions
from hagane.training.step.arguments import Given, Signature, check_result
from hagane.training.step.base import Step
from hagane.training.step.changed_state import ChangedArguments, read_state
from hagane.training.step.hooks import apply_hooks, checked_hooks, settings_of
from hagane.training.step.links.program import LinkProgram, numbers_of
from hagane.training.step.links.rules import LINK_RULES, link_rule_of
from hagane.training.step.memory.planned import StepPlan
from hagane.training.step.open_numbers import check_numbers
from hagane.training.step.program import step_program
from hagane.training.step.read_arrays import read_arrays
from hagane.training.step.rules import Group, Rule


class LinkStep(Step[LinkProgram]):
    """One step of training a link: loss, gradients and update, compiled.

    A call is ``optimizer.update(loss, *arguments)``, with the same random numbers:
    masks of dropout are drawn from ``numpy.random`` in the order of the program. Parameters,
    persistent arrays and the optimizer's states are changed in place; gradients are not kept. A
    first call while parameters have no arrays yet is done by ``optimizer.update`` itself.

    Args:
        loss: A function of a link and arrays that returns a variable of one number, or a link that
            does so of arrays. Its source is read.
        optimizer: One of ``hagane.optimizers`` after ``setup``. Hyperparameters may change between
            steps.
        options: Of the session that runs the step.
        memory_budget: The most bytes that a step may take, as for :class:`TorchStep`.
        accumulate: After how many calls parameters change, as there.
        precision: ``"bf16"`` or ``"fp16"``, as there.

    Raises:
        InvalidArgument: The optimizer has no target, another rule than hagane's own, hooks that
            are not compiled, or a scaled loss; the budget is no number of bytes.
    """

    _unreached = "their gradients are zeros"
    updates = True  # an updater calls it instead of ``optimizer.update``

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: Any,
        options: SessionOptions | None = None,
        *,
        memory_budget: int | float | str | None = None,
        accumulate: int = 1,
        precision: str | None = None,
    ):
        if optimizer.target is None:
            raise InvalidArgument(
                f"compile: the optimizer {type(optimizer).__name__} has no target: call "
                "setup(link) first"
            )
        self._loss, self._optimizer = loss, optimizer
        if isinstance(loss, Link):
            self._signature = Signature(loss.forward, None)
        else:
            self._signature = Signature(loss, "link")
        resident = sum(array.nbytes for array in self._kept_arrays())
        super().__init__(options, resident, memory_budget, accumulate, precision)
        self._setting()  # settings without a compiled form are refused at once

    def __call__(self, *arguments: Any, **named: Any) -> Variable:
        """Do one step.

        Args:
            arguments: Those of the loss: a link first if it is a function, then arrays, and plain
                values, which are fixed.
            named: Likewise, by name.

        Returns:
            The loss before the update.

        Raises:
            CaptureError: The loss cannot become a graph; file and line of each problem are named.
            InvalidArgument: The loss is no single number, or depends on no parameter.
            NotDifferentiable: An operator has no gradient.
        """
        model, given = self._given(arguments, named)
        if any(param.array is None for param in self._optimizer.target.params()):
            return self._by_hand(arguments, named)
        program = self._planned(model, given)
        return program.run(self._optimizer, given, self._sums, self._scaling)

    def plan(self, *arguments: Any, **named: Any) -> StepPlan:
        """Return the plan of a step, which is neither compiled nor done.

        Parameters without arrays get them, from a call of the loss.

        Args:
            arguments: As for a step.
            named: Likewise.

        Raises:
            CaptureError: As for a step; likewise the other errors of one.
        """
        model, given = self._given(arguments, named)
        if any(param.array is None for param in self._optimizer.target.params()):
            with no_backprop_mode(), using_config("train", False):
                self._loss(*arguments, **named)
        program = self._program(model, given)
        return program.plan(given.values, self._resident, self._budget)

    def _given(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Link, Given]:
        """Return the link and the other arguments of a call."""
        model: Any = self._loss
        given = arguments
        if self._signature.model:
            model, given = (arguments[0], arguments[1:]) if arguments else (None, ())
        if not isinstance(model, Link):
            raise InvalidArgument(
                f"step: expected a link as first argument, got {type(model).__name__}"
            )
        return model, Given(self._signature.complete(given, named))

    def _by_hand(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Variable:
        """Do a step without compiling."""
        found: list[Any] = []

        def loss(*given: Any, **named: Any) -> Any:
            found.append(self._loss(*given, **named))
            return found[0]

        self._optimizer.update(loss, *arguments, **named)
        return Variable(np.array(found[0].array))

    def _kept_arrays(self) -> Iterator[Array]:
        for param in _followed(self._optimizer):
            yield from (x for x in (param.update_rule.state or {}).values() if hasattr(x, "nbytes"))

    def _setting(self) -> tuple[Rule, list[Any]]:
        """Return rule and hooks of the optimizer.

        Raises:
            InvalidArgument: It is none that can be compiled.
        """
        parameters = _followed(self._optimizer)
        rules = {id(r): r for p in parameters if (r := link_rule_of(p.update_rule)) is not None}
        plain = type(self._optimizer).update is GradientMethod.update
        strange = [p for p in parameters if link_rule_of(p.update_rule) is None]
        if strange or len(rules) != 1 or not plain:
            known = ", ".join(name.removesuffix("Rule") for name in LINK_RULES)
            raise InvalidArgument(
                f"compile: expected an optimizer of hagane.optimizers with its own rule for all "
                f"parameters ({known}), got {type(self._optimizer).__qualname__}"
            )
        if self._optimizer._loss_scale is not None:
            raise InvalidArgument(
                "compile: the optimizer scales its loss, which is not compiled; call "
                "optimizer.update"
            )
        if any(p.update_rule._use_fp32_update for p in parameters):
            raise InvalidArgument("compile: use_fp32_update is not compiled; call optimizer.update")
        return next(iter(rules.values())), checked_hooks(self._optimizer, parameters)

    def _program(self, model: Any, given: Given, *, anew: bool = False) -> LinkProgram:
        rule, hooks = self._setting()
        groups, numbers = _grouped(self._optimizer)
        fixed = [(*(group[n] for n in rule.fixed), bool(group.get("weight_decay_rate")))
                 for group in groups]  # fmt: skip
        enabled = tuple(map(_is_updated, self._optimizer.target.params()))
        kind = (id(model), bool(config.train), settings_of(hooks), str(fixed),
                tuple(numbers.items()), enabled, self._sums.share)  # fmt: skip

        def made(sizes: Sequence[Sequence[str]], free: frozenset[str]) -> LinkProgram:
            return self._compile(model, given, sizes, free, rule, hooks, (groups, numbers))

        return self._found(kind, given, made, anew=anew)

    def _compile(
        self,
        model: Any,
        given: Given,
        sizes: Sequence[Sequence[str]],
        free: frozenset[str],
        rule: Rule,
        hooks: Sequence[Any],
        grouped: tuple[list[Group], dict[int, int]],
    ) -> LinkProgram:
        training = Training(masks=[])
        types, named = given.types(sizes, free)
        arguments = (model, *types) if self._signature.model else tuple(types)
        captured = capture_object(self._loss, arguments, named, MeaningTables(), training)
        captured = read_state(captured)
        check_result(captured.structure)
        check_numbers(captured.graph, free)
        written = ChangedArguments(captured.changes)
        arrays = {captured.names[id(x)]: x for x in _arrays(model) if id(x) in captured.names}
        read = read_arrays(captured, {id(x) for x in arrays.values()}, training.updates)
        known = {id(x) for x in (*arrays.values(), *read.values())}
        unread = (p for p in self._optimizer.target.params() if id(p) not in known)
        arrays |= {**read, **{f"unread.{n}": p for n, p in enumerate(unread)}}
        types_of = {
            name: TensorType(ir.DataType.from_numpy(x.dtype), x.shape)
            for name, x in arrays.items()
            if isinstance(x, Variable)
        }
        groups, numbers = grouped
        trained = {name: numbers[id(x)] for name, x in arrays.items() if id(x) in numbers}
        frozen = {name for name, x in arrays.items() if id(x) in numbers and not _is_updated(x)}

        def prepare(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
            found = apply_hooks(hooks, pairs)
            return {name: g for name, g in found.items() if name not in frozen}

        made = step_program(
            captured.graph,
            list(arrays),
            trained,
            groups,
            rule,
            prepare,
            self._sums.share,
            self._precision,
            unread=types_of,
        )
        made, choice = self._chosen(made, given)
        program = LinkProgram(
            made,
            rule,
            captured,
            training,
            arrays,
            list(given.leaves),
            self._options,
            choice,
            written,
        )
        program.not_one = captured.not_one
        return program


def _followed(optimizer: Any) -> list[Any]:
    """Return the parameters that have a rule; those added after ``setup`` have none, and stay."""
    return [p for p in optimizer.target.params() if p.update_rule is not None]


def _is_updated(param: Any) -> bool:
    return param.update_rule is not None and bool(param.update_rule.enabled)


def _grouped(optimizer: Any) -> tuple[list[Group], dict[int, int]]:
    """Return the different settings, and the number of that of each parameter by identity.

    Raises:
        InvalidArgument: The link has a parameter at two places.
    """
    groups: list[Group] = []
    seen: dict[str, int] = {}
    numbers: dict[int, int] = {}
    for param in optimizer.target.params():
        if id(param) in numbers:
            names = " and ".join(n for n, p in optimizer.target.namedparams() if p is param)
            raise InvalidArgument(
                f"step: {names} are one parameter, which optimizer.update follows once for each "
                "place, and a compiled step once: leave it in one link and read it from there in "
                "the other, as in F.linear(x, self.first.W), or train without compiling"
            )
        if param.update_rule is None:
            numbers[id(param)] = 0  # (of no meaning: it stays as it is)
            continue
        group = numbers_of(param)
        key = f"{sorted(group.items())} {param.update_rule.t}"
        if key not in seen:
            seen[key] = len(groups)
            groups.append(group)
        numbers[id(param)] = seen[key]
    return groups, numbers


def _arrays(model: Link) -> Iterator[Any]:
    """Yield parameters and persistent arrays."""
    yield from model.params()
    for link in model.links():
        for name in sorted(link._persistent):
            found = getattr(link, name)
            if isinstance(found, np.ndarray):
                yield found
