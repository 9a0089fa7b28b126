"""What steps of links and of modules share: settings, programs by kind of call, planned memory."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from hagane.errors import CaptureError, HaganeError, InvalidArgument
from hagane.machine.allocator import give_back
from hagane.nn.autograd.configuration import config
from hagane.ops.definition import Array
from hagane.runtime import InferenceSession, SessionOptions
from hagane.training.errors import Diverged
from hagane.training.step.accumulation import GradientSums
from hagane.training.step.arguments import Given
from hagane.training.step.memory.budget import MemoryChoice, StepMemory, parse_budget, within_budget
from hagane.training.step.memory.byte_counts import bytes_of_results, bytes_of_states, sizes_of
from hagane.training.step.memory.planned import StepPlan, plan_of
from hagane.training.step.precision import checked_precision
from hagane.training.step.program import StepProgram
from hagane.training.step.rules import Rule
from hagane.training.step.scaling import LossScaling, Scale
from hagane.training.step.sizes import Numbers, Sizes

_MOST_PROGRAMS = 16
_MOST_READ = 4  # programs of one kind of calls, for values of attributes that come again

# Planned bytes beside which the memory that a compilation leaves behind is worth a look for it.
_MUCH = 50_000_000

# Kinds of arguments from which on another one is likely to come with each call.
_MANY_KINDS = 4

# Sizes as text, and the paths of numbers that are inputs.
Form = tuple[Sequence[Sequence[str]], frozenset[str]]

_logger = logging.getLogger("hagane.training")


class Program(ABC):
    """A compiled step for one set of types.

    Args:
        made: Its graph.
        rule: The optimizer's rule.
        options: Of the session that runs it.
        choice: The plan that keeps it to a budget, if there is one.

    Attributes:
        not_one: The open sizes for which it cannot serve where they are 1, as a loss that squeezes
            has other axes then.
    """

    not_one: frozenset[str] = frozenset()

    def __init__(
        self,
        made: StepProgram,
        rule: Rule,
        options: SessionOptions | None,
        choice: MemoryChoice | None,
    ):
        self._made, self._rule, self._choice = made, rule, choice
        self._inputs = {str(value.name) for value in made.model.graph.inputs}
        self._outputs = [str(value.name) for value in made.model.graph.outputs]
        self._memories: dict[object, StepMemory] = {}
        if choice is not None:  # its plan holds for this graph alone
            options = replace(options or SessionOptions(), specialize=False, tune="off")
        self._options = options

    @cached_property
    def _session(self) -> InferenceSession:
        return InferenceSession(self._made.model, self._options)

    @property
    def is_fresh(self) -> bool:
        """Whether it was not asked for anything yet."""
        return not self._memories

    @abstractmethod
    def changed(self) -> str:
        """Return which of its assumptions holds no longer; empty if all do."""

    @abstractmethod
    def sizes(self, given: Sequence[Any]) -> Mapping[str, int]:
        """Return the sizes of a call by the names of the graph.

        Args:
            given: The arguments of the call behind link or module.
        """

    @abstractmethod
    def shapes(self, given: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the inputs that a call decides, by name."""

    def plan(self, given: Sequence[Any], resident: int, budget: int | None) -> StepPlan:
        """Return the plan of a call, without compiling."""
        states = max(0, bytes_of_states(self._made.model.graph, self._made) - resident)
        sizes, choice = self.sizes(given), self._choice
        return plan_of(self._made.model, sizes, states, budget, choice, self._options)

    def memory(self, given: Sequence[Any], resident: int) -> StepMemory:
        """Return the planned memory of a call.

        Args:
            given: The arguments of the call behind link or module.
            resident: Bytes of the optimizer's states that were there before.
        """
        key = tuple(tuple(getattr(item, "shape", ())) for item in given)
        if key not in self._memories:
            graph, choice = self._made.model.graph, self._choice
            self._memories[key] = StepMemory(
                run=self._session.memory_plan(self.shapes(given)).peak,
                results=bytes_of_results(graph, self.sizes(given)),
                states=max(0, bytes_of_states(graph, self._made) - resident),
                nodes=len(graph) if choice is None else choice.nodes,
                saved=0 if choice is None else choice.everything - choice.arena,
                again=() if choice is None else choice.again,
                stages=0 if choice is None else choice.stages,
            )
        return self._memories[key]

    def _check(self, results: Mapping[str, Array], feed: Mapping[str, Array]) -> None:
        """Fail in debug mode if the loss is not a number.

        Args:
            results: The outputs of a call, of which nothing was taken yet.
            feed: Its inputs.

        Raises:
            Diverged: It is not; inputs that are not either are named.
        """
        if not config.debug or not np.isnan(np.asarray(results[self._outputs[0]], np.float64)):
            return
        held = [name for name, array in feed.items() if _has_nan(array)]
        told = (
            f"NaN came in by {', '.join(held[:4])}{' and others' * (len(held) > 4)}"
            if held
            else "no input or parameter held NaN before: call the loss without compiling to see "
            "which function makes it"
        )
        raise Diverged(
            f"step: the loss is NaN, in debug mode; {told}; parameters and states are as they were"
        )

    @abstractmethod
    def run(
        self, optimizer: Any, arguments: Given, sums: GradientSums, scaling: LossScaling
    ) -> Any:
        """Do one step and return the loss."""

    def _outcome(
        self,
        results: dict[str, Array],
        summed: Mapping[str, Any],
        sums: GradientSums,
        scaling: LossScaling,
    ) -> tuple[dict[str, Array], bool]:
        """Return the new values that a call leaves, and whether it updates parameters.

        Where gradients overflowed, new parameters and states are not among them.

        Args:
            results: The outputs of the call by name.
            summed: The parameters whose gradients are summed over calls.
            sums: Take those of this call.
            scaling: Takes the outcome.
        """
        follow = scaling.advance(results)
        sums.advance(summed, results)
        left_out = {f"{name}.gradient_sum.new" for name in summed}
        if not follow:
            left_out |= {f"{name}.new" for item in self._made.updated for name in item.names}
        return {name: array for name, array in results.items() if name not in left_out}, follow


P = TypeVar("P", bound=Program)


class Step(ABC, Generic[P]):
    """A step of training whose programs are compiled for the kinds of calls that come.

    Args:
        options: Of the sessions that run it.
        resident: Bytes of the optimizer's states when it is made.
        memory_budget: The most bytes that a step may take; None for any.
        accumulate: After how many calls parameters change.
        precision: ``"bf16"``, ``"fp16"`` or None.

    Raises:
        InvalidArgument: One of them is none.
    """

    def __init__(
        self,
        options: SessionOptions | None,
        resident: int,
        memory_budget: int | float | str | None,
        accumulate: int,
        precision: str | None,
    ):
        self._options, self._resident = options, resident
        self._settings_given: dict[str, Any] = {
            "memory_budget": memory_budget, "accumulate": accumulate, "precision": precision
        }  # fmt: skip
        self._budget = None if memory_budget is None else parse_budget(memory_budget)
        self._sums = GradientSums(accumulate)
        self._precision = checked_precision(precision)
        self._scaling = LossScaling(used=precision == "fp16")
        self._memory: StepMemory | None = None
        self._sizes: dict[object, Sizes] = {}
        self._numbers: dict[object, Numbers] = {}
        self._kinds: dict[object, set[object]] = {}  # of arguments, by what else programs rest on
        self._forms: dict[object, int] = {}  # of sizes, the first that serves, by kinds of calls
        self._programs: dict[object, tuple[P, ...]] = {}
        self._told: set[str] = set()

    _unreached = "the step leaves them as they are"
    _loss: Any
    _optimizer: Any

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made: of loss, optimizer and settings; it compiles anew.

        Raises:
            InvalidArgument: It holds gradients of calls that are not followed yet.
        """
        if self._sums.begun:
            raise InvalidArgument(
                "step: it holds gradients that later calls add to (accumulate), which a copy would "
                "not have: copy or pickle it after a call that changes the parameters"
            )
        scale = self._scaling.now
        return _made, (
            type(self), self._loss, self._optimizer, self._options, self._settings_given,
            None if scale is None else scale.as_dict(),
        )  # fmt: skip

    @abstractmethod
    def _program(self, model: Any, given: Given, *, anew: bool = False) -> P:
        """Return the program of a call, kept or compiled."""

    def _planned(self, model: Any, given: Given) -> P:
        """Return the program of a call, whose memory is within the budget."""
        program = self._program(model, given)
        fresh, leaves = program.is_fresh, given.values
        self._memory = program.memory(leaves, self._resident)
        if self._budget is not None and self._memory.predicted > self._budget:
            program = self._program(model, given, anew=True)  # planned for smaller sizes than these
            self._memory, fresh = program.memory(leaves, self._resident), True
        if fresh and (self._budget is not None or self._memory.predicted > _MUCH):
            give_back()  # what the compilation took, before the step takes its own
        return program

    def _found(
        self,
        rest: Hashable,
        given: Given,
        made: Callable[[Sequence[Sequence[str]], frozenset[str]], P],
        *,
        check: Callable[[P], None] | None = None,
        anew: bool = False,
    ) -> P:
        """Return the program of a call, kept or compiled.

        Args:
            rest: What programs rest on besides the arguments.
            given: The arguments.
            made: Compiles one, for sizes and numbers that are inputs.
            check: Fails if a program that was kept cannot serve.
            anew: Whether the one that was kept cannot.
        """
        kind = (rest, given.outline)
        numbers = self._numbers.setdefault(kind, Numbers())
        sizes = self._sizes.setdefault(kind, Sizes(given.shapes))
        free = numbers.describe(given.variable, at_once=bool(config.deterministic))
        described = sizes.describe(given.shapes)
        fixed = _fixed(given, free)
        known = str(described[:-1])  # other axes that open are tried anew
        forms = described[self._forms.get((kind, fixed, known), 0) :]
        key = (kind, fixed, str(forms[0]))
        kept = self._programs.get(key, ())
        found = next((program for program in kept if not program.changed()), None)
        if kept and found is None:
            self._tell_changed(kept[-1].changed())
        if found is not None and check is not None:
            check(found)
        outgrown = found if anew else None
        if found is None or anew:
            found, (taken, open_) = self._attempted(forms, free, given, made)
            if sizes.set_apart(found.not_one, taken):
                return self._found(rest, given, made, check=check, anew=anew)
            numbers.close(free - open_)
            fixed = _fixed(given, open_)
            if taken is not described[0]:
                place = next(n for n, x in enumerate(described) if x is taken)
                self._forms[kind, fixed, known] = place
            key = (kind, fixed, str(taken))
            self._tell_of_kinds(rest, (given.outline, fixed))
        self._keep(key, found, outgrown)
        return found

    def _keep(self, key: object, found: P, outgrown: P | None) -> None:
        """Keep a program as the latest one; the oldest of too many go.

        Args:
            key: What it rests on besides what the loss reads.
            found: The program.
            outgrown: One in whose place it is.
        """
        kept = self._programs.pop(key, ())
        others = [program for program in kept if program not in (found, outgrown)]
        self._programs[key] = (*others[1 - _MOST_READ :], found)
        while sum(map(len, self._programs.values())) > _MOST_PROGRAMS:
            oldest, (_, *rest) = next(iter(self._programs.items()))
            if rest:
                self._programs[oldest] = tuple(rest)
            else:
                del self._programs[oldest]

    def _attempted(
        self,
        forms: Sequence[Sequence[Sequence[str]]],
        free: frozenset[str],
        given: Given,
        made: Callable[[Sequence[Sequence[str]], frozenset[str]], P],
    ) -> tuple[P, Form]:
        """Return a program that is open in as much as can be, and in what.

        Args:
            forms: The sizes, as they are to be tried one after the other; in the last none is open.
            free: The numbers that are to be inputs.
            given: The arguments.
            made: Compiles a program.
        """
        floats = frozenset(path for path in free if isinstance(given.numbers[path], float))
        refused: CaptureError | None = None  # with the most open sizes
        forms = [form for n, form in enumerate(forms) if not n or form != forms[n - 1]]
        for place, form in enumerate(forms):
            for paths in dict.fromkeys((free, floats)):
                if paths:
                    try:
                        return made(form, paths), (form, paths)
                    except HaganeError as error:  # one decides how often a loop runs, for instance
                        _logger.debug("numbers of the arguments stay fixed: %s", error)
                    except Exception as error:
                        self._tell(
                            f"numbers of the arguments stay fixed, as a program that takes "
                            f"{', '.join(sorted(paths))} as inputs fails: {error!r}"
                        )
            none = frozenset[str]()
            try:
                found = made(form, none)
            except CaptureError as error:
                if place == len(forms) - 1:
                    raise  # of this call, whose sizes it names
                refused = refused or error
                continue
            if refused is not None and place == len(forms) - 1:
                self._tell(f"each size is compiled anew: {refused}")
            return found, (form, none)
        raise AssertionError("the last form of sizes is made or refused")

    def _tell_of_kinds(self, rest: Hashable, kind: Hashable) -> None:
        """Warn once the step is compiled for many kinds of arguments.

        Args:
            rest: What programs rest on besides the arguments.
            kind: That of the present ones.
        """
        kinds = self._kinds.setdefault(rest, set())
        if len(kinds) < _MANY_KINDS:
            kinds.add(kind)
        if len(kinds) == _MANY_KINDS:
            self._tell(
                f"the step is compiled for {_MANY_KINDS} kinds of arguments: texts and truth "
                "values, numbers that decide sizes or are settings of functions (a slope, an "
                "epsilon), and lengths of lists are fixed, and each other one is compiled for; "
                "pass what changes often as a tensor, and keep what only grows out of the step"
            )

    def _chosen(self, made: StepProgram, given: Given) -> tuple[StepProgram, MemoryChoice | None]:
        """Return a program's graph within the budget, and its plan.

        Args:
            made: The program.
            given: The arguments of a call.
        """
        if made.unreached:
            self._tell(
                f"the loss does not depend on {', '.join(made.unreached)}: {self._unreached}"
            )
        if self._budget is None:
            return made, None
        graph = made.model.graph
        found = sizes_of(graph, list(given.leaves), given.values)
        states = max(0, bytes_of_states(graph, made) - self._resident)
        beside = bytes_of_results(graph, found) + states
        choice = within_budget(made.model, found, self._budget, beside, self._options)
        made = replace(made, model=choice.model)
        give_back()  # the graphs that were tried would stay for a while
        return made, choice

    def memory(self) -> dict[str, Any]:
        """Return the bytes of the last call's step beyond those at hand when it was compiled.

        Returns:
            ``predicted``: the planned peak. Of it, ``run``: values on the way, and weights in the
            engine's form; ``results``: new parameters, buffers and states; ``states``: tensors that
            the optimizer did not have yet; ``program``: graph, kernels and tables of the step
            itself, estimated by the number of its nodes. ``everything``: the peak if nothing were
            computed again. ``budget``: the bytes that were allowed, or None. ``again``: names of
            the nodes that are computed again; ``stages``: how many stages the forward half was
            divided into.

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

    def _tell_changed(self, changed: str) -> None:
        """Tell that a program's assumptions hold no longer."""
        name, was, _ = changed.partition(" was ")
        told = f"{name} changed" if was else changed
        self._tell(f"the step is compiled anew because {told}; pass what changes often as a tensor")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            _logger.warning(text)


def _has_nan(array: Array) -> bool:
    found = np.asarray(array)
    return found.dtype.kind not in "biuUSO" and bool(np.isnan(found.astype(np.float32)).any())


def _made(
    cls: type[Step[Any]], loss: Any, optimizer: Any, options: Any, settings: Any, scale: Any
) -> Any:
    """Return a step that was copied or pickled."""
    step = cls(loss, optimizer, options, **settings)
    if scale is not None:
        step.set_loss_scale(**scale)
    return step


def _fixed(given: Given, free: frozenset[str]) -> Hashable:
    """Return the numbers of a call that programs take for known: all but free ones."""
    return tuple((path, repr(x)) for path, x in given.numbers.items() if path not in free)


__all__ = ["Program", "Step"]
