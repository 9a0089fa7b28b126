"""The compiled training step of a link of hagane."""

from __future__ import annotations

import gc
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hagane.errors import CaptureError, InvalidArgument
from hagane.frontends.capture.capture import Captured, capture_object
from hagane.frontends.capture.interface.structure import Constant, Example, Leaf
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.frontends.python.interpret.effects import Training
from hagane.nn import reporter
from hagane.nn.autograd.configuration import config, no_backprop_mode, using_config
from hagane.nn.autograd.variable import Variable
from hagane.nn.links.classifier import Classifier
from hagane.nn.model.link import Link
from hagane.nn.optimizers.optimizer import GradientMethod
from hagane.ops.definition import Array
from hagane.runtime import InferenceSession, SessionOptions
from hagane.symbolic.substitute import number_of
from hagane.training.step.accumulation import GradientSums
from hagane.training.step.budget import StepMemory, parse_budget, within_budget
from hagane.training.step.byte_counts import bytes_of_results, bytes_of_states, sizes_of
from hagane.training.step.hooks import apply_hooks, checked_hooks, settings_of
from hagane.training.step.link_rules import LINK_RULES, link_rule_of
from hagane.training.step.planned import StepPlan, plan_of
from hagane.training.step.precision import checked_precision
from hagane.training.step.program import StepProgram, step_program
from hagane.training.step.rules import Group, Rule
from hagane.training.step.scaling import LossScaling, Scale
from hagane.training.step.sizes import Sizes

_MOST_PROGRAMS = 16

_logger = logging.getLogger("hagane.training")


class LinkStep:
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
        self._loss, self._optimizer, self._options = loss, optimizer, options
        function = loss.forward if isinstance(loss, Link) else loss
        names = list(inspect.signature(function).parameters)
        if not isinstance(loss, Link) and not names:
            raise InvalidArgument("compile: expected loss(link, *arrays), got no arguments")
        self._prefix = "" if isinstance(loss, Link) else names.pop(0)
        self._budget = None if memory_budget is None else parse_budget(memory_budget)
        self._resident = sum(array.nbytes for array in self._kept_arrays())
        self._sums = GradientSums(accumulate)
        self._precision = checked_precision(precision)
        self._scaling = LossScaling(used=precision == "fp16")
        self._memory: StepMemory | None = None
        self._sizes: dict[object, Sizes] = {}
        self._programs: dict[object, _Program] = {}
        self._closed: set[object] = set()  # kinds of calls that are compiled for each size
        self._told: set[str] = set()
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
        program = self._program(model, arrays)
        self._memory = program.memory(arrays, self._resident)
        if self._budget is not None and self._memory.predicted > self._budget:
            program = self._program(model, arrays, anew=True)  # planned for smaller sizes
            self._memory = program.memory(arrays, self._resident)
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

    def memory(self) -> dict[str, Any]:
        """Return the bytes of the last call's step, as :meth:`TorchStep.memory` does.

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

    def _program(self, model: Any, given: Sequence[Any], *, anew: bool = False) -> _Program:
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
        if found is None or anew:
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
        self._programs[key] = found  # the latest is the last
        if len(self._programs) > _MOST_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        return found

    def _compile(
        self,
        model: Any,
        types: Sequence[Any],
        given: Sequence[Any],
        rule: Rule,
        hooks: Sequence[Any],
        grouped: tuple[list[Group], dict[int, int]],
    ) -> _Program:
        training = Training(masks=[])
        # NumPy's, independent of the other imports of the program's file.
        examples = [
            Example(text, "numpy.ndarray") if isinstance(x, np.ndarray) else text
            for text, x in zip(types, given, strict=True)
        ]
        arguments = (model, *examples) if self._prefix else tuple(examples)
        captured = capture_object(self._loss, arguments, {}, MeaningTables(), training)
        arrays = {captured.names[id(x)]: x for x in _arrays(model) if id(x) in captured.names}
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
        )
        if made.unreached:
            self._tell(
                f"the loss does not depend on {', '.join(made.unreached)}: the step leaves them as "
                "they are"
            )
        names = [
            str(value.name)
            for value in made.model.graph.inputs
            if value.name in inputs
            and not str(value.name).startswith("mask.")
            and value.name != "seed"
            and value.name not in {a.path for a, _ in captured.state}
        ]
        choice = None
        if self._budget is not None:
            sizes = sizes_of(made.model.graph, names, given)
            kept = max(0, bytes_of_states(made.model.graph, made) - self._resident)
            beside = bytes_of_results(made.model.graph, sizes) + kept
            choice = within_budget(made.model, sizes, self._budget, beside, self._options)
            made = replace(made, model=choice.model)
            gc.collect()  # the graphs that were tried would stay for a while
        return _Program(made, rule, captured, training, arrays, names, self._options, choice)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _logger.warning(text)


class _Program:
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
    ):
        self._made, self._rule, self._choice = made, rule, choice
        self._arrays, self._names, self._state = arrays, names, captured.state
        self._inputs = {str(value.name) for value in made.model.graph.inputs}
        self._outputs = [str(value.name) for value in made.model.graph.outputs]
        self._masks = [(f"mask.{n}", x, r) for n, (x, r) in enumerate(training.masks or ())]
        self._memories: dict[object, StepMemory] = {}
        if choice is not None:  # its plan holds for this graph alone
            options = replace(options or SessionOptions(), specialize=False, tune="off")
        self._options = options

    @cached_property
    def _session(self) -> InferenceSession:
        return InferenceSession(self._made.model, self._options)

    def plan(self, given: Sequence[Any], resident: int, budget: int | None) -> StepPlan:
        """Return the plan of a call, without compiling."""
        feed, graph = self._fed(given), self._made.model.graph
        sizes = sizes_of(graph, list(feed), list(feed.values()))
        states = max(0, bytes_of_states(graph, self._made) - resident)
        return plan_of(self._made.model, sizes, states, budget, self._choice, self._options)

    def memory(self, given: Sequence[Any], resident: int) -> StepMemory:
        """Return the planned memory of a call.

        Args:
            given: The arrays of the call.
            resident: Bytes of the optimizer's states that were there before.
        """
        feed = self._fed(given)
        shapes = {name: tuple(x.shape) for name, x in feed.items()}
        key = tuple(shapes.values())
        if key not in self._memories:
            graph, choice = self._made.model.graph, self._choice
            sizes = sizes_of(graph, list(feed), list(feed.values()))
            masks = {name: _shape(x, sizes) for name, x, _ in self._masks if name in self._inputs}
            self._memories[key] = StepMemory(
                run=self._session.memory_plan({**shapes, **masks}).peak,
                results=bytes_of_results(graph, sizes),
                states=max(0, bytes_of_states(graph, self._made) - resident),
                saved=0 if choice is None else choice.everything - choice.arena,
                again=() if choice is None else choice.again,
                stages=0 if choice is None else choice.stages,
            )
        return self._memories[key]

    def _fed(self, given: Sequence[Any]) -> dict[str, Array]:
        """Return the arrays of a call by the names of the inputs."""
        arrays = [np.asarray(x, order="C") for x in given if isinstance(x, np.ndarray)]
        return dict(zip(self._names, arrays, strict=True))

    def run(
        self, optimizer: Any, given: Sequence[Any], sums: GradientSums, scaling: LossScaling
    ) -> Variable:
        """Do one step and return the loss."""
        feed = self._fed(given)
        sizes = sizes_of(self._made.model.graph, list(feed), list(feed.values()))
        for name, tensor, ratio in self._masks:
            dtype = tensor.dtype.numpy()
            if ratio is None:
                feed[name] = np.random.standard_normal(_shape(tensor, sizes)).astype(dtype)
                continue
            kept = np.random.rand(*_shape(tensor, sizes)) >= ratio
            feed[name] = np.asarray(kept * dtype.type(1 / (1 - ratio)), dtype)
        if "seed" in self._inputs:
            feed["seed"] = np.random.randint(0, 2**32, 2, np.uint32)
        changed: dict[str, Array] = {
            name: x.array if isinstance(x, Variable) else x for name, x in self._arrays.items()
        }
        for attribute, _ in self._state:
            feed[attribute.path] = np.asarray(getattr(attribute.now(), "array", attribute.now()))
        for item in self._made.updated:
            rule = self._arrays[item.name].update_rule
            rule._init_states(self._arrays[item.name])
            for state in item.states:
                changed[f"{item.name}.{state}"] = rule.state[state]
        summed = {name: self._arrays[name] for name in self._made.summed}
        feed.update(sums.feed({name: (x, x.array) for name, x in summed.items()}))
        feed.update(self._scalars())
        feed.update(scaling.feed())
        feed.update(changed)
        feed = {name: array for name, array in feed.items() if name in self._inputs}
        results = dict(zip(self._outputs, self._session.run(None, feed), strict=True))
        loss = Variable(np.array(results[self._outputs[0]]))
        follow = scaling.advance(results)
        own = {
            name
            for item in self._made.updated
            for name in (item.name, *(f"{item.name}.{state}" for state in item.states))
        }
        for name, array in changed.items():
            if f"{name}.new" in results and (follow or name not in own):
                np.copyto(array, results[f"{name}.new"])
        sums.advance(summed, results)
        if self._made.updated:
            self._advance(optimizer, follow=follow)
        for attribute, structure in self._state:
            setattr(attribute.owner, attribute.name, _rebuilt(structure, results))
        for owner in {id(a.owner): a.owner for a, _ in self._state}.values():
            if isinstance(owner, Classifier):
                told = {"loss": owner.loss, "accuracy": owner.accuracy}
                reporter.report({k: v for k, v in told.items() if v is not None}, owner)
        return loss

    def _scalars(self) -> dict[str, Array]:
        """Return the numbers of this step."""
        found: dict[str, Array] = {}
        for item in self._made.updated:
            rule = self._arrays[item.name].update_rule
            for name, number in self._rule.scalars(_settings(rule), rule.t + 1, {}).items():
                found[f"group.{item.group}.{name}"] = np.array(number, np.float64)
        return found

    def _advance(self, optimizer: Any, *, follow: bool) -> None:
        """Count the step; where gradients overflowed, by the optimizer alone, as it does itself."""
        optimizer.t += 1
        if not follow:
            return
        for param in optimizer.target.params():
            rule = param.update_rule
            if rule.enabled:
                rule.t += 1
                if hasattr(rule, "beta_power"):
                    rule.beta_power *= rule.hyperparam.beta
            param.cleargrad()


def _shape(tensor: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(number_of(dim, sizes) for dim in tensor.shape)


def _settings(rule: Any) -> dict[str, Any]:
    """Return the inputs of a parameter's update besides its states."""
    more = {n: getattr(rule, n) for n in ("initial_alpha", "beta_power") if hasattr(rule, n)}
    return {"dtype": "float32", **rule.hyperparam.get_dict(), **more}


def _grouped(optimizer: Any) -> tuple[list[Group], dict[int, int]]:
    """Return the different settings, and the number of that of each parameter by identity."""
    groups: list[Group] = []
    seen: dict[str, int] = {}
    numbers: dict[int, int] = {}
    for param in optimizer.target.params():
        group = _settings(param.update_rule)
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


def _rebuilt(structure: Any, results: Mapping[str, Any]) -> Any:
    """Return a value of the program from the outputs of a run."""
    if isinstance(structure, Leaf):
        found = np.array(results[structure.name])
        if structure.kind in ("int", "float", "bool"):
            return found.item()
        return found if structure.kind == "numpy.ndarray" else Variable(found)
    if isinstance(structure, Constant):
        return structure.value
    if isinstance(structure, Mapping):
        return {key: _rebuilt(part, results) for key, part in structure.items()}
    if isinstance(structure, list | tuple):
        return type(structure)(_rebuilt(part, results) for part in structure)
    raise InvalidArgument(f"step: an attribute cannot be set to a {type(structure).__name__}")
