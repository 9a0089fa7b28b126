"""A Python function or model that runs as a graph: its calls, and the graphs that serve them."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

from hagane.capturing.arguments import array_leaf, read_arguments, seen_places
from hagane.capturing.leaves import (
    NumberLeaf,
    Obstacle,
    TensorLeaf,
    Tree,
    leaves,
    objects,
    outline,
)
from hagane.capturing.recorded import chained, recorded
from hagane.capturing.results import kinds_of
from hagane.capturing.shortcut import MISSED, Shortcut
from hagane.capturing.tensors import is_casting, returned, wants_gradients
from hagane.capturing.variables import KIND, has_hooks, wants_way_back
from hagane.capturing.variant import (
    GraphFailed,
    Pattern,
    Variant,
    example_of,
    made_variant,
)
from hagane.errors import CaptureError, KernelError
from hagane.frontends.capture.capture import GLOBAL_HOOKS, has_global_hooks
from hagane.frontends.capture.interface.reads import NameRead
from hagane.frontends.capture.interface.rebuilding import rebuilt
from hagane.machine.collector import collector_at_rest

_MAX_VARIANTS = 16  # graphs for one kind of call
_OWN = frozenset(
    ("_model", "_fullgraph", "_explain", "_dynamic", "_signature", "_variants", "_seen", "_told",
     "_short", "_lock", "_writing", "_bound", "_held", "_places", "captures")
)  # fmt: skip
# Methods that Python looks for in the class: those of nn.Sequential, nn.ModuleDict and their like.
_SPECIAL = ("__len__", "__iter__", "__getitem__", "__setitem__", "__delitem__", "__contains__",
            "__bool__", "__reversed__", "__add__", "__mul__", "__iadd__", "__imul__")  # fmt: skip
_SELF = ("train", "eval", "requires_grad_", "to", "cpu", "float", "double", "half")


class CompileNotice(UserWarning):
    """A call of a compiled function runs in Python, or was captured anew."""


_IN_C = (BuiltinFunctionType, MethodDescriptorType)


class Compiled:
    """A function or model with the signature of the original, which runs as a graph.

    Attributes:
        captures: One line for each graph: the calls that it serves.
    """

    def __init__(self, model: Any, *, fullgraph: bool, explain: bool, dynamic: Any):
        self._model = model
        self._fullgraph, self._explain, self._dynamic = fullgraph, explain, dynamic
        self._signature = _signature(model)
        self._places = seen_places(model, self._signature)
        self._variants: dict[Any, list[Variant]] = {}
        self._seen: dict[Any, dict[Any, set[Any]]] = {}
        self._told: set[str] = set()
        self._lock = threading.RLock()
        self._writing = threading.RLock()  # held by calls that change attributes
        self._short: Shortcut | None = None  # the way of the last call
        self._held: dict[str, Any] = {}  # lists and dicts that calls change, by names
        self._bound: Any = weakref.WeakKeyDictionary()
        self.captures: list[str] = []
        functools.update_wrapper(self, model, updated=())

    # Attributes shared with the original.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _OWN:
            raise AttributeError(name)
        found = getattr(self._model, name)
        if name in _SELF and callable(found):
            return lambda *args, **kwargs: _itself(self, found(*args, **kwargs))
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or name.startswith("__"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._model, name, value)

    def __dir__(self) -> list[str]:
        """Return the names of the original's attributes, with those of a compiled one."""
        return sorted({*object.__dir__(self), *dir(self._model)})

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        if owner not in self._bound:
            method = self._model.__get__(owner, kind)
            self._bound[owner] = Compiled(
                method, fullgraph=self._fullgraph, explain=self._explain, dynamic=self._dynamic
            )
        return self._bound[owner]

    def __repr__(self) -> str:
        return f"hagane.compile({_name(self._model)})"

    @property
    def __hagane_original__(self) -> Any:
        """The function or model itself, which captures of other programs follow."""
        return self._model

    def __reduce_ex__(self, _: Any) -> Any:
        """Return how copies and pickles are made: of the original, to be compiled anew."""
        return compiled, (self._model, self._fullgraph, self._explain, self._dynamic)

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the original."""
        short = self._short if not kwargs else None
        if short is not None and short.is_plain:
            found = short.run(args)
            if found is not MISSED:
                return found
            short = None
        if _is_seen_by_others():
            return self._model(*args, **kwargs)
        if short is not None and not is_casting() and not has_global_hooks():
            found = short.run(args)
            if found is not MISSED:
                return found
        with self._writing if self._held else nullcontext():
            try:
                tree, found, variant = self._prepared(args, kwargs)
                if variant.containers and self._hold(variant):
                    tree, found, variant = self._prepared(args, kwargs)
                variant.check(found)
            except Obstacle as error:
                return self._in_python((str(error),), args, kwargs)
            if variant.problems:
                return self._in_python(variant.problems, args, kwargs)
            return self._run(variant, tree, found, args, kwargs)

    def _prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Tree], list[TensorLeaf | NumberLeaf], Variant]:
        """Return the parts of a call, and the graph that serves it."""
        tree = self._read(args, kwargs)
        found = leaves(tree)
        return tree, found, self._variant(tree, found, min(len(args), self._places))

    def _hold(self, variant: Variant) -> bool:
        """Give graphs from now on the lists and dicts that a call changes; whether there are more.

        Those that the program does not find any more are left out.
        """
        names = [read.value for read in variant.reads.reads if isinstance(read, NameRead)]
        there = {id(value) for value in names}
        kept = {name: one for name, one in self._held.items() if id(one) in there}
        more = {
            n: c for n, c in variant.containers.items() if not any(c is k for k in kept.values())
        }
        try:
            read_arguments(self._signature.bind_partial(), array_leaf, more)
        except Obstacle:
            return False
        self._held = {**kept, **more}
        for known in self._variants.values():
            known[:] = [one for one in known if not one.containers]
        return bool(more)

    def _read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tree]:
        if is_casting():
            raise Obstacle("torch.autocast is on, whose types the source does not show")
        if has_global_hooks():
            raise Obstacle(GLOBAL_HOOKS)
        bound = self._signature.bind(*args, **kwargs)
        return read_arguments(bound, array_leaf, self._held)

    def _run(
        self,
        variant: Variant,
        tree: Mapping[str, Tree],
        found: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        assert variant.captured is not None
        structure = variant.captured.structure
        given = [x.value for x in found if isinstance(x, TensorLeaf) and x.kind == "torch.Tensor"]
        state = [value for value in variant.state if hasattr(value, "_version")]
        tensors = [*given, *variant.parameters, *state]
        variables = [x.value for x in found if isinstance(x, TensorLeaf) and x.kind == KIND]
        variables += [value for value in variant.variables if value.array is not None]
        called = functools.partial(self._called, min(len(args), self._places))
        is_chained = KIND in kinds_of(structure).values() and wants_way_back(variables)
        try:
            if is_chained and not (variant.captured.state or variant.captured.changes):
                return chained(called, variant, tree, variables)
            if is_chained:
                reason = "the call changes attributes or arguments and gradients are recorded; use "
                reason += "hagane.no_backprop_mode() for the graph"
                return self._in_python((reason,), args, kwargs, always=True)
            is_recorded = wants_gradients(tensors)
            if (
                variant.captured.records
                and not is_recorded
                and any(t.requires_grad for t in tensors)
            ):
                reason = "the call turns gradients on where the caller has turned them off"
                return self._in_python((reason,), args, kwargs, always=True)
            if not is_recorded:
                known: dict[str, Any] = {}
                with self._writing if variant.captured.state else nullcontext():
                    made = variant.run(tree, known)
                there = {x.path: x.value for x in found if isinstance(x, TensorLeaf)}
                result = rebuilt(structure, made, returned, {**objects(tree), **there}, known)
                self._short = Shortcut.of(variant, tree, args, kwargs)
                return result
            if getattr(self._model, "training", False):
                reason = "the model is in training, where PyTorch itself computes gradients; call "
                reason += "eval(), or use torch.no_grad(), for the graph"
                return self._in_python((reason,), args, kwargs, always=True)
            if variant.captured.state or variant.captured.changes:
                reason = "the call changes attributes or arguments and PyTorch records gradients; "
                reason += "use torch.no_grad() for the graph"
                return self._in_python((reason,), args, kwargs, always=True)
            if variant.passes_over:
                reason = "a tensor is written under torch.no_grad() or by .detach(), and gradients "
                reason += "are recorded; use torch.no_grad() around the call for the graph"
                return self._in_python((reason,), args, kwargs, always=True)
            return recorded(called, variant, tree, tensors)
        except GraphFailed as error:  # nothing was changed yet
            return self._instead(error.error, args, kwargs)

    def _instead(self, error: KernelError, args: Any, kwargs: Any) -> Any:
        """Run the original after its graph failed on the arguments' data.

        Data may be out of range: the original then raises Python's error. Where it does
        not, the graph failed by itself, which is told.

        Raises:
            KernelError: With ``fullgraph``, where the original would not fail.
        """
        result = self._model(*args, **kwargs)
        if self._fullgraph:
            raise error
        self._tell(f"{_name(self._model)} ran in Python: the graph failed, {error}")
        return result

    def _called(self, by_place: int, arguments: Mapping[str, Any]) -> Any:
        positional, named = [], {k: v for k, v in arguments.items() if k not in self._held}
        parameters = self._signature.parameters
        more = (p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL)
        if named.get(next(more, "")):  # further ones follow, by their places
            by_place = len(parameters)
        for place, (name, parameter) in enumerate(parameters.items()):
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += named.pop(name, ())
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(named.pop(name, {}))
            elif parameter.kind is parameter.KEYWORD_ONLY:
                continue
            elif place < by_place or parameter.kind is parameter.POSITIONAL_ONLY:
                positional += [named.pop(name)] if name in named else []
        return self._model(*positional, **named)

    def _in_python(
        self, problems: Sequence[str], args: Any, kwargs: Any, *, always: bool = False
    ) -> Any:
        """Run the original, and say once why."""
        if self._fullgraph and not always:
            raise CaptureError(problems)
        more = f" (and {len(problems) - 1} more; fullgraph=True lists them)" if problems[1:] else ""
        self._tell(f"{_name(self._model)} runs in Python: {problems[0]}{more}")
        return self._model(*args, **kwargs)

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            warnings.warn(f"hagane.compile: {text}", CompileNotice, stacklevel=4)

    # Graphs.

    def _variant(self, tree: Mapping[str, Tree], found: Sequence[Any], by_place: int) -> Variant:
        """Return the graph for a call, captured if there is none that serves it."""
        key = outline(dict(tree)), _default_dtype(), by_place
        with self._lock:
            known = self._variants.setdefault(key, [])
            reasons, broken = [], []
            for variant in known:
                reason = variant.pattern.differs(found) if variant.pattern is not None else ""
                if not reason:
                    reason = variant.broken()
                    if not reason:
                        known.remove(variant)
                        known.insert(0, variant)  # the next call is likely to be the same
                        return variant
                    broken.append(variant)
                reasons.append(reason)
            if reasons:
                self._say(f"captured anew: {reasons[0]}")
                self._tell(f"{_name(self._model)} is captured anew: {reasons[0]}")
            if len(known) >= _MAX_VARIANTS and not broken:
                raise Obstacle(
                    f"there are {_MAX_VARIANTS} graphs for calls of this kind already, the last "
                    f"one because {reasons[0]}; dynamic=True leaves all sizes open from the start"
                )
            if len(known) >= _MAX_VARIANTS:
                known.remove(broken[-1])
            with collector_at_rest():  # nearly all that a capture makes stays
                made = self._captured(key, tree, found, by_place)
            if made.reads.reads or not made.problems:
                known.insert(0, made)  # others failed before anything was read: tried again
            return made

    def _captured(
        self,
        key: Any,
        tree: Mapping[str, Tree],
        found: Sequence[TensorLeaf | NumberLeaf],
        by_place: int,
    ) -> Variant:
        start = time.perf_counter()
        first: Variant | None = None
        for pattern in _ladder(self._pattern(key, found), found):
            examples = example_of(pattern)
            made = made_variant(
                self._model, tree, pattern, examples=examples, by_place=by_place, held=self._held
            )
            if not made.problems:
                break
            first = first or made
        else:
            assert first is not None
            made = first
        seconds = time.perf_counter() - start
        if made.problems:
            self._say("not captured:\n" + "\n".join(f"  {p}" for p in made.problems))
            return made
        assert made.captured is not None
        count = sum(1 for _ in made.captured.graph.all_nodes())
        line = f"{_name(self._model)}({made.pattern}): {count} nodes, {seconds:.2f} s"
        self.captures.append(line)
        self._say(f"captured {line}\n{_guards(made)}")
        for text in made.captured.left_out:
            self._tell(f"{_name(self._model)}: {text}")
        return made

    def _pattern(self, key: Any, found: Sequence[TensorLeaf | NumberLeaf]) -> Pattern:
        """Return which sizes and numbers the next graph leaves open."""
        seen = self._seen.setdefault(key, {})
        names: dict[int, str] = {}
        sizes: dict[str, tuple[int | str, ...]] = {}
        numbers: dict[str, Any] = {}
        for leaf in found:
            if isinstance(leaf, NumberLeaf):
                values = seen.setdefault(leaf.path, set())
                values.add(leaf.value)
                is_free = self._dynamic is not False and len(values) > 1
                # Neither truth values nor complex numbers are inputs of a graph.
                free = is_free and type(leaf.value) in (int, float) and leaf.value == leaf.value
                free = free and (isinstance(leaf.value, float) or abs(leaf.value) < 2**62)
                numbers[leaf.path] = None if free else leaf.value
                continue
            given = _names_of(self._dynamic, leaf.path)
            made: list[int | str] = []
            for axis, size in enumerate(leaf.shape):
                before = seen.setdefault((leaf.path, axis), set())
                before.add(size)
                varies = self._dynamic is True or (self._dynamic is None and len(before) > 1)
                if size < 2 or (axis not in given and not varies):
                    made.append(size)
                else:
                    made.append(given.get(axis) or names.setdefault(size, f"size{len(names)}"))
            sizes[leaf.path] = tuple(made)
        return Pattern(sizes, numbers)

    def _say(self, text: str) -> None:
        if self._explain:
            print(f"hagane.compile: {text}")


class CompiledModule(Compiled):
    """A compiled module of PyTorch, which stands in other modules in the place of the original.

    It passes for an object of the original's class: parameters, buffers and modes are its own.
    """

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the original."""
        return type(self._model)


def compiled(model: Any, fullgraph: bool, explain: bool, dynamic: Any) -> Compiled:
    """Return a function or model that runs as a graph; see :func:`hagane.compile`."""
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(model, torch.nn.Module)
    kind = Compiled
    if is_module:
        kind = _with(tuple(name for name in _SPECIAL if hasattr(type(model), name)))
    return kind(_described(model), fullgraph=fullgraph, explain=explain, dynamic=dynamic)


@functools.cache
def _with(names: tuple[str, ...]) -> type[CompiledModule]:
    """Return the class of compiled modules whose originals have special methods."""
    if not names:
        return CompiledModule

    def method(name: str) -> Any:
        return lambda self, *given: getattr(self._model, name)(*given)

    made: Any = type("CompiledModule", (CompiledModule,), {name: method(name) for name in names})
    return made  # type: ignore[no-any-return]


def _ladder(free: Pattern, found: Sequence[TensorLeaf | NumberLeaf]) -> Iterator[Pattern]:
    """Yield patterns to try in turn: fewer and fewer sizes are open, the last axes close first."""
    shapes = {x.path: x.shape for x in found if isinstance(x, TensorLeaf)}
    fixed = {x.path: x.value for x in found if isinstance(x, NumberLeaf)}
    tried: list[Pattern] = []
    for kept, numbers in ((None, free.numbers), (-1, free.numbers), (1, fixed), (0, fixed)):
        sizes = {
            path: (*named[:kept], *shapes[path][len(named[:kept]) :])
            for path, named in free.sizes.items()
        }
        pattern = Pattern(sizes, numbers)
        if pattern not in tried:
            tried.append(pattern)
            yield pattern


def _itself(compiled: Compiled, found: Any) -> Any:
    return compiled if found is compiled._model else found


def _signature(model: Any) -> inspect.Signature:
    return inspect.signature(getattr(model, "forward", model))


def _described(model: Any) -> Any:
    """Return a function that takes any arguments in the place of one in C."""
    try:
        _signature(model)
        in_c = isinstance(model, _IN_C) or type(model).__module__ == "torch._ops"
    except (TypeError, ValueError):
        in_c = True
    if in_c:
        named = _name(model)

        def called(*args: Any, **kwargs: Any) -> Any:
            return model(*args, **kwargs)

        called.__name__ = called.__qualname__ = named
        return called
    return model


def _name(model: Any) -> str:
    return str(getattr(model, "__qualname__", None) or type(model).__name__)


def _names_of(dynamic: Any, path: str) -> Mapping[int, str]:
    found = dynamic.get(path, {}) if isinstance(dynamic, Mapping) else {}
    return dict(enumerate(found)) if isinstance(found, tuple | list) else found


def _default_dtype() -> str:
    torch = sys.modules.get("torch")
    return "" if torch is None else str(torch.get_default_dtype())


def _is_seen_by_others() -> bool:
    """Whether others follow the program: hooks of hagane, PyTorch that exports or compiles it."""
    if has_hooks():
        return True
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    if torch.autograd.forward_ad._current_level >= 0:  # tangents, which no array has
        return True
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._functorch.maybe_current_level())


def _guards(variant: Variant) -> str:
    from hagane.frontends.capture.interface.reads import shown

    told = [r for r in variant.reads.reads if isinstance(r, NameRead)]
    lines = [
        f"  {read.place} is {shown(read.value)}"
        for read in told
        if isinstance(read.value, bool | int | float | str | tuple)
    ]
    rest = len(variant.reads.reads) - len(lines)
    lines.append(f"  {rest} other names and contents that were read are the same")
    lines.append(f"  {len(variant.reads.modules)} modules have no forward hooks")
    return "guards:\n" + "\n".join(dict.fromkeys(lines))


__all__ = ["CompileNotice", "Compiled", "CompiledModule", "compiled"]
