"""The compiled training step of a link of hagane."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import CaptureError, InvalidArgument
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.capture.interface.structure import Example
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.effects import Training
from hagane.graph.types import TensorType
from hagane.nn.autograd.configuration import config, no_backprop_mode, using_config
from hagane.nn.autograd.variable import Variable
from hagane.nn.model.link import Link
from hagane.nn.optimizers.optimizer import GradientMethod
from hagane.ops.definition import Array
from hagane.runtime import SessionOptions
from hagane.training.step.base import Step
from hagane.training.step.hooks import apply_hooks, checked_hooks, settings_of
from hagane.training.step.link_program import LinkProgram, numbers_of
from hagane.training.step.link_rules import LINK_RULES, link_rule_of
from hagane.training.step.planned import StepPlan
from hagane.training.step.program import step_program
from hagane.training.step.read_arrays import read_arrays
from hagane.training.step.rules import Group, Rule
from hagane.training.step.sizes import Sizes


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
        function = loss.forward if isinstance(loss, Link) else loss
        names = list(inspect.signature(function).parameters)
        if not isinstance(loss, Link) and not names:
            raise InvalidArgument("compile: expected loss(link, *arrays), got no arguments")
        self._prefix = "" if isinstance(loss, Link) else names.pop(0)
        resident = sum(array.nbytes for array in self._kept_arrays())
        super().__init__(options, resident, memory_budget, accumulate, precision)
        self._closed: set[object] = set()  # kinds of calls that are compiled for each size
        self._setting()  # settings without a compiled form are refused at once

    def __call__(self, *arguments: Any) -> Variable:
        """Do one step.

        Args:
            arguments: Those of the loss: a link first if it is a function, then arrays, and plain
                values, which are fixed.

        Returns:
            The loss before the update.

        Raises:
            CaptureError: The loss cannot become a graph; file and line of each problem are named.
            InvalidArgument: The loss is no single number, or depends on no parameter.
            NotDifferentiable: An operator has no gradient.
        """
        model, arrays = self._given(arguments)
        if any(param.array is None for param in self._optimizer.target.params()):
            return self._by_hand(arguments)
        program = self._planned(model, arrays)
        return program.run(self._optimizer, arrays, self._sums, self._scaling)

    def plan(self, *arguments: Any) -> StepPlan:
        """Return the plan of a step, which is neither compiled nor done.

        Parameters without arrays get them, from a call of the loss.

        Args:
            arguments: As for a step.

        Raises:
            CaptureError: As for a step; likewise the other errors of one.
        """
        model, arrays = self._given(arguments)
        if any(param.array is None for param in self._optimizer.target.params()):
            with no_backprop_mode(), using_config("train", False):
                self._loss(*arguments)
        program = self._program(model, arrays)
        return program.plan(arrays, self._resident, self._budget)

    def _given(self, arguments: Sequence[Any]) -> tuple[Link, list[Any]]:
        """Return the link and the other arguments of a call, variables as arrays."""
        model: Any = self._loss
        given = arguments
        if self._prefix:
            model, given = (arguments[0], arguments[1:]) if arguments else (None, ())
        if not isinstance(model, Link):
            raise InvalidArgument(
                f"step: expected a link as first argument, got {type(model).__name__}"
            )
        return model, [x.array if isinstance(x, Variable) else x for x in given]

    def _by_hand(self, arguments: Sequence[Any]) -> Variable:
        """Do a step without compiling."""
        found: list[Any] = []

        def loss(*given: Any) -> Any:
            found.append(self._loss(*given))
            return found[0]

        self._optimizer.update(loss, *arguments)
        return Variable(np.array(found[0].array))

    def _kept_arrays(self) -> Iterator[Array]:
        for param in self._optimizer.target.params():
            yield from (x for x in (param.update_rule.state or {}).values() if hasattr(x, "nbytes"))

    def _setting(self) -> tuple[Rule, list[Any]]:
        """Return rule and hooks of the optimizer.

        Raises:
            InvalidArgument: It is none that can be compiled.
        """
        parameters = list(self._optimizer.target.params())
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

    def _program(self, model: Any, given: Sequence[Any], *, anew: bool = False) -> LinkProgram:
        rule, hooks = self._setting()
        groups, numbers = _grouped(self._optimizer)
        fixed = [(*(group[n] for n in rule.fixed), bool(group.get("weight_decay_rate")))
                 for group in groups]  # fmt: skip
        enabled = tuple(p.update_rule.enabled for p in self._optimizer.target.params())
        plain = tuple(
            (str(x.dtype), x.ndim) if isinstance(x, np.ndarray) else repr(x) for x in given
        )
        kind = (id(model), bool(config.train), plain, settings_of(hooks), str(fixed),
                tuple(numbers.values()), enabled, self._sums.share)  # fmt: skip
        shapes = [x.shape if isinstance(x, np.ndarray) else () for x in given]
        sizes = self._sizes.setdefault(kind, Sizes(shapes))
        described = sizes.describe(shapes)
        if kind in self._closed:
            described = [[str(size) for size in shape] for shape in shapes]
        texts = tuple(
            f"{x.dtype}[{', '.join(names)}]" if isinstance(x, np.ndarray) else x
            for x, names in zip(given, described, strict=True)
        )
        key = (kind, tuple(map(str, texts)))
        found = self._programs.pop(key, None)
        changed = "" if found is None else found.guards.broken()
        if changed:
            self._tell_changed(changed)
        if found is None or anew or changed:
            grouped = groups, numbers
            try:
                found = self._compile(model, texts, given, rule, hooks, grouped)
            except CaptureError as error:
                if all(str(size).isdigit() for names in described for size in names):
                    raise
                # A list of as many items as there are samples, for instance.
                self._tell(f"each size is compiled anew: {error}")
                fixed_texts = tuple(
                    f"{x.dtype}[{', '.join(map(str, x.shape))}]" if isinstance(x, np.ndarray) else x
                    for x in given
                )
                self._closed.add(kind)
                key = (kind, tuple(map(str, fixed_texts)))
                found = self._compile(model, fixed_texts, given, rule, hooks, grouped)
        return self._keep(key, found)

    def _compile(
        self,
        model: Any,
        types: Sequence[Any],
        given: Sequence[Any],
        rule: Rule,
        hooks: Sequence[Any],
        grouped: tuple[list[Group], dict[int, int]],
    ) -> LinkProgram:
        training = Training(masks=[])
        # NumPy's, independent of the other imports of the program's file.
        examples = [
            Example(text, "numpy.ndarray") if isinstance(x, np.ndarray) else text
            for text, x in zip(types, given, strict=True)
        ]
        arguments = (model, *examples) if self._prefix else tuple(examples)
        captured = capture_object(self._loss, arguments, {}, MeaningTables(), training)
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
        frozen = {
            name for name, x in arrays.items()
            if id(x) in numbers and not x.update_rule.enabled
        }  # fmt: skip

        def prepare(pairs: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
            found = apply_hooks(hooks, pairs)
            return {name: g for name, g in found.items() if name not in frozen}

        inputs = {str(value.name) for value in captured.graph.inputs}
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
        names = [
            str(value.name)
            for value in made.model.graph.inputs
            if value.name in inputs
            and not str(value.name).startswith("mask.")
            and value.name != "seed"
            and value.name not in {a.path for a, _ in captured.state}
        ]
        made, choice = self._chosen(made, names, given)
        return LinkProgram(made, rule, captured, training, arrays, names, self._options, choice)


def _grouped(optimizer: Any) -> tuple[list[Group], dict[int, int]]:
    """Return the different settings, and the number of that of each parameter by identity."""
    groups: list[Group] = []
    seen: dict[str, int] = {}
    numbers: dict[int, int] = {}
    for param in optimizer.target.params():
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
