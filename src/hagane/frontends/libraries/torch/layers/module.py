"""``torch.nn.Module``: members of every module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from hagane.frontends.libraries.torch.operands import cast, device_of, dtype_of, element_type
from hagane.frontends.libraries.torch.recording import freeze, need_gradients
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import MEMBERS
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Device,
    DictRef,
    DType,
    Fields,
    Many,
    Tensor,
    Unknown,
    Value,
    alternatives,
)
from hagane.graph.types import dtype_name

_MODULE = "torch.nn.Module"
_F = TypeVar("_F", bound=Callable[..., Any])


@TORCH.layer("nn.Module")
class Module:
    """The base class."""

    @staticmethod
    def init(t: Core, *_: Value, **__: Value) -> dict[str, Value]:
        """Return the attributes of a new module."""
        return {"training": True}


def is_module(t: Core, value: Value) -> bool:
    """Whether a value is a module."""
    return isinstance(value, Instance) and _MODULE in t.tables.libraries_of(t, value)


def members(t: Core, module: Instance) -> dict[str, Value]:
    """Return the attributes of a module, those of a real one included."""
    found: dict[str, Value] = {}
    host = module.host
    if host is not None:
        for names in (host._parameters, host._buffers, host._modules):
            t.observer.listed(names)
        for names in (vars(host), host._parameters, host._buffers, host._modules):
            for name in names:
                if not name.startswith("_") or names is not vars(host):
                    found[name] = t.own_attribute(module, name)
    found.update({n: v for n, v in t.heap[module].items() if n not in ("_modules",)})
    inner = t.heap[module].get("_modules")
    if isinstance(inner, DictRef):
        found.update(t.heap[inner])
    return found


def children(t: Core, module: Instance) -> dict[str, Instance]:
    """Return the modules directly inside a module by name."""
    return {str(n): v for n, v in members(t, module).items() if is_module(t, v)}


def walk(
    t: Core, module: Instance, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Instance]]:
    """Yield a module and all inside it with dotted names, each once."""
    seen = set() if seen is None else seen
    if module.key in seen:
        return
    seen.add(module.key)
    yield prefix, module
    for name, child in children(t, module).items():
        yield from walk(t, child, f"{prefix}.{name}" if prefix else name, seen)


def _method(*names: str) -> Callable[[_F], _F]:
    return TORCH.method(*names, of=_MODULE)


@_method("train")
def train(t: Core, self: Value, mode: Value = True) -> Value:
    """Set training mode everywhere inside."""
    for _, module in walk(t, self):
        t.heap[module]["training"] = mode
    return self


@_method("eval")
def eval_(t: Core, self: Value) -> Value:
    """Set inference mode everywhere inside."""
    return train(t, self, False)


@_method("to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type")
def to(
    t: Core, self: Value, *arguments: Value, device: Value = None, dtype: Value = None, **_: Value
) -> Value:
    """Move all parameters and buffers."""
    place = device_of(device, "")
    wanted = dtype
    for argument in arguments:
        if element_type(argument) is not None:
            wanted = argument
        elif isinstance(argument, Tensor):  # its type and place
            wanted, place = DType(argument.dtype), argument.device
        elif isinstance(argument, Device | str | int):
            place = device_of(argument)
    _move(t, self, place, wanted)
    return self


def _move(t: Core, module: Value, place: str, wanted: Value) -> None:
    for _, inner in walk(t, module):
        for name, value in members(t, inner).items():
            if isinstance(value, Tensor):
                moved = (
                    value
                    if wanted is None or value.dtype.is_integer()
                    else cast(t, value, dtype_of(wanted))
                )
                moved = t.emit.on(moved, place) if place else moved
                if moved is value:
                    continue
                if t.emit.literal and moved.dtype != value.dtype:
                    raise CheckError(
                        "capture",
                        f"parameters change from {dtype_name(value.dtype)} in the call, which "
                        "lasts; convert the module before",
                    )
                moved.parameter = value.parameter
                t.heap[inner][name] = moved


def _mover(name: str, place: str, dtype: str) -> None:
    def method(t: Core, self: Value, *_: Value, **__: Value) -> Value:
        _move(t, self, place, TORCH.constants.get(f"torch.{dtype}") if dtype else None)
        return self

    _method(name)(method)


for _name, _place, _dtype in (
    ("cuda", "cuda:0", ""), ("cpu", "cpu", ""), ("float", "", "float32"), ("double", "", "float64"),
    ("half", "", "float16"), ("bfloat16", "", "bfloat16"),
):  # fmt: skip
    _mover(_name, _place, _dtype)


@_method("requires_grad_")
def requires_grad_(t: Core, self: Value, requires_grad: Value = True) -> Value:
    """Return the module itself, whose parameters may need no gradients then."""
    if requires_grad is not True:
        freeze(t)
    return self


@_method("share_memory", "zero_grad_", "compile")
def same(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return the module itself."""
    return self


@_method("reset_parameters", "_reset_parameters")
def reset_parameters(t: Core, self: Value) -> Value:
    """Draw the parameters of a layer anew."""
    if t.tables.libraries_of(t, self)[0] == _MODULE:
        t.fail("attribute", f"{t.show(self)} has no attribute 'reset_parameters'")
    return None


@_method("load_state_dict")
def load_state_dict(
    t: Core, self: Value, state_dict: Value, strict: Value = True, assign: Value = False
) -> Value:
    """Give parameters and buffers a content that is not known; return the keys that differ."""
    if isinstance(state_dict, dict) and not t.emit.builds:
        _expect_state(t, self, state_dict, strict is True)
    for _name, tensor in _tensors(t, self, True) + _tensors(t, self, False):
        t.emit.write(tensor)
    names = ("missing_keys", "unexpected_keys")
    if strict is True or t.emit.builds:
        return Fields((t.new_list(), t.new_list()), names)
    keys = [Many(t.outside("a key"), t.emit.fresh("keys")) for _ in names]
    return Fields((t.new_list(one) for one in keys), names)


def _expect_state(t: Core, self: Instance, state: dict[Value, Value], strict: bool) -> None:
    """Compare the tensors of a module with those of a state that it takes over."""
    own = dict(_tensors(t, self, True) + _tensors(t, self, False))
    for name, held in own.items():
        given = state.get(name)
        if not isinstance(given, Tensor) or given.shape is None or held.shape is None:
            continue
        if len(given.shape) != len(held.shape) or any(map(t.emit.differ, given.shape, held.shape)):
            t.fail("shape-mismatch", f"load_state_dict: '{name}' is {t.show(held)} here and "
                   f"{t.show(given)} in the state", held, given)  # fmt: skip
    if not strict or not own or not state or _lost_member(t, self) is not None:
        return
    for words, names, others in (("state lacks", own, state), ("module lacks", state, own)):
        left = [str(n) for n in names if n not in others and "num_batches" not in str(n)]
        if left:
            told = f"load_state_dict: the {words}"
            more = f", and {len(left) - 3} more" if len(left) > 3 else ""
            t.fail("key", f"{told} {', '.join(map(repr, left[:3]))}{more}",
                   remedy="rename the keys, or pass strict=False")  # fmt: skip


@_method("zero_grad", "extra_repr")
def nothing(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return None."""
    return None


@_method("apply")
def apply(t: Core, self: Value, fn: Value) -> Value:
    """Call a function with every module inside."""
    for _, module in list(walk(t, self)):
        t.call(fn, [module], {})
    return self


def _own(t: Core, self: Instance, fits: Callable[[Value], bool]) -> Value:
    """Return members of a module by name, in a dictionary that changes nothing of the module."""
    found = {name: value for name, value in members(t, self).items() if fits(value)}
    return replace(t.new_dict(found), kind=MEMBERS)


@TORCH.attribute("_parameters", of=_MODULE)
def own_parameters(t: Core, self: Instance) -> Value:
    """Return the parameters directly in a module by name."""
    return _own(t, self, lambda value: isinstance(value, Tensor) and value.parameter)


@TORCH.attribute("_buffers", of=_MODULE)
def own_buffers(t: Core, self: Instance) -> Value:
    """Return the buffers directly in a module by name."""
    return _own(t, self, lambda value: isinstance(value, Tensor) and not value.parameter)


@TORCH.attribute("_modules", of=_MODULE)
def own_modules(t: Core, self: Instance) -> Value:
    """Return the modules directly in a module by name."""
    return _own(t, self, lambda value: is_module(t, value))


@_method("register_parameter")
def register_parameter(t: Core, self: Value, name: Value, param: Value) -> Value:
    """Set a parameter as an attribute."""
    if isinstance(param, Tensor) and not param.parameter and not t.emit.builds:
        t.fail("type", f"register_parameter: expected nn.Parameter or None as '{name}', got "
               f"{t.show(param)}", param,
               remedy="wrap it in nn.Parameter, or use register_buffer")  # fmt: skip
    t.heap[self][name] = param
    return None


@_method("register_buffer")
def register_buffer(
    t: Core, self: Value, name: Value, tensor: Value, persistent: Value = True
) -> Value:
    """Set a tensor as an attribute."""
    t.heap[self][name] = tensor
    return None


@_method("add_module", "register_module")
def add_module(t: Core, self: Value, name: Value, module: Value) -> Value:
    """Set a module as an attribute."""
    inner = t.heap[self].get("_modules")
    if isinstance(inner, DictRef):
        t.heap[inner][name] = module
    else:
        t.heap[self][name] = module
    return None


@_method("get_submodule", "get_parameter", "get_buffer")
def get_submodule(t: Core, self: Value, target: Value) -> Value:
    """Return the meaning of a dotted name."""
    found = self
    for part in target.split(".") if target else ():
        found = t.attribute(found, part)
    return found


@_method("modules")
def modules(t: Core, self: Value) -> Value:
    """Return all modules inside, this one first."""
    return t.new_stream([module for _, module in walk(t, self)])


@_method("named_modules")
def named_modules(
    t: Core, self: Value, memo: Value = None, prefix: Value = "", remove_duplicate: Value = True
) -> Value:
    """Return all modules inside with their dotted names."""
    if memo is not None or remove_duplicate is not True:
        return t.lost("named_modules with memo, or with duplicates")
    return t.new_stream(list(walk(t, self, prefix)))


@_method("children")
def children_method(t: Core, self: Value) -> Value:
    """Return the modules directly inside."""
    return t.new_stream(list(children(t, self).values()))


@_method("named_children")
def named_children(t: Core, self: Value) -> Value:
    """Return the modules directly inside with their names."""
    return t.new_stream(list(children(t, self).items()))


def _tensors(
    t: Core, self: Instance, parameters: bool, prefix: str = "", recurse: bool = True
) -> list[tuple[str, Tensor]]:
    found: list[tuple[str, Tensor]] = []
    seen: set[int] = set()
    for path, module in walk(t, self, prefix) if recurse else ((prefix, self),):
        held = None if module.host is None else vars(module.host)
        own = None if held is None else held["_parameters" if parameters else "_buffers"]
        for name, value in members(t, module).items():
            known = value.parameter == parameters if isinstance(value, Tensor) else False
            if not known or (own is not None and name not in own) or id(value) in seen:
                continue
            seen.add(id(value))
            found.append((f"{path}.{name}" if path else name, value))
    return found


@_method("parameters")
def parameters(t: Core, self: Value, recurse: Value = True) -> Value:
    """Return all parameters."""
    found = _tensors(t, self, True, "", recurse)
    lost = None if found else _lost_member(t, self)
    if lost is not None:
        return lost
    return t.new_stream([tensor for _, tensor in found])


@_method("named_parameters")
def named_parameters(
    t: Core, self: Value, prefix: Value = "", recurse: Value = True, remove_duplicate: Value = True
) -> Value:
    """Return all parameters with their dotted names."""
    if remove_duplicate is not True:
        return t.lost("named_parameters with duplicates")
    found = _tensors(t, self, True, prefix, recurse)
    lost = None if found else _lost_member(t, self)
    return t.new_stream(found) if lost is None else lost


def _lost_member(t: Core, self: Instance) -> Unknown | None:
    """Return a member of a module that nobody knows, which may be a parameter or have some."""
    for _, module in walk(t, self):
        for value in members(t, module).values():
            parts = alternatives(value)
            lost = next((part for part in parts if isinstance(part, Unknown)), None)
            if lost is None and len(parts) > 1 and any(is_module(t, part) for part in parts):
                lost = t.lost("parameters of one of several modules, as the data decide")
            if lost is not None:
                return lost
    return None


@_method("buffers")
def buffers(t: Core, self: Value, recurse: Value = True) -> Value:
    """Return all buffers."""
    return t.new_stream([tensor for _, tensor in _tensors(t, self, False, "", recurse)])


@_method("named_buffers")
def named_buffers(
    t: Core, self: Value, prefix: Value = "", recurse: Value = True, remove_duplicate: Value = True
) -> Value:
    """Return all buffers with their dotted names."""
    if remove_duplicate is not True:
        return t.lost("named_buffers with duplicates")
    return t.new_stream(_tensors(t, self, False, prefix, recurse))


@_method("state_dict")
def state_dict(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return all parameters and buffers by dotted name, those of a module behind each other."""
    found: dict[str, Value] = {}
    for path, module in walk(t, self):
        for trained in (True, False):
            found.update(_tensors(t, module, trained, path, recurse=False))
    return found


@TORCH.function("nn.Buffer", "nn.parameter.Buffer")
def buffer(t: Core, data: Value, *, persistent: Value = True) -> Tensor:
    """Return a tensor that is a part of its module and not trained."""
    x = data.seen_as(data.kind)
    x.parameter = False
    x.known = None
    return x


@TORCH.function("nn.Parameter", "nn.parameter.Parameter")
def parameter(t: Core, data: Value, requires_grad: Value = True) -> Tensor:
    """Return a trained tensor."""
    if requires_grad is not True:
        freeze(t)
    elif not (data.dtype.is_floating_point() or data.dtype.name.startswith("COMPLEX")):
        need_gradients(t, data, True)
    x = data.seen_as(data.kind)
    x.parameter = True
    x.known = None
    if requires_grad is not False:
        t.emit.note_trained(x)
    return x
