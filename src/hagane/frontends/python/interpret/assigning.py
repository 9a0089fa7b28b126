"""Assignment to names, attributes and items, and their deletion."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import BINARY, apply_plain, known_place
from hagane.frontends.python.interpret.comparing import is_declined
from hagane.frontends.python.interpret.reading.items import lost_part
from hagane.frontends.python.interpret.reading.open_places import OpenPlaces
from hagane.frontends.python.interpret.setting.settable import error_of_setting
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import MEMBERS
from hagane.frontends.python.values.objects import (
    Class,
    Function,
    Instance,
    Wrapped,
    is_key,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Host,
    Library,
    ListRef,
    Many,
    Ref,
    Tensor,
    Unknown,
    Value,
    alternatives,
    is_plain,
)
from hagane.symbolic import definitely_equal

# Attributes of tensors that change no content; those that give one another content, and all of it.
_OF_GRADIENTS = ("grad", "requires_grad", "name", "grad_var")
_PARTS = ("flat", "real", "imag")
_CONTENT = ("data", "array", "shape", "dtype", "strides", "T", *_PARTS)
_OF_OBJECTS = ("__class__", "__dict__", "__bases__", "__mro__")  # what makes them what they are
_STEPS = 16  # statements between two looks at the clock


class Assignments(OpenPlaces):
    """Runs statements that bind values."""

    def _do_Assign(self, node: ast.Assign) -> None:
        unpacked = isinstance(node.targets[0], ast.Tuple | ast.List)
        value = self.evaluate_to_end(node.value) if unpacked else self.evaluate(node.value)
        for target in node.targets:
            self._assign_or_fail(target, value)

    def _assign_or_fail(self, target: ast.expr, value: Value) -> None:
        """Bind a target; names that cannot be bound are unknown from there on."""
        try:
            self.assign(target, value)
        except CheckError as error:
            self._fail_names(target, error)
            raise

    def _fail_names(self, target: ast.expr, error: CheckError) -> None:
        """Make the names of a target unknown, to which an error gave no value."""
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self.bind_name(part.id, Unknown(error.message, told=True, failed=True))

    def _do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            value = self.evaluate(node.value)
            if isinstance(node.target, ast.Name):
                value = self.check_annotated(node.target.id, node.annotation, value)
            self.assign(node.target, value)

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        assert self.frame is not None
        key = self.frame.key
        target, held = self._target_read_once(node.target)
        try:
            self._augment(node, target)
        finally:
            for name in held:
                self.heap[key].pop(name, None)

    def _target_read_once(self, target: ast.expr) -> tuple[ast.expr, list[str]]:
        """Return a target whose calls are evaluated, and the names that hold their results.

        Python evaluates the object and the index of ``f().x[g()] += 1`` once, for the item that it
        reads and for the one that it sets. No program can write the names.
        """
        held: list[str] = []

        def once(part: ast.expr) -> ast.expr:
            if not any(isinstance(n, ast.Call | ast.NamedExpr | ast.Await) for n in ast.walk(part)):
                return part
            name = f"<{ast.unparse(part)}>"
            self.bind_name(name, self.evaluate(part))
            held.append(name)
            return ast.copy_location(ast.Name(name, ast.Load()), part)

        match target:
            case ast.Subscript(value=owner, slice=index):
                read: ast.expr = ast.Subscript(once(owner), once(index), target.ctx)
            case ast.Attribute(value=owner, attr=name):
                read = ast.Attribute(once(owner), name, target.ctx)
            case _:
                return target, held
        return (ast.copy_location(read, target) if held else target), held

    def _augment(self, node: ast.AugAssign, target: ast.expr) -> None:
        left = self.evaluate(_loaded(target))
        if isinstance(node.op, ast.Add) and self.extend_in_turn(_loaded(target), node.value):
            return
        right = self.evaluate(node.value)
        self.emit.label = self.collector.text(node)
        changed = self._changed(type(node.op), left, right)
        if changed is not MISSING:
            self.assign(target, changed)
            return
        if isinstance(left, Tensor) and not isinstance(right, Unknown):
            right = self.settle(right)
            name = f"i{BINARY[type(node.op)][0]}"
            is_item = (
                self.emit.builds
                and isinstance(target, ast.Subscript)
                and isinstance(self.evaluate(target.value), Tensor)
            )
            run = self.tables.item_operator if is_item else self.tables.operator
            operate = partial(self.either, right, lambda r: run(self, name, left, self.unwrap(r)))
        else:
            operate = partial(self.binary, type(node.op), left, right)
        try:
            value = operate()
        except CheckError as error:
            self._fail_names(target, error)
            raise
        self.assign(target, value)

    def _changed(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return an object that an operator changed in place; ``MISSING`` if it changes none."""
        if isinstance(left, Choice) and any(isinstance(one, Ref) for one in alternatives(left)):

            def either(one: Value) -> Value:
                changed = self._changed(kind, one, right)
                return self.binary(kind, one, right) if changed is MISSING else changed

            return self.either(left, either)
        if isinstance(left, Instance):
            own = self.method_of(left, f"__i{BINARY[kind][0]}__")
            made = MISSING if own is MISSING else self.call(own, [right], {})
            return MISSING if made is not MISSING and is_declined(made) else made
        return self.change(kind, left, right)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target to a value."""
        match target:
            case ast.Name(id=name):
                value = self.domain.bind(None, name, value)
                self.bind_name(name, value)
                self._record_target(target, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(target, parts, value)
            case ast.Attribute(value=owner, attr=name):
                receiver = self.evaluate(owner)
                self.set_attribute(receiver, self.own_name(receiver, name), value)
                self._record_target(target, value)
            case ast.Subscript(value=owner, slice=index):
                self.set_item(self.evaluate(owner), self.evaluate(index), value)
            case ast.Starred(value=inner):
                self.assign(inner, value)

    def _record_target(self, target: ast.expr, value: Value) -> None:
        frame = self.frame
        assert frame is not None
        if frame.is_user and not self.collector.muted and not isinstance(value, Function | Class):
            self.collector.type(frame, target, value, self.show(value))

    def bind_name(self, name: str, value: Value) -> None:
        """Set a name of the current frame, or of the one that it declares the name of."""
        frame = self.frame
        assert frame is not None
        key = frame.key
        if name in frame.outer:
            if frame.outer[name] == "global":
                key = frame.module.key
            else:
                where = frame.parent
                while where is not None and (
                    where.is_class or (name not in self.heap[where.key] and where.cell != name)
                ):
                    where = where.parent
                key = frame.key if where is None else where.key
        self.heap[key][name] = value

    def _unpack(self, target: ast.expr, parts: Sequence[ast.expr], value: Value) -> None:
        value = self.settle(value)
        if isinstance(value, Unknown):
            for part in parts:
                self.assign(part, value)
            return
        if isinstance(value, Choice):
            if self.emit.builds and any(one is None for one in alternatives(value)):
                self._unpack(target, parts, self.present(value))
                return
            joined = self._joined_parts(value, len(parts))
            if joined is None:
                self.either(value, lambda v: self._unpack(target, parts, v))
                return
            value = joined
        items = self.sequence(value)
        starred = next((i for i, p in enumerate(parts) if isinstance(p, ast.Starred)), None)
        if isinstance(items, Many):
            self._unpack_many(target, parts, items, starred, value)
            return
        if len(items) != len(parts) and (starred is None or len(items) < len(parts) - 1):
            at_least = "" if starred is None else "at least "
            expected = len(parts) - (starred is not None)
            raise CheckError(
                "unpack",
                f"expected {at_least}{expected} values to unpack, got {len(items)}: "
                f"{self.show(value)}",
                tensors=(value,) if isinstance(value, Tensor) else (),
            )
        if starred is None:
            for part, item in zip(parts, items, strict=True):
                self.assign(part, item)
            return
        after = len(parts) - starred - 1
        for part, item in zip(parts[:starred], items[:starred], strict=True):
            self.assign(part, item)
        self.assign(parts[starred], self.new_list(items[starred : len(items) - after]))
        for part, item in zip(parts[starred + 1 :], items[len(items) - after :], strict=True):
            self.assign(part, item)

    def _joined_parts(self, value: Choice, count: int) -> tuple[Value, ...] | None:
        yes, no = self.sequence(value.yes), self.sequence(value.no)
        if isinstance(yes, list) and isinstance(no, list) and len(yes) == len(no) == count:
            return tuple(self.join(value.condition, a, b) for a, b in zip(yes, no, strict=True))
        return None

    def _unpack_many(
        self,
        target: ast.expr,
        parts: Sequence[ast.expr],
        items: Many,
        starred: int | None,
        value: Value,
    ) -> None:
        expected = len(parts) - (starred is not None)
        other = self.compare(ast.NotEq if starred is None else ast.Lt, items.length, expected)
        self.fail_where(other, ValueError, f"expected {expected} values to unpack")
        if starred is None and self.emit.differ(items.length, expected):
            raise CheckError(
                "unpack",
                f"expected {expected} values to unpack, got {items.length}",
                tensors=(value,) if isinstance(value, Tensor) else (),
                counterexample=self.emit.counterexample,
            )
        left = items.length - expected
        for place, part in enumerate(parts):
            if place == starred:
                at = None if items.at is None else (lambda k, start=place: items.item(start + k))
                rest = self.new_list(Many(items.element, left, at))
                self.assign(part, self.call(self.lift(list), [rest], {}))
            elif starred is None or place < starred:
                self.assign(part, items.item(place))
            else:
                self.assign(part, items.item(left + place - 1))

    def set_attribute(self, receiver: Value, name: str, value: Value) -> None:
        """Set an attribute of an object."""
        receiver = self.settle(receiver)
        if isinstance(receiver, Choice):
            self.either(receiver, lambda one: self.set_attribute(one, name, value))
            return
        value = self.domain.bind(receiver, name, value)
        if name in _OF_OBJECTS and isinstance(receiver, Instance | Class):
            self.lost(f"an object whose '{name}' is set")
        elif isinstance(receiver, Instance):
            if isinstance(receiver.cls, Class):
                setter = self.find_in_class(receiver.cls, "__setattr__")
                if setter is not MISSING:
                    self.call(self.bind(setter, receiver, receiver.cls), [name, value], {})
                    return
                found = self.find_in_class(receiver.cls, name)
                error = error_of_setting(self, receiver, receiver.cls, name)
                if error is not None:
                    raise error
                if isinstance(found, Wrapped) and found.kind == "property":
                    self.call(found.arguments[0], [receiver, value], {})
                    return
                setter = self.descriptor(found, "__set__")
                if setter is not MISSING:
                    self.call(setter, [found, receiver, value], {})
                    return
            if not self.tables.keep_member(self, receiver, name, value):
                self.set_own(receiver, name, value)
        elif isinstance(receiver, Class):
            self.set_own(receiver, name, value)
        elif isinstance(receiver, Library):
            self.tables.set_member(self, receiver, name, value)
        elif isinstance(receiver, Tensor):
            self._set_of_tensor(receiver, name, value)
        elif self.emit.builds and isinstance(receiver, Host | Function) and _is_real(receiver):
            raise CheckError(
                "capture",
                f"'{name}' of {self.show(receiver)} is set, which no graph does: return the value, "
                "and set it after the call",
            )
        elif isinstance(receiver, Function):
            self.names_to_set(receiver)[name] = value
        elif isinstance(receiver, Wrapped) and isinstance(receiver.function, Function):
            if receiver.kind == "partial":  # it has names of its own
                self.lost(f"'{name}' of a functools.partial is set")
            else:
                self.set_attribute(receiver.function, name, value)
        elif not isinstance(receiver, Unknown | Host | Wrapped):
            raise CheckError("attribute", f"attributes of {self.show(receiver)} cannot be set")

    def _set_of_tensor(self, x: Tensor, name: str, value: Value) -> None:
        """Set an attribute of a tensor."""
        if name in _OF_GRADIENTS:
            if name == "requires_grad":
                self.tables.set_needs(self, x, value)
            return
        if self.emit.builds:
            if name == "data" and self.tables.set_content(self, x, value):
                return
            raise CheckError(
                "capture",
                f"'{name}' of {self.show(x)} is set, for all that hold the tensor; make a new one, "
                "and keep what belongs to it in a variable of its own",
                tensors=(x,),
            )
        if name in ("data", "array"):
            self.emit.write(x)
            if isinstance(value, Tensor):
                self.emit.share(x, value)
        if name not in _CONTENT:
            self.tags[x.value, name] = value
        elif name not in _PARTS and not (
            (isinstance(value, Unknown) and value.told)
            or (isinstance(value, Tensor) and value.dtype == x.dtype and _of_one_shape(value, x))
        ):
            self.lost(f"a tensor whose '{name}' is set")

    def _with_item(self, held: Any, index: Value, value: Value) -> Any:
        """Return the content of a dictionary whose keys the data decide with one more item."""
        if type(held) is not Choice:
            return {**held, index: value}
        yes, no = (self._with_item(side, index, value) for side in (held.yes, held.no))
        if type(yes) is dict and type(no) is dict and [*yes] == [*no]:
            return {key: self.join(held.condition, yes[key], no[key]) for key in yes}
        return Choice(held.condition, yes, no)

    def set_item(self, receiver: Value, index: Value, value: Value) -> None:
        """Do ``receiver[index] = value``."""
        receiver, index = self.settle(receiver), self.settle(index)
        if isinstance(receiver, ListRef):
            index = known_place(index)
        if isinstance(index, Choice):
            self.either(index, lambda place: self.set_item(receiver, place, value))
            return
        match receiver:
            case Choice():
                self.either(receiver, lambda one: self.set_item(one, index, value))
            case Tensor() if (lost := lost_part(index)) is not None:
                if not lost.told:
                    self.lost("an item set at a place that is not known")
            case Tensor():
                self.emit.label = "item assignment"
                self.either(
                    value,
                    lambda v: self.tables.set_tensor_item(self, receiver, self.unwrap(index), v),
                )
            case ListRef():
                self.domain.operate(ast.Store, receiver, index, value)
            case DictRef(kind=kind) if kind == MEMBERS:
                self.lost("a member of a module set by its dictionary")
            case DictRef() if is_key(index) and _may_be_either(self.heap.contents[receiver.key]):
                held = self.heap.contents[receiver.key]
                self.heap[receiver] = self._with_item(held, index, value)
            case DictRef():
                content = self.heap[receiver]
                key: Value = MISSING
                if isinstance(content, dict):
                    key = self.key_in(content, index)
                    key = index if key is MISSING and self.is_by_identity(index) else key
                if key is not MISSING:
                    self.heap[receiver][key] = value
                    self.heap.changed(receiver)
                elif not self.set_open_key(receiver, content, index, value):
                    self.lost("an item set at a key that is not known")
                    held = tuple(content.values()) if isinstance(content, dict) else content
                    self._set_somewhere(receiver, held, value)
            case Instance():
                self.call(self.attribute(receiver, "__setitem__"), [index, value], {})
            case Unknown():
                self.strays = True
            case Library(name=name) if not self.tables.describes(name):
                self.tables.unread(self, name)
            case Host(object=os._Environ()) if not self.emit.builds:
                pass  # what the program reads of it is open
            case _:
                raise CheckError("type", f"items of {self.show(receiver)} cannot be set")

    def set_list_item(self, receiver: ListRef, index: Value, value: Value) -> None:
        """Set an item of a list, with Python's own meaning."""
        content = self.heap[receiver]
        if isinstance(content, tuple) and isinstance(index, int):
            if not -len(content) <= index < len(content):
                raise CheckError(
                    "index", f"IndexError: index {index} is out of range for {len(content)} items"
                )
            items = list(content)
            items[index] = value
            self.heap[receiver] = tuple(items)
            return
        if isinstance(content, tuple) and isinstance(index, slice) and is_plain(index):
            items = list(content)
            found = self.sequence(value)
            if isinstance(found, list):
                items[index] = found
                self.heap[receiver] = tuple(items)
                return
        if not isinstance(index, slice) and self.set_open_item(receiver, content, value):
            return
        self.lost("a list changed at a place that is not known")
        self._set_somewhere(receiver, content, value)

    def _set_somewhere(self, receiver: ListRef | DictRef, content: Any, value: Value) -> None:
        """Forget what lies where in a container, as an item of it was set at an open place."""
        held = (content.element,) if isinstance(content, Many) else content
        alike = isinstance(held, tuple) and all(self.show(v) == self.show(value) for v in held)
        item = value if alike else Unknown("an item that another may have replaced", told=True)
        self.heap[receiver] = Many(item, self.emit.fresh("count"))

    def _do_Delete(self, node: ast.Delete) -> None:
        assert self.frame is not None
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.heap[self.frame.key].pop(target.id, None)
            elif isinstance(target, ast.Attribute):
                receiver = self.evaluate(target.value)
                self.delete_attribute(receiver, self.own_name(receiver, target.attr))
            elif isinstance(target, ast.Subscript):
                owner, index = self.evaluate(target.value), self.evaluate(target.slice)
                self.either(owner, partial(self._delete, index=index))

    def _delete(self, owner: Value, index: Value) -> Value:
        """Take the item of an index out of a container."""
        if isinstance(index, Choice):
            return self.either(index, lambda one: self._delete(owner, one))
        if isinstance(owner, Instance):
            return self.call(self.attribute(owner, "__delitem__"), [index], {})
        if not isinstance(owner, DictRef | ListRef):
            return None
        content = self.heap[owner]
        key = self.key_in(content, index) if isinstance(content, dict) else MISSING
        if key is not MISSING:
            if key not in content:
                raise CheckError("key", f"KeyError: {index!r}")
            del self.heap[owner][key]
            self.heap.changed(owner)
        elif isinstance(content, tuple) and is_plain(index):
            items = list(content)
            apply_plain(items.__delitem__, index)
            self.heap[owner] = tuple(items)
        elif not isinstance(index, slice):
            self.call(self.attribute(owner, "pop"), [index], {})
        elif index == slice(None):
            self.heap[owner] = ()
        else:
            gone = self.lost("items deleted at places that are not known")
            self.heap[owner] = Many(gone, self.emit.fresh("count"))
        return None


def _may_be_either(content: Any) -> bool:
    """Whether the data decide which of several dictionaries of known keys a content is."""
    if type(content) is not Choice:
        return False
    return all(type(c) is dict or _may_be_either(c) for c in (content.yes, content.no))


def _loaded(target: ast.expr) -> ast.expr:
    """Return an assignment's target as an expression to read."""
    return ast.copy_location(
        type(target)(**{**dict(ast.iter_fields(target)), "ctx": ast.Load()}), target
    )


def _is_real(value: Host | Function) -> bool:
    """Whether a value is an object of the running Python, which outlives the program."""
    return isinstance(value, Host) or value.host is not None


def _of_one_shape(a: Tensor, b: Tensor) -> bool:
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return False
    return all(definitely_equal(x, y) for x, y in zip(a.shape, b.shape, strict=True))
