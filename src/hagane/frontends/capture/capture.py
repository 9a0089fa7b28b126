"""Captures: a function or model, interpreted into a graph."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import onnx_ir as ir

from hagane.errors import CaptureError
from hagane.frontends.capture.attempt import Attempt
from hagane.frontends.capture.emitting.assumed import compare_sizes
from hagane.frontends.capture.emitting.columns import multiply_columns
from hagane.frontends.capture.emitting.prune import prune
from hagane.frontends.capture.flow.scans import scan_appended
from hagane.frontends.capture.interface.bases import output_views
from hagane.frontends.capture.interface.given import given
from hagane.frontends.capture.interface.names import array_names, object_paths
from hagane.frontends.capture.interface.outputs import changes, outputs
from hagane.frontends.capture.interface.reads import Reads, count_read
from hagane.frontends.capture.interface.state import (
    Attribute,
    LastingChange,
    NoState,
    Stateful,
    holds_outputs,
    is_output,
    type_of_state,
)
from hagane.frontends.capture.interface.structure import Change
from hagane.frontends.capture.interface.views import View, wholes_of
from hagane.frontends.capture.repeated import Repeated, Settled
from hagane.frontends.python.enter.arguments import call_with
from hagane.frontends.python.enter.check import DeepRecursion
from hagane.frontends.python.enter.roots import Root, root_of
from hagane.frontends.python.interpret.emitting.effects import Training
from hagane.frontends.python.interpret.running import OutOfTime
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError, Note, Problem, Report
from hagane.frontends.python.values.values import MISSING, Value
from hagane.graph.names import separate_names
from hagane.ops.control.own_gradient import remove_own_gradients
from hagane.ops.gradient.marks import mark_stops, sources_of


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured program.

    Attributes:
        graph: Its graph; names are set, nothing in it is unused.
        report: The findings of the interpretation: assumptions and notices.
        structure: How its outputs make up the program's result: a tuple, list or dict of
            structures, a :class:`Record`, a :class:`Leaf` or a :class:`Constant`.
        reads: The values that it read from the running Python.
        weights: The real arrays behind initializers, by identity, with these.
        state: The attributes that it changes, with the structures of their new values.
        changes: The new content of arguments that it changes.
        left_out: Calls of ``print`` and ``assert`` that are not in the graph, with their places.
        names: The names of the initializers of real arrays, by the identity of the arrays.
        not_one: The sizes that the graph takes for other than 1; a run where one is 1 fails.
        trained: The paths of arguments that the program lets have gradients.
        views: How outputs lie in the memory of other tensors, by their names.
        sets_mode: Whether it says what is computed with gradients and what without.
        records: Whether it turns gradients on.
        own_gradients: Whether functions of the program have gradients that the graph has not.
        ordered: The paths of arguments that have to lie in order, as the program writes into views
            that are copies otherwise.
    """

    graph: ir.Graph
    report: Report
    structure: Any
    reads: Reads
    weights: Mapping[int, tuple[Any, ir.Value]]
    state: Sequence[tuple[Attribute, Any]]
    changes: Sequence[Change]
    left_out: Sequence[str]
    names: Mapping[int, str]
    not_one: frozenset[str]
    trained: Sequence[str] = ()
    views: Mapping[str, View] = field(default_factory=dict)
    sets_mode: bool = False
    records: bool = False
    own_gradients: bool = False
    ordered: frozenset[str] = frozenset()


def capture_object(
    found: Any,
    types: Sequence[Any],
    named: Mapping[str, Any],
    tables: Tables,
    training: Training | None = None,
    *,
    reads: Reads | None = None,
    later: bool = False,
    keep_prints: bool = False,
    held: Mapping[str, Any] | None = None,
) -> Captured:
    """Return the graph of a call of a real function or model.

    Args:
        found: The function, method or model.
        types: Types of its arguments as text, or examples, by position.
        named: The same by name; attributes that a call changes may be among them, by their path.
        tables: The meanings of names of libraries.
        training: Is told of random numbers and of buffers that the program changes, whose new
            content are outputs after those of its result; both are refused if None.
        reads: Is filled with the reads of the running Python, after failures too.
        later: Whether there are other graphs for calls after the first one.
        keep_prints: Whether tensors that the program prints or asserts are outputs.
        held: Lists and dicts that the program finds elsewhere, as further arguments, by names.

    Raises:
        CaptureError: Some of it cannot become a graph; all of that is listed.
    """
    arguments = [value for value in (*types, *named.values()) if not isinstance(value, str)]
    for one in (found, *arguments):
        _refuse_hooks(one)
        _refuse_lazy(one)
    paths = object_paths(found, {} if training is None else training.models)
    of_state = _state_types(found, paths, named)
    named = {name: value for name, value in named.items() if name not in of_state}
    own = {name.removeprefix("self."): value for name, value in of_state.items()}
    empty = {path for path, text in own.items() if text is None}
    own = {path: text for path, text in own.items() if text is not None}
    wanted = {
        (key, path.rpartition(".")[2]): text
        for path, text in own.items()
        for key, owner in paths.items()
        if owner == path.rpartition(".")[0]
    }
    seeds: list[Attribute] = []
    opened: set[str] = set()
    watching = False
    settled: Settled | None = None
    follow = training is None and not later  # sizes of 0, where the program asks for them
    written_out = False  # loops over known items, though long
    own_backward = False  # of functions, as the program has it
    for _ in range(_MAX_ATTEMPTS):
        names = array_names(found)
        noted = Reads() if reads is None else reads
        attempt = Attempt(tables, names, partial(Stateful, noted, paths, wanted, seeds, opened))
        attempt.graph.training = training
        attempt.graph.living = training is not None or later
        torch = sys.modules.get("torch") if training is None else None
        attempt.graph.still = torch is not None and not torch.is_grad_enabled()
        attempt.graph.began_still = attempt.graph.still
        attempt.telling.keep = keep_prints
        attempt.graph.compares = training is None
        attempt.graph.asserts = training is None and later
        attempt.empty.follow = follow
        attempt.loops.written_out = written_out
        attempt.graph.own_backward = own_backward
        attempt.empty.compare = training is None and not later
        was_written = training is not None and training.written
        if training is not None:
            training.begin()
        if watching:
            attempt.watch()
        try:
            result, state = _attempt(
                attempt, found, types, named, None if later else empty, settled, held or {}
            )
        except NoState as error:
            if follow and attempt.empty.admitted:
                follow = False
                continue
            if training is not None or settled is not None:
                raise CaptureError([error.message]) from None
            seeds = [attribute for attribute, _, _ in attempt.state.changed().values()]
            state_of = partial(Stateful, Reads(), paths, {}, seeds, set())
            fresh = partial(Attempt, tables, array_names(found), state_of)
            settled = Repeated(fresh, attempt.graph.still, seeds, found, types, named).settled()
            if settled is None:
                raise CaptureError([error.message]) from None
            continue
        except LastingChange as error:
            if watching:
                raise CaptureError([error.message], error.containers) from None
            watching = True  # again, to see which statement it is
            continue
        except CaptureError:
            if follow and attempt.empty.admitted:
                follow = False
                continue
            if attempt.loops.spared and not written_out:
                written_out = True
                continue
            if attempt.graph.lacks_own:
                own_backward = True
                continue
            raise
        if training is not None and not was_written:
            told = attempt.graph.moved_and_read() or count_read(noted, training.counted)
            if told and training.noises is None:
                raise CaptureError(
                    [f"'{told}' is read after the call has changed it: read it in another call"]
                )
            if told or training.written:
                training.written = True
                continue
        paths_of = {key: a.path.removeprefix("self.") for key, (a, _) in state.items()}
        again = {key: own.get(paths_of[key], text) for key, (_, text) in state.items() if text}
        unchanged = {*own, *empty} - {*paths_of.values()}
        if unchanged:
            raise CaptureError([f"the call does not change the attribute '{unchanged.pop()}'"])
        more = set() if later else attempt.state.arguments.changed_numbers() - opened
        if again == wanted and len(seeds) == len(state) and not more:
            caches = frozenset() if settled is None else settled.caches
            kept = [a for key, (a, _) in state.items() if key not in caches]
            try:
                return _finished(attempt, result, kept, later=later)
            except CaptureError:
                if follow and attempt.empty.admitted:
                    follow = False
                    continue
                if attempt.loops.spared and not written_out:
                    written_out = True
                    continue
                raise
        opened = opened | more
        wanted, seeds = again, [attribute for attribute, _ in state.values()]
    raise CaptureError(["the types of attributes keep changing from call to call"])


def _state_types(found: Any, paths: Mapping[int, str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types that were given for attributes, by path; None for an attribute of None.

    A path may begin with ``self.``, where an argument has its name.
    """
    try:
        arguments = inspect.signature(getattr(found, "forward", found)).parameters
    except (TypeError, ValueError):
        return {}
    owner = getattr(found, "__self__", found)
    return {
        name: value
        for name, value in named.items()
        if (value is None or isinstance(value, str))
        and name not in arguments
        and ("." in name or (id(owner) in paths and hasattr(owner, name)))
    }


_MAX_ATTEMPTS = 5
State = dict[tuple[int, str], tuple[Attribute, str]]


def _attempt(
    attempt: Attempt,
    found: Any,
    types: Sequence[Any],
    named: Mapping[str, Any],
    empty: Set[str] | None,
    settled: Settled | None,
    held: Mapping[str, Any],
) -> tuple[Value, State]:
    """Interpret the call; return its result, and the attributes that it changes with types.

    Attributes that are None before the call, and read, have to be among ``empty``, if not None.
    Attributes that are ``settled`` are read by no later call: they are outputs, or left out.
    """
    interpreter, observed = attempt.core, attempt.state
    report = interpreter.collector.report
    trains = attempt.graph.training is not None
    others = empty is None or trains
    kinds: dict[str, str] = {}
    with DeepRecursion():
        try:
            attempt.root = root = root_of(interpreter, found, types, named)
            observed.taken = set() if trains else _names_of(root)  # (models are arguments of steps)
            values = given(interpreter, kinds, root, types, named, attempt.names, held)
            attempt.arguments = tuple(values)
            observed.seed()
            call_with(interpreter, root.value, root.function, root.bound, values, kinds, {*named})
            _refuse_doubts(report)
            state: State = {}
            for key, (attribute, before, now) in observed.changed().items():
                if settled is not None and key in settled.caches:
                    state[key] = attribute, ""
                    continue
                known = observed.wanted.get(key, "")
                path = attribute.path
                try:
                    text = type_of_state(
                        attribute, before, now, interpreter, known, later=others, fixed=trains
                    )
                    is_none = before is None or before is MISSING
                    is_first = not text and attribute.is_read and is_none
                    if is_first and not others and path.removeprefix("self.") not in (empty or ()):
                        name, told = path, path.removeprefix("self.")
                        raise NoState(
                            f"the attribute '{told}' is {'None' if before is None else 'not set'} "
                            "before the first call, and read; the graph is for the later ones: set "
                            "it to its first value"
                            + (
                                f", or say {{'{name}': None}} for a graph of the first call alone"
                                if before is None
                                else ""
                            ),
                            key,
                        )
                except NoState:
                    if settled is None or key not in settled.others:
                        raise
                    if not is_output(now) and not holds_outputs(interpreter, now):
                        raise
                    attribute, text = replace(attribute, is_read=False), ""
                state[key] = attribute, text
        except (LastingChange, NoState):
            raise
        except CheckError as error:
            raise CaptureError([error.message]) from None
        except OutOfTime as error:
            where = f"{error.place.file}:{error.place.line}: " if error.place else ""
            raise CaptureError([f"{where}{error}"]) from None
        except Exception:
            if report.errors:  # code after a refused statement has values that no program has
                _refuse_doubts(report)
            raise
    return report.result, state


def _names_of(root: Root) -> set[str]:
    """Return the names of a root's arguments, without that of the object that it is a method of."""
    arguments = root.function.node.args
    placed = [*arguments.posonlyargs, *arguments.args][1 if root.bound else 0 :]
    rest = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return {one.arg for one in (*placed, *arguments.kwonlyargs, *rest)}


def _refuse_trained(attempt: Attempt) -> None:
    """Refuse results with gradients of tensors that the program itself lets have some."""
    emit = attempt.graph
    if emit.training is not None or not emit.trained_here:
        return
    arguments = attempt.state.arguments
    own = {x.value for x in emit.trained_here if not (emit.still and arguments.path_of_tensor(x))}
    made = {name: wholes_of(tensor) for tensor, name in arguments.outputs.values()}
    for output in emit.root.graph.outputs:
        sources = made.get(str(output.name), ()) if emit.still else sources_of(output)
        if not own.isdisjoint(sources):
            raise CaptureError(
                [
                    f"the result '{output.name}' has the gradient of a tensor for which the "
                    "program sets requires_grad, which a graph has not; call it under "
                    "torch.no_grad(), or return a detached result"
                ]
            )


def _finished(
    attempt: Attempt, result: Value, state: Sequence[Attribute], *, later: bool
) -> Captured:
    """Return the graph with its outputs."""
    interpreter, emit = attempt.core, attempt.graph
    report = interpreter.collector.report
    changed = []
    with DeepRecursion():
        try:
            structure = outputs(interpreter, result, "")
        except CheckError as error:
            place = "" if attempt.root is None else f"{attempt.root.place_of_result()}: "
            told = f"{place}the result: {error.message}"
            raise CaptureError([*_told(report), told]) from None
        if later:
            _refuse_trained(attempt)
        for attribute in state:
            owner, path = interpreter.lift(attribute.owner), attribute.path
            now = interpreter.own_attribute(owner, attribute.name)
            try:
                changed.append((attribute, outputs(interpreter, now, path, suffix=".new")))
            except CheckError as error:
                raise CaptureError([f"the attribute '{path}': {error.message}"]) from None
        try:
            altered = changes(interpreter)
        except CheckError as error:
            raise CaptureError([error.message]) from None
        views = output_views(interpreter) if later else {}
        for name, value in attempt.telling.kept:
            outputs(interpreter, value, name)
        for name, new in ({} if emit.training is None else emit.training.updates).items():
            outputs(interpreter, new, name, suffix=".new")
    try:
        compare_sizes(emit)
    except CheckError as error:
        raise CaptureError([error.message]) from None
    interpreter.knowledge.close()
    graph = emit.root.graph
    given = [v for v in graph.inputs if str(v.name) not in attempt.state.state_inputs]
    inner = any(v.is_graph_input() and v.graph is not graph for v in emit.ordered)  # of a loop
    ordered = frozenset(str(v.name) for v in given if inner or v in emit.ordered)
    graph.inputs[:] = sorted(graph.inputs, key=lambda value: _rank(attempt, str(value.name)))
    if emit.own_backward:
        remove_own_gradients(graph)
    prune(graph)
    scan_appended(graph, emit.types, emit.fresh)
    multiply_columns(graph, emit.types)
    prune(graph)
    if emit.training is None:
        mark_stops(graph)
    separate_names(graph)
    reads, weights = attempt.state.reads, emit._real
    return Captured(
        graph, report, structure, reads, weights, tuple(changed), altered,
        tuple(attempt.telling.left_out), attempt.names, frozenset(map(str, emit.not_one)),
        tuple(str(v.name) for v in given if any(v is t.value for t in emit.trained_here)), views,
        bool(emit.entered) or bool(emit.trained_here), False in emit.entered,
        emit.own_backward or emit.without_own, ordered,
    )  # fmt: skip


def _rank(attempt: Attempt, name: str) -> int:
    """Return the place of an input: parts of arguments in their order, then others, then state."""
    arguments = attempt.arguments
    if name in attempt.state.state_inputs:
        return len(arguments) + 1
    owner = name.split(".", 1)[0]
    return arguments.index(owner) if owner in arguments else len(arguments)


GLOBAL_HOOKS = (
    "PyTorch has forward hooks for all modules, which are not followed; remove them first"
)


def has_global_hooks() -> bool:
    """Whether hooks of PyTorch run in the calls of all modules."""
    module = sys.modules.get("torch.nn.modules.module")
    return module is not None and bool(
        module._global_forward_hooks or module._global_forward_pre_hooks
    )


def _refuse_hooks(found: Any) -> None:
    """Refuse hooks of all modules at once."""
    owners = [getattr(found, "__self__", found)]
    function = getattr(found, "__func__", found)
    if hasattr(function, "__globals__"):
        names = function.__code__.co_names
        owners += [function.__globals__[n] for n in names if n in function.__globals__]
    if has_global_hooks() and any(hasattr(type(one), "named_modules") for one in owners):
        raise CaptureError([GLOBAL_HOOKS])


def _refuse_lazy(found: Any) -> None:
    """Refuse parameters and buffers that have no size before the first call."""
    owner = getattr(found, "__self__", found)
    if isinstance(owner, type) or not hasattr(owner, "named_parameters"):
        return
    lazy = [
        f"'{name}'"
        for name, one in (*owner.named_parameters(), *owner.named_buffers())
        if type(one).__name__.startswith("Uninitialized")
    ]
    if lazy:
        told = f"{', '.join(lazy)} have no size before the first call of the module"
        remedy = "call it once with an input of its types"
        raise CaptureError([f"{type(owner).__name__}: {told}; {remedy}"])


def _refuse_doubts(report: Report) -> None:
    problems = [
        f"{problem.place.file}:{problem.place.line}: {problem.message}{_within(problem)}"
        + (f"; {problem.remedy}" if problem.remedy else "")
        for problem in report.errors
    ]
    if not problems and report.unknown:
        problems = _told(report)
    if not report.checked:
        problems += [note.message for note in report.notices]
    if problems:
        raise CaptureError(list(dict.fromkeys(problems)))


def _told(report: Report) -> list[str]:
    return [
        (f"{note.place.file}:{note.place.line}: " if note.place else "")
        + f"{note.message}{_within(note)}"
        for note in report.unknown
    ]


def _within(found: Problem | Note) -> str:
    """Return the line of a library that something was found in, for a message."""
    return f" (in {found.within.file}:{found.within.line})" if found.within else ""


__all__ = ["GLOBAL_HOOKS", "Captured", "capture_object", "has_global_hooks"]
