"""One graph of a compiled function: its calls, its assumptions, its runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.capturing.capture import model_of
from hagane.capturing.changes import apply_changes, check_apart
from hagane.capturing.laying import lay_views, state_array, turn_axes
from hagane.capturing.leaves import (
    NumberLeaf,
    Obstacle,
    TensorLeaf,
    Tree,
    leaves,
    objects,
    replaced,
)
from hagane.capturing.results import can_be_rebuilt, leaves_of
from hagane.capturing.sessions import Sessions
from hagane.capturing.tensors import as_array, returned
from hagane.capturing.variables import is_variable
from hagane.errors import CaptureError, KernelError
from hagane.frontends.capture.capture import Captured, capture_object
from hagane.frontends.capture.interface.guards import Guards
from hagane.frontends.capture.interface.reads import ContentRead, NameRead, Reads
from hagane.frontends.capture.interface.rebuilding import rebuilt
from hagane.frontends.capture.interface.state import Attribute
from hagane.frontends.capture.interface.structure import Example, Leaf, Text
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.ops.gradient.marks import passes_over, sources_of

# Questions of a program about modes of PyTorch, and the function that answers them.
_ASKED = {
    "torch.is_grad_enabled": "is_grad_enabled",
    "torch.is_inference_mode_enabled": "is_grad_enabled",
    "torch.Tensor.requires_grad": "is_grad_enabled",
    "torch.are_deterministic_algorithms_enabled": "are_deterministic_algorithms_enabled",
}
_MODES = {
    "is_grad_enabled": "gradients are recorded, or no longer",
    "are_deterministic_algorithms_enabled": "deterministic algorithms are asked for, or no longer",
}
# Questions about the memory of a tensor, which is taken to be contiguous.
_LAYOUT = (
    *(f"torch.Tensor.{name}" for name in ("is_contiguous", "stride", "storage_offset")),
    *("torch.as_strided", "torch.Tensor.as_strided"),  # which read the memory itself
)
# Small arrays of NumPy that change ask for another graph; a graph stays while others change.
_COMPARED = 4096


class GraphFailed(Exception):
    """A node of a graph failed on a call's data.

    Attributes:
        error: The engine's error.
    """

    def __init__(self, error: KernelError):
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Pattern:
    """The sizes and numbers that a graph serves.

    Attributes:
        sizes: The sizes of each tensor by its path: a number, or a name for any from 2 on.
        numbers: The numbers by path; None for any.
    """

    sizes: Mapping[str, tuple[int | str, ...]]
    numbers: Mapping[str, Any]

    def differs(self, found: Sequence[TensorLeaf | NumberLeaf]) -> str:
        """Return why it does not serve a call; empty if it does."""
        bound: dict[str, int] = {}
        for leaf in found:
            if isinstance(leaf, NumberLeaf):
                expected = self.numbers[leaf.path]
                if expected is None:
                    if isinstance(leaf.value, int) and abs(leaf.value) >= 2**62:
                        return f"'{leaf.path}' is no number of 64 bits"
                elif not _equal(expected, leaf.value):
                    return f"'{leaf.path}' was {expected} and is {leaf.value}"
                continue
            for axis, (size, now) in enumerate(zip(self.sizes[leaf.path], leaf.shape, strict=True)):
                if isinstance(size, int):
                    if size != now:
                        return f"axis {axis} of '{leaf.path}' was {size} and is {now}"
                elif now < 2:
                    return f"axis {axis} of '{leaf.path}' is {now}, which graphs take for fixed"
                elif bound.setdefault(size, now) != now:
                    return f"axis {axis} of '{leaf.path}' no longer has the size of another one"
        return ""

    def __str__(self) -> str:
        """Return the sizes and numbers as text."""
        parts = [f"{p}[{', '.join(map(str, s))}]" for p, s in self.sizes.items()]
        parts += [f"{p}={'any' if n is None else n!r}" for p, n in self.numbers.items()]
        return ", ".join(parts)


def _equal(a: Any, b: Any) -> bool:
    same = a == b or (a != a and b != b)
    return type(a) is type(b) and bool(same) and str(a) == str(b)  # 0.0 is not -0.0


@dataclass(eq=False)
class Variant:
    """A graph, or the reasons why there is none.

    Attributes:
        pattern: The calls that it serves; None if it serves none but this one.
        reads: The values that it read from the running Python.
        problems: Why there is no graph; empty if there is one.
        containers: The lists and dicts that have to be arguments, for there to be one.
        modes: The modes of PyTorch that it asked for, by the function that tells.
        asks_torch: Whether it computes with anything of PyTorch, whose modes then matter.
        asks_layout: Whether it asks for the layout of a tensor, which then has to be contiguous.
        asks_gradients: Whether it asks if a tensor requires gradients, which no argument may then.
        ordered: The paths of arguments that results share memory with, or that change, where it
            may have asked for them in contiguous memory, which gives a copy of others.
    """

    pattern: Pattern | None
    reads: Reads
    problems: tuple[str, ...] = ()
    containers: Mapping[str, Any] = field(default_factory=dict)
    captured: Captured | None = None
    model: ir.Model | None = None
    sessions: Sessions | None = None
    guards: Guards | None = None
    modes: dict[str, bool] = field(default_factory=dict)
    asks_torch: bool = True
    asks_layout: bool = False
    asks_gradients: bool = False
    ordered: frozenset[str] = frozenset()
    ways: dict[Any, Any] = field(default_factory=dict)  # graphs of gradients, where it has any
    _weights: list[tuple[Any, ir.Value]] = field(default_factory=list)
    _state: list[tuple[Attribute, ir.Value, str]] = field(default_factory=list)
    _sources: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def parameters(self) -> list[Any]:
        """The tensors that it computes with, apart from the inputs."""
        return [tensor for tensor, _ in self._weights]

    @property
    def weight_names(self) -> list[str]:
        """The names of these among the initializers."""
        return [str(value.name) for _, value in self._weights]

    @property
    def trained(self) -> set[str]:
        """The names of its weights that PyTorch computes gradients for."""
        return {str(value.name) for tensor, value in self._weights if tensor.requires_grad}

    def sources_of(self, output: str) -> frozenset[str]:
        """Return the names of the inputs and weights whose gradients an output has."""
        assert self.captured is not None
        if output not in self._sources:
            values = {str(value.name): value for value in self.captured.graph.outputs}
            found = sources_of(values[output])
            self._sources[output] = frozenset(str(v.name) for v in found if v.producer() is None)
        return self._sources[output]

    @cached_property
    def passes_over(self) -> bool:
        """Whether PyTorch alone knows the gradients of tensors that are written without record."""
        return self.captured is not None and passes_over(self.captured.graph)

    @property
    def variables(self) -> list[Any]:
        """The variables of define-by-run code that it computes with, apart from the inputs."""
        return self.reads.variables

    def expect_updates(self) -> None:
        """Note that gradients are computed, after which parameters may be updated."""
        if self.sessions is not None:
            self.sessions.expect_updates()

    def broken(self, *, weights_rest: bool = False) -> str:
        """Return which of its assumptions no longer holds; empty if all do.

        Args:
            weights_rest: Whether the weights are known to be as they were in the last run.
        """
        if self.guards is None:  # there is no graph, and may be one if something else is read
            self.guards = self._guards()
        told = self.guards.broken(weights_rest=weights_rest)
        if told:
            return told
        for attribute, value, kind in self._state:
            told = _other_state(attribute, value, kind)
            if told:
                return told
        for name, then in self.modes.items():
            if getattr(sys.modules["torch"], name)() is not then:
                return _MODES[name]
        return ""

    def check(self, found: Sequence[TensorLeaf | NumberLeaf]) -> None:
        """Refuse calls whose tensors lie in memory in a way that the graph knows nothing of.

        Raises:
            Obstacle: Memory that is written belongs to two arguments, or the program asks for the
                layout of a tensor that is not contiguous.
        """
        given = [leaf for leaf in found if isinstance(leaf, TensorLeaf)]
        if self.captured is not None and (self.captured.changes or self._state):
            held = [tensor for tensor in self.reads.tensors if not _is_torch_parameter(tensor)]
            check_apart(
                self.captured.changes, given, [*held, *self.reads.arrays],
                [attribute.now() for attribute, _, _ in self._state],
            )  # fmt: skip
        if self.reads.compares:
            self._check_identities(given)
        if self.reads.lacks and any(getattr(one.value, "__dict__", None) for one in given):
            raise Obstacle(
                "an argument has attributes that the program gave it, and the program asks for one"
            )
        if self.asks_gradients and any(getattr(one.value, "requires_grad", 0) for one in given):
            raise Obstacle(
                "an argument requires gradients, and the program asks whether a tensor does"
            )
        for leaf in given if self.ordered else ():
            if leaf.path in self.ordered and not _lies_in_order(leaf.value):
                raise Obstacle(
                    f"'{leaf.path}' is not contiguous, and the program calls contiguous(), or "
                    "writes into a view that is a copy then, as of reshape(): what shares memory "
                    "depends on that"
                )
        if not self.asks_layout:
            return
        tensors = [(f"'{leaf.path}'", leaf.value) for leaf in given if leaf.kind == "torch.Tensor"]
        tensors += [("a tensor that is read", tensor) for tensor in self.reads.tensors]
        for name, tensor in tensors:
            if not tensor.is_contiguous() or tensor.storage_offset():
                raise Obstacle(
                    f"{name} is not contiguous, and the program asks how it lies in memory"
                )

    def _check_identities(self, given: Sequence[TensorLeaf]) -> None:
        """Refuse calls in which an argument is a tensor that the program finds elsewhere too."""
        reads = self.reads
        held = {id(x) for x in (*reads.tensors, *reads.arrays, *reads.variables, *self.state)}
        held |= {id(read.found) for read in reads.reads if isinstance(read, ContentRead)}
        for leaf in given:
            if id(leaf.value) in held:
                raise Obstacle(
                    f"'{leaf.path}' is a tensor that the program reads elsewhere too, and the "
                    "program asks whether two tensors are one"
                )

    def run(self, tree: Mapping[str, Tree], known: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the outputs by name.

        Args:
            tree: The arguments.
            known: Takes the tensors that outputs are, as :func:`rebuilt` does.

        Raises:
            GraphFailed: A node failed; no attribute was changed.
        """
        assert self.captured is not None
        assert self.sessions is not None
        feeds: dict[str, Any] = {}
        found_leaves = leaves(tree)
        for leaf in found_leaves:
            feeds[leaf.path] = as_array(leaf) if isinstance(leaf, TensorLeaf) else leaf.value
        feeds.update((str(v.name), state_array(a.now())) for a, v, _ in self._state)
        names = [str(value.name) for value in self.captured.graph.inputs]
        outputs = [value.name for value in self.captured.graph.outputs]
        try:
            found = self.sessions.run({name: feeds[name] for name in names})
        except KernelError as error:
            raise GraphFailed(error) from error
        made = dict(zip(map(str, outputs), found, strict=True))
        tensors = {leaf.path: leaf for leaf in found_leaves if isinstance(leaf, TensorLeaf)}
        for path in self.captured.trained:
            if path in tensors:
                tensors[path].value.requires_grad_()
        if known is not None:
            there = {path: leaf.value for path, leaf in tensors.items()}
            lay_views(self.captured.views, feeds, made, there)
        else:
            turn_axes(self.captured.views, made)
        given: dict[str, Any] = {}
        if self.captured.changes or self.captured.state:
            given = {**objects(dict(tree)), **{path: leaf.value for path, leaf in tensors.items()}}
        state = [
            (a, structure, rebuilt(structure, made, returned, given, known))
            for a, structure in self.captured.state
        ]
        for attribute, structure, value in state:
            held = attribute.now()
            stays = attribute.in_place or _is_torch_parameter(held)  # modules take no other tensor
            if not (stays and _written(held, value)):
                setattr(attribute.owner, attribute.name, value)
            elif known is not None and isinstance(structure, Leaf) and structure.first:
                known[structure.first] = held
        if self.captured.changes:
            apply_changes(self.captured.changes, made, given, tensors, known)
        return made

    @property
    def state(self) -> list[Any]:
        """The attributes that a call changes, as they are now."""
        return [attribute.now() for attribute, _, _ in self._state]

    def _guards(self) -> Guards:
        reads = self.reads
        return Guards(reads.reads, self._weights, reads.modules, reads.tensors)

    def prepare(self) -> None:
        """Make the session."""
        assert self.captured is not None
        inputs = {str(value.name): value for value in self.captured.graph.inputs}
        changed = [attribute for attribute, _ in self.captured.state]
        self._state = [(a, inputs[a.path], _kind(a.now())) for a in changed if a.path in inputs]
        free = [a for a in changed if a.path in inputs or not a.is_read]
        names = {(id(names), a.name) for a in free for names in a.namespaces()}
        reads = [
            read
            for read in self.reads.reads
            if not (isinstance(read, NameRead) and (id(read.names), read.name) in names)
        ]
        # The content of what these hold is an input, unless it was read by another name too.
        others = [read.value for read in reads if isinstance(read, NameRead)]
        others += [
            item
            for read in reads
            if isinstance(read, ContentRead) and read.kind == "items"
            for item in read.content
        ]
        held = {id(a.now()) for a in free} - set(map(id, others))
        self.reads.reads = [
            read
            for read in reads
            if not (
                isinstance(read, ContentRead)
                and read.kind in ("array", "bits", "type")
                and id(read.found) in held
            )
        ]
        self.model = model_of(self.captured)
        arrays = []
        for found, value in self.captured.weights.values():
            if hasattr(found, "_version"):
                self._weights.append((found, value))
            elif is_variable(found) or (
                isinstance(found, np.ndarray)
                and (found.size > _COMPARED or any(found is a for a in self.reads.arrays))
            ):
                arrays.append((found, value))
        self.sessions = Sessions(self.model, [*self._weights, *arrays])
        self.guards = self._guards()


def _is_torch_parameter(held: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(held, torch.nn.Parameter)


def _written(held: Any, value: Any) -> bool:
    """Write the content of a tensor or array into another one, if it fits there."""
    if not hasattr(held, "shape") or (is_variable(held) and type(held).__name__ == "Parameter"):
        return False
    if held.shape != value.shape or held.dtype != value.dtype:
        return False
    if is_variable(held):
        held, value = held.array, value.array
    if isinstance(held, np.ndarray):
        np.copyto(held, value)
    else:
        with sys.modules["torch"].no_grad():
            held.copy_(value)
    return True


def _kind(value: Any) -> str:
    """Return whether a value is a tensor, variable or array, or the number that it is, or empty."""
    if type(value) in (bool, int, float):
        return type(value).__name__
    if is_variable(value):
        return "variable" if value.array is not None else ""
    return ("tensor" if hasattr(value, "_version") else "array") if hasattr(value, "dtype") else ""


def _other_state(attribute: Attribute, value: ir.Value, kind: str) -> str:
    """Return how an attribute differs from the input that it is, empty if it fits."""
    now = attribute.now()
    if not _kind(now):
        return f"the attribute '{attribute.path}' is no tensor any more"
    if _kind(now) != kind:
        return f"the attribute '{attribute.path}' is of another kind: {_kind(now)}, not {kind}"
    array = state_array(now)
    expected = [d if isinstance(d, int) else None for d in value.shape or ()]
    fits = array.ndim == len(expected) and all(
        size in (None, found) for size, found in zip(expected, array.shape, strict=True)
    )
    if fits and value.dtype is not None and array.dtype == value.dtype.numpy():
        return ""
    return f"the attribute '{attribute.path}' has another type or size"


def made_variant(
    model: Any,
    tree: Mapping[str, Tree],
    pattern: Pattern,
    *,
    examples: Callable[[Any], Any],
    by_place: int = 0,
    held: Collection[str] = (),
) -> Variant:
    """Capture a call, with the names of a pattern for its sizes.

    The first ``by_place`` of its arguments are given by position; those that are ``held`` are lists
    and dicts that the program finds elsewhere.

    Raises:
        CaptureError: It cannot become a graph. The reads so far are in its attribute ``reads``.
    """
    reads, used = Reads(), set[str]()
    whole = replaced(dict(tree), examples)  # at once: what is shared stays shared
    named = {n: Text(item) if isinstance(item, str) else item for n, item in whole.items()}
    types = [named.pop(name) for name in [*named][:by_place]]
    found = {name: named.pop(name) for name in held}
    try:
        captured = capture_object(
            model, types, named, MeaningTables(used.add), reads=reads, later=True, held=found
        )
        if not can_be_rebuilt(captured.structure):
            raise CaptureError(["the result is an object of a class that the call itself defines"])
        if any(leaf.is_parameter for leaf in leaves_of(captured.structure)):
            raise CaptureError(["the result is a torch.nn.Parameter that the call itself makes"])
        variant = Variant(pattern, reads, captured=captured)
        variant.prepare()
    except Obstacle as error:
        return Variant(None, reads, (str(error),))
    except CaptureError as error:
        return Variant(None, reads, error.problems, containers=error.containers)
    except Exception as error:
        return Variant(None, reads, (f"capture itself failed: {type(error).__name__}: {error}",))
    variant.asks_torch = bool(
        reads.tensors or reads.modules or any(not name.startswith("numpy") for name in used)
    )
    variant.asks_layout = bool(used.intersection(_LAYOUT))
    variant.asks_gradients = "torch.Tensor.requires_grad" in used
    variant.ordered = captured.ordered
    if "torch.Tensor.contiguous" in used:
        paths = [leaf.path for leaf in leaves_of(captured.structure)]
        paths += [view.path for view in captured.views.values()]
        paths += [path for change in captured.changes for path in change.written]
        variant.ordered |= frozenset(filter(None, paths))
    asked = {_ASKED[name] for name in used.intersection(_ASKED)}
    if captured.sets_mode and not sys.modules["torch"].is_grad_enabled():
        asked.add("is_grad_enabled")  # what has gradients where they are recorded is not known
    variant.modes = {name: getattr(sys.modules["torch"], name)() for name in sorted(asked)}
    return variant


def _lies_in_order(value: Any) -> bool:
    """Whether a tensor or an array lies in the order of its axes, without gaps."""
    flags = getattr(value, "flags", None)
    return bool(value.is_contiguous() if flags is None else flags.c_contiguous)


def example_of(pattern: Pattern) -> Callable[[TensorLeaf | NumberLeaf], Any]:
    """Return the function that makes types of the leaves of a call."""

    def made(leaf: TensorLeaf | NumberLeaf) -> Any:
        if isinstance(leaf, NumberLeaf):
            free = pattern.numbers[leaf.path] is None
            return Example(type(leaf.value).__name__) if free else leaf.value
        sizes = ", ".join(map(str, pattern.sizes[leaf.path]))
        return Example(f"{leaf.dtype}[{sizes}]", leaf.kind, type(leaf.value) is np.ndarray)

    return made


__all__ = ["GraphFailed", "Pattern", "Variant", "example_of", "made_variant"]
