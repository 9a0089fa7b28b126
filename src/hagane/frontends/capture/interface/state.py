"""State that a call changes: attributes of objects as inputs, their new values as outputs."""

from __future__ import annotations

import inspect
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from hagane.frontends.capture.interface.arguments import Arguments, equal, same_content
from hagane.frontends.capture.interface.reads import NameRead, Reading, Reads
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import WRITTEN, memory_of
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.type_text import parse_type
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    ListRef,
    Real,
    SetRef,
    Tensor,
    Truth,
    Unset,
    Value,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Expr, definitely_equal


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a real object that a call changes.

    Attributes:
        owner: The object.
        name: The attribute's name.
        path: Its path, by which input and output are called.
        is_read: Whether the call reads it before it sets it: it is an input then.
        in_place: Whether the call writes the memory of the tensor that it is, which stays.
    """

    owner: Any
    name: str
    path: str
    is_read: bool
    in_place: bool = False

    @property
    def is_hooks(self) -> bool:
        """Whether it is what ``torch.nn.Module.register_forward_hook`` leaves on a module."""
        return self.name.startswith("<hooks")

    def now(self) -> Any:
        """Return its value."""
        return _held(self.owner, self.name)

    def namespaces(self) -> list[Any]:
        """Return the namespaces in which it may lie."""
        return _namespaces(self.owner)


class LastingChange(CheckError):
    """A change of something that outlives the call, and that no graph changes.

    Args:
        message: It in words.
        containers: The lists and dicts that are changed, by names that tell them apart, where these
            keep their keys and nothing else is changed: they may be given to a graph.
    """

    def __init__(self, message: str, containers: Mapping[str, Any]):
        super().__init__("capture", message)
        self.containers = containers


class NoState(CheckError):
    """A change of an attribute that is no state of a graph: its values are of two types.

    Args:
        message: It in words.
        key: The object's identity and the attribute's name.
    """

    def __init__(self, message: str, key: tuple[int, str]):
        super().__init__("capture", message)
        self.key = key


class Stateful(Reading):
    """Notes reads, and gives inputs of the graph for attributes that change.

    Args:
        reads: Takes the notes.
        paths: The paths of objects, by identity.
        wanted: The types of attributes that are inputs, by object and name.
        seeds: The attributes that are there from the start, because the call changes them.
        open_numbers: The paths of numbers in arguments that are inputs, because the call
            changes them.
        core: The interpreter.

    Attributes:
        state_inputs: The names of inputs that are attributes.
        arguments: The objects, lists and dicts that the caller gave.
        taken: The names of the arguments.
    """

    def __init__(
        self,
        reads: Reads,
        paths: Mapping[int, str],
        wanted: Mapping[tuple[int, str], str],
        seeds: Sequence[Attribute],
        open_numbers: Set[str],
        core: Interpreter,
    ):
        super().__init__(reads, core)
        self.open_numbers = open_numbers
        self.arguments = Arguments(core)
        self.wanted, self.paths, self.seeds = wanted, paths, seeds
        self.state_inputs: set[str] = set()
        self._first: dict[tuple[int, str], Value] = {}
        self._sought: set[tuple[int, str]] = set()
        self._objects: list[Instance] = []
        self._unset: dict[tuple[int, str], Unset] = {}
        self._containers: list[tuple[Any, Any, Any]] = []
        self._classes: list[tuple[Any, Class, dict[str, Value]]] = []
        self._inputs: dict[tuple[int, str], Value] = {}
        self._places: dict[str, str] = {}
        self.taken: set[str] = set()
        self._still = core.emit.still

    def attribute(self, value: Instance, name: str, held: Callable[[], Value]) -> Value:
        """Return the value of an attribute of a real object; one that changes is an input."""
        key = (id(value.host), name)
        if key not in self._inputs and key in self.wanted:
            self._inputs[key] = self._input(value.host, name, self.wanted[key])
        found = self._inputs.get(key, MISSING)
        if found is MISSING:
            found = super().attribute(value, name, held)
        if found is not MISSING:
            self._first.setdefault((value.key, name), found)
        else:  # its class may have it
            self._sought.add(key)
        return found

    def seed(self) -> None:
        """Read the attributes that the call changes before it starts: branches may set them."""
        self._still = self.core.emit.still
        for attribute in self.seeds:
            host, name = attribute.owner, attribute.name
            if attribute.is_hooks:
                continue  # none are there
            value = self.core.lift(host)
            if isinstance(value, Instance) and self.core.own_attribute(value, name) is MISSING:
                of_class = _held(host, name)
                if of_class is not MISSING:
                    self.core.heap[value][name] = self.core.lift(of_class)
                    continue
                told = f"the attribute '{self.path_of(host, name)}' is not set before the call"
                unset = self._unset[id(host), name] = Unset(told, told=False)
                self.core.heap[value][name] = unset

    def _input(self, host: Any, name: str, text: str) -> Value:
        held = _held(host, name)
        kind = "torch.Tensor" if hasattr(held, "_version") else "numpy.ndarray"
        kind = "chainer.Variable" if hasattr(held, "creator_node") else kind
        path = self.path_of(host, name)
        self.state_inputs.add(path)
        made = self.core.make_value(parse_type(text), path, kind)
        if isinstance(made, Tensor):
            made.parameter = name in getattr(host, "__dict__", {}).get("_parameters", ())
            made.value.meta["hagane.state"] = path
            made.value.meta["hagane.held"] = held
            self.core.lifted[id(held)] = held, made  # by other names too
        return made

    def path_of(self, host: Any, name: str) -> str:
        """Return the path of an attribute; it begins with ``self.`` where an argument has it."""
        path = self.paths.get(id(host), "")
        path = f"{path}.{name}" if path else name
        return f"self.{path}" if path.partition(".")[0] in self.taken else path

    def original(self, value: Value) -> Any:
        """Return the real object that a value stands for; ``MISSING`` for those of the caller."""
        given = isinstance(value, Tensor) and self.arguments.path_of_tensor(value)
        if given or self.arguments.path_of(value) is not None:
            return MISSING
        host = getattr(value, "host", None)
        known = (found for found, made in self.core.lifted.values() if made is value)
        return next(known, None) if host is None else host

    def lifted(self, found: Any, value: Value) -> None:
        """Note the content of an object, and hold it: the call may change it."""
        super().lifted(found, value)
        if isinstance(value, Instance) and value.host is not None:
            self._objects.append(value)
            for name, held in self.core.heap[value].items():  # values that the lift has computed
                self._first.setdefault((value.key, name), held)
        if isinstance(value, Class) and value.host is not None:
            self._classes.append((found, value, dict(self.core.heap[value])))
        if isinstance(value, ListRef | DictRef | SetRef):
            content = self.core.heap[value]
            kept = dict(content) if isinstance(content, dict) else content
            self._containers.append((found, value, kept))

    def changed(self) -> dict[tuple[int, str], tuple[Attribute, Value, Value]]:
        """Return the attributes that the call changed, with their old and new values.

        Raises:
            LastingChange: It changed something that is no attribute.
        """
        heap = self.core.heap
        written = self._written()
        made: dict[tuple[int, str], tuple[Attribute, Value, Value]] = {}
        seeded = {(id(a.owner), a.name): a for a in self.seeds}
        for value in self._objects:
            for name, now in heap[value].items():
                key = (id(value.host), name)
                first = self._first.get((value.key, name), MISSING)
                raw = _held(value.host, name)
                if now is first or name.startswith("_modules"):
                    continue
                before = first if first is not MISSING else self._before(raw)
                if self._same(before, now):
                    continue
                path = self.path_of(value.host, name)
                in_place = isinstance(first, Tensor) and not written.isdisjoint(
                    memory_of(first.value)
                )
                is_read = first is not MISSING or (key in self._sought and raw is not MISSING)
                found = Attribute(value.host, name, path, is_read, in_place)
                kept = seeded.get(key, found)
                if key in self._unset and self._unset[key].asked:
                    kept = replace(kept, is_read=True)
                made[key] = kept, before, now
        lasting = [*self._lasting()]
        for told, _ in lasting:
            containers = [one for _, one in lasting if one is not None]
            named = self._named(containers) if len(containers) == len(lasting) else {}
            raise LastingChange(f"{self._places.get(told, '')}{told}", named)
        return made

    def _named(self, containers: Sequence[Any]) -> dict[str, Any]:
        """Return containers by the names under which the program finds them."""
        names = {id(r.value): r.place for r in self.reads.reads if isinstance(r, NameRead)}
        named: dict[str, Any] = {}
        for found in containers:
            if any(found is one for one in named.values()):
                continue
            place = names.get(id(found), type(found).__name__)
            named[f"{place} {len(named)}" if place in named else place] = found
        return named

    def _same(self, before: Value, now: Value) -> bool:
        """Whether a value is unchanged; a list made anew of the same tensors is."""
        if isinstance(before, Tensor) and isinstance(now, Tensor):
            return before.value is now.value
        if isinstance(before, ListRef) and isinstance(now, ListRef):
            a, b = self.core.heap[before], self.core.heap[now]
            known = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
            return before is now or (known and all(map(self._same, a, b)))
        return before is now or equal(before, now)

    def _written(self) -> set[ir.Value]:
        """Return values that stand for the memory that the call writes."""
        return {base for base, _, _ in self.core.heap.contents[WRITTEN]}

    def _lasting(self) -> Iterator[tuple[str, Any]]:
        """Yield the lasting changes of the call that no graph makes.

        With each comes the list or dict that is changed, if it keeps its keys, else None.
        """
        heap = self.core.heap
        if self.core.emit.still is not self._still:
            told = "the call leaves gradients on or off, which a graph cannot; use torch.no_grad()"
            yield told, None
        yield from self._written_elsewhere()
        for module in self.core.modules.values():
            for name, now in heap[module].items():
                raw = module.host.get(name, MISSING)
                if raw is not MISSING and now is not self.core.lift(raw) and not equal(raw, now):
                    told = f"the call sets the global '{name}', which a graph cannot; return it"
                    yield told, None
        for variable, now in self.core.cells.changed():
            if not equal(variable.before, now):
                yield (
                    (
                        f"the call sets '{variable.name}' of an enclosing function, which a graph "
                        "cannot; return it"
                    ),
                    None,
                )
        for found, cls, content in self._classes:
            for name, now in heap[cls].items():
                first = content.get(name, MISSING)
                if now is not first and not equal(first, now):
                    told = (
                        f"the call sets '{name}' of the class {found.__name__}, which a graph "
                        "cannot; return it, or keep it in an attribute of an object"
                    )
                    yield told, None
        for found, ref, content in self._containers:
            now = heap[ref] if ref.key in heap.contents else content
            if not same_content(content, now):
                keeps = _keys(content) == _keys(now) is not None
                told = (
                    f"the call changes a {type(found).__name__} that it did not make; return the "
                    "new one or what is new in it, and change it after the call, or keep a tensor "
                    "in an attribute"
                )
                yield told, found if keeps else None

    def _written_elsewhere(self) -> Iterator[tuple[str, Any]]:
        """Yield what is told of tensors that the call writes, and that are no attributes.

        With each comes the list or dict that it is in, else None.
        """
        written = self._written()
        if not written or self.core.emit.training is not None:
            return
        held = {id(value) for value in self._first.values()}
        for found, value in self.core.lifted.values():
            is_other = isinstance(value, Tensor) and id(value) not in held
            if is_other and not written.isdisjoint(memory_of(value.value)):
                told = (
                    f"the call writes into a {type(found).__name__} that is no attribute and that "
                    "it did not make; return the new one"
                )
                yield told, self._container_of(value)

    def _container_of(self, value: Value) -> Any:
        """Return the list or dict in which a tensor was found; None if it was in none."""
        for found, _, content in self._containers:
            items = content.values() if isinstance(content, dict) else content
            if isinstance(found, list | dict | deque) and any(item is value for item in items):
                return found
        return None

    def look(self, place: str) -> None:
        """Note which lasting changes a statement made that was run at a place."""
        for told, _ in self._lasting():
            self._places.setdefault(told, f"{place}: ")

    def _before(self, raw: Any) -> Value:
        return MISSING if raw is MISSING else self.core.lift(raw)


def _keys(content: Any) -> list[Any] | int | None:
    """Return the keys of a dict, the length of a list; None for other contents."""
    if isinstance(content, dict):
        return [*content]
    return len(content) if isinstance(content, tuple) else None


def type_of_state(
    attribute: Attribute,
    before: Value,
    now: Value,
    core: Interpreter,
    known: str,
    *,
    later: bool,
    fixed: bool = False,
) -> str:
    """Return the type of an attribute as an input; sizes that a call changes get names.

    Args:
        attribute: It.
        before: Its value before the call.
        now: Its value after it.
        core: The interpreter.
        known: The type that it had as an input in this attempt, empty if it was none.
        later: Whether there are other graphs for calls that find another value before.
        fixed: Whether there are others for those that find other sizes, too.

    Returns:
        The type; empty for an attribute set without being read, without a value before, and
        for one whose value before the graph takes for known.

    Raises:
        NoState: Its values before and after cannot be of one type.
    """
    if before is MISSING or before is None:
        if is_output(now) or (later and (_is_known(now) or holds_outputs(core, now))):
            return ""
        raise _unlike(attribute, before, now, core)
    if not isinstance(now, Tensor):
        if later and holds_outputs(core, before) and holds_outputs(core, now):
            return ""
        kinds = {_number(before), _number(now)}
        if len(kinds) == 1 and "" not in kinds:
            return kinds.pop()
        kept = _is_known(now) or bool(_number(now))
        if later and _is_known(before) and kept:
            return ""
        if later and not attribute.is_read and (kept or holds_outputs(core, now)):
            return ""
        raise _unlike(attribute, before, now, core)
    if later and _is_known(before):
        return ""
    fits = isinstance(before, Tensor) and before.dtype == now.dtype and before.rank == now.rank
    if not fits and later and not attribute.is_read:
        return ""
    if not fits or before.shape is None or now.shape is None:
        raise _unlike(attribute, before, now, core)
    sizes = []
    for axis, (old, new) in enumerate(zip(before.shape, now.shape, strict=True)):
        stays = fixed or isinstance(old, Expr) or definitely_equal(old, new)
        sizes.append(str(old) if stays else f"{attribute.path.replace('.', '_')}_{axis}")
    made = f"{dtype_name(before.dtype)}[{', '.join(sizes)}]"
    return known if known and parse_type(known) == parse_type(made) else made


def _unlike(attribute: Attribute, before: Value, now: Value, core: Interpreter) -> NoState:
    old = "nothing" if before is MISSING else core.show(before)
    owner = attribute.path.rpartition(".")[0]
    if attribute.is_hooks:
        return NoState(
            f"the call leaves a forward hook on the module '{owner}', where each further call "
            "would add one: remove it before the end by handle.remove(), or call the module once "
            "before if only its first call adds hooks",
            (id(attribute.owner), attribute.name),
        )
    return NoState(
        f"the attribute '{attribute.path}' is {old} before the call and {core.show(now)} after it; "
        "state keeps its type: set it to a tensor or a number of that type first",
        (id(attribute.owner), attribute.name),
    )


def is_output(value: Value) -> bool:
    """Whether an attribute's new value is one output of a graph: a tensor or a number."""
    return isinstance(value, Tensor) or bool(_number(value))


def holds_outputs(core: Interpreter, value: Value) -> bool:
    """Whether a list or tuple has tensors and numbers, which can be outputs each."""
    value = core.settle(value)
    content = core.heap[value] if isinstance(value, ListRef) else value
    return isinstance(content, tuple) and all(
        is_output(item) or holds_outputs(core, item) for item in content
    )


def _is_known(value: Value) -> bool:
    """Whether a value is a number or text that a graph may take for known, or None."""
    return value is None or isinstance(value, bool | int | float | str)


def _number(value: Value) -> str:
    if isinstance(value, bool | Truth):
        return "bool"
    if isinstance(value, int | Expr):
        return "int"
    return "float" if isinstance(value, float | Real) else ""


def _held(host: Any, name: str) -> Any:
    """Return the value of an attribute of an object, or the one that its class gives it."""
    for names in _namespaces(host):
        if name in names:
            return names[name]
    of_class = inspect.getattr_static(type(host), name, MISSING)
    if isinstance(of_class, types.MemberDescriptorType):
        return getattr(host, name, MISSING)
    return MISSING if hasattr(type(of_class), "__get__") else of_class


def _namespaces(host: Any) -> list[Any]:
    own = getattr(host, "__dict__", {})
    inner = (own.get(part) for part in ("_parameters", "_buffers", "_modules"))
    return [own, *(names for names in inner if isinstance(names, dict))]


__all__ = [
    "Attribute",
    "LastingChange",
    "NoState",
    "Stateful",
    "holds_outputs",
    "is_output",
    "type_of_state",
]
