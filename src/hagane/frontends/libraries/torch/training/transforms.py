"""``torch.func``: functions of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hagane.frontends.libraries.torch import batches, jacobians
from hagane.frontends.libraries.torch.functions.numbers.differentiating import grad
from hagane.frontends.libraries.torch.operands import need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.values.objects import Wrapped
from hagane.frontends.python.values.values import (
    DictRef,
    Library,
    ListRef,
    Tensor,
    Value,
)
from hagane.ops.builder import interpreting, op
from hagane.symbolic import Dim

_F = "torch.func."


def _mapped(t: Core, value: Value, one: Callable[[Tensor], Value]) -> Value:
    """Return a structure of tensors with a function applied to each."""
    value = t.settle(value)
    if isinstance(value, Tensor):
        return one(value)
    if type(value) is tuple:
        return tuple(_mapped(t, item, one) for item in value)
    if isinstance(value, ListRef) and isinstance(t.heap[value], tuple):
        return t.new_list([_mapped(t, item, one) for item in t.heap[value]])
    if isinstance(value, DictRef) and isinstance(t.heap[value], dict):
        return t.new_dict({k: _mapped(t, v, one) for k, v in t.heap[value].items()}, value.kind)
    return value


def _made(t: Core, x: Tensor, shape: tuple[Dim, ...]) -> Tensor:
    made = t.emit.typed("Transformed", [x], x.dtype, shape)
    made.origin = x.origin
    return made


def _tied(module: Any, given: dict[str, Value]) -> dict[str, Value]:
    """Return values by name, also under the other names of the same parameters."""
    listed = [*module.named_parameters(remove_duplicate=False),
              *module.named_buffers(remove_duplicate=False)]  # fmt: skip
    values = {id(p): given[name] for name, p in listed if name in given}
    tied = {name: values[id(p)] for name, p in listed if id(p) in values}
    return tied | given


@TORCH.function("func.functional_call", "nn.utils.stateless.functional_call")
def functional_call(
    t: Core, module: Value, parameter_and_buffer_dicts: Value, args: Value = (),
    kwargs: Value = None, *, tie_weights: Value = True, strict: Value = False,
) -> Value:  # fmt: skip
    """Call a module with other parameters; one that has several names has all of them."""
    del strict
    dicts = parameter_and_buffer_dicts
    given: dict[str, Value] = {}
    for one in dicts if isinstance(dicts, list | tuple) else [dicts]:
        if not isinstance(one, dict):
            return t.lost("functional_call with parameters whose names are not known")
        given.update(one)
    host = getattr(module, "host", None)
    if tie_weights is not False and hasattr(host, "named_parameters"):
        given = _tied(host, given)
    held: list[tuple[Value, str, Value]] = []
    for name, value in given.items():
        path, _dot, last = str(name).rpartition(".")
        owner = module
        for part in path.split(".") if path else ():
            owner = t.attribute(owner, part)
        before = t.attribute(owner, last)
        if before is not value:
            held.append((owner, last, before))
            t.heap[owner][last] = value
    inputs = args if isinstance(args, tuple) else (args,)
    try:
        return t.call(module, [t.wrap(x) for x in inputs], dict(kwargs or {}))
    finally:
        for owner, last, before in held:
            t.heap[owner][last] = before


def _later(name: str, *kept: Value) -> Wrapped:
    return Wrapped("partial", Library(f"{_F}<{name}>"), kept)


@TORCH.function("func.vmap", "vmap")
def vmap(
    t: Core, func: Value, in_dims: Value = 0, out_dims: Value = 0, randomness: Value = "error",
    *, chunk_size: Value = None,
) -> Value:  # fmt: skip
    """Return a function over batches."""
    return _later("vmap", func, in_dims, out_dims)


@TORCH.function("func.<vmap>")
def vmapped(
    t: Core, func: Value, in_dims: Value, out_dims: Value, *inputs: Value, **named: Value
) -> Value:
    """Call a function of one item with batches."""
    if t.emit.builds:
        given = [func, t.wrap(in_dims), t.wrap(out_dims), tuple(map(t.wrap, inputs))]
        words = t.new_dict({name: t.wrap(value) for name, value in named.items()})
        return run_own(t, batches.mapped, [*given, words], {})
    batch: list[tuple[Dim, Tensor]] = []

    def without(place: Value) -> Callable[[Tensor], Value]:
        def one(x: Tensor) -> Value:
            shape = shape_of(t, x)
            if not -len(shape) <= place < len(shape):
                t.fail("rank", f"vmap: expected an axis {place}, got {t.show(x)}", x)
            at = place % len(shape)
            if batch and t.emit.differ(batch[0][0], shape[at]):
                t.fail(
                    "shape-mismatch",
                    f"vmap: expected batches of one size, got {t.show(batch[0][1])} and "
                    f"{t.show(x)}",
                    batch[0][1],
                    x,
                )
            batch.append((shape[at], x))
            return _made(t, x, (*shape[:at], *shape[at + 1 :]))

        return one

    places = in_dims if isinstance(in_dims, tuple | list) else [in_dims] * len(inputs)
    if not all(p is None or isinstance(p, int) for p in places):
        return t.lost("vmap with axes for parts of an argument")
    items = [
        _mapped(t, t.wrap(x), without(p)) if isinstance(p, int) else t.wrap(x)
        for x, p in zip(inputs, places, strict=False)
    ]
    extra = {name: t.wrap(x) for name, x in named.items()}
    if not batch:
        t.fail("value", "ValueError: vmap needs at least one tensor with a batch")
    result = t.call(func, items, extra)

    def within(x: Tensor) -> Value:
        shape = list(shape_of(t, x))
        place = out_dims if isinstance(out_dims, int) else 0
        shape.insert(place if place >= 0 else len(shape) + 1 + place, batch[0][0])
        return _made(t, x, tuple(shape))

    return _mapped(t, result, within)


def _gradients(
    t: Core, func: Value, argnums: Any, given: list[Value], named: dict[str, Value], *, aux: bool
) -> tuple[Value, Value, Value]:
    """Return gradients by arguments, the value and what the function returns beside it.

    Args:
        t: Runs the function.
        func: Returns one number.
        argnums: The places of the arguments.
        given: The arguments.
        named: Those by name.
        aux: Whether the function returns a pair.
    """
    leaves: list[Tensor] = []

    def apart(x: Tensor) -> Value:  # the gradient is that of this use of the tensor
        with interpreting(t.emit):
            leaves.append(op("Identity", x))
        return leaves[-1]

    several = isinstance(argnums, tuple)
    places = [place % len(given) for place in (argnums if several else (argnums,))]
    before, t.emit.still = t.emit.still, False  # torch.no_grad around it is about its results
    try:
        parts = {place: _mapped(t, given[place], apart) for place in places}
        called = [parts.get(place, x) for place, x in enumerate(given)]
        found = t.settle(t.call(func, called, {k: t.wrap(v) for k, v in named.items()}))
        value, beside = (found[0], found[1]) if aux else (found, None)
        y = need_tensor(t, value, "output")
        if shape_of(t, y):
            t.fail("shape-mismatch", f"grad: expected one number, got {t.show(y)}", y,
                   remedy="reduce it with .mean() or .sum()")  # fmt: skip
        made = grad(t, y, tuple(leaves), create_graph=True, materialize_grads=True)
    finally:
        t.emit.still = before

    def kept(x: Tensor) -> Value:
        stopped = t.emit.stopped(x) if before else None
        return x if stopped is None else stopped

    ways = dict(zip(map(id, leaves), made, strict=True))
    slopes = [_mapped(t, parts[place], lambda x: kept(ways[id(x)])) for place in places]
    value, beside = _mapped(t, value, kept), _mapped(t, beside, kept)
    return (tuple(slopes) if several else slopes[0]), value, beside


def _derived(name: str) -> None:
    @TORCH.function(f"func.{name}")
    def later(
        t: Core, func: Value, argnums: Value = 0, has_aux: Value = False, **_: Value
    ) -> Value:
        return _later(name, func, argnums, has_aux)

    @TORCH.function(f"func.<{name}>")
    def run(
        t: Core, func: Value, argnums: Value, has_aux: Value, *inputs: Value, **named: Value
    ) -> Value:
        given = [t.wrap(x) for x in inputs]
        if t.emit.builds:
            if name in jacobians.DERIVED:
                words = {word: t.wrap(x) for word, x in named.items()}
                first = [func, t.wrap(argnums), t.wrap(has_aux)]
                return run_own(t, jacobians.DERIVED[name], [*first, *given], words)
            made, value, aux = _gradients(t, func, argnums, given, named, aux=has_aux is True)
            if name == "grad_and_value":
                return (made, (value, aux) if has_aux is True else value)
            return (made, aux) if has_aux is True else made
        found = t.settle(t.call(func, given, {k: t.wrap(v) for k, v in named.items()}))
        value, aux = (found[0], found[1]) if has_aux is True else (found, None)
        y = need_tensor(t, value, "output")
        picked: Any = argnums
        if name in ("grad", "grad_and_value") and shape_of(t, y):
            t.fail("shape-mismatch", f"{name}: expected one number, got {t.show(y)}", y,
                   remedy="reduce it with .mean() or .sum()")  # fmt: skip
        front = () if name.startswith("grad") else shape_of(t, y)

        def slope(x: Tensor) -> Value:
            twice = shape_of(t, x) if name == "hessian" else ()
            return _made(t, x, (*front, *shape_of(t, x), *twice))

        if isinstance(picked, tuple):
            result: Value = tuple(_mapped(t, given[place], slope) for place in picked)
        else:
            result = _mapped(t, given[picked], slope)
        if name == "grad_and_value":
            return (result, (value, aux) if has_aux is True else value)
        return (result, aux) if has_aux is True else result


for _name in ("grad", "grad_and_value", "jacrev", "jacfwd", "hessian"):
    _derived(_name)


def _like_each(t: Core, value: Value) -> Value:
    """Return new tensors of the types of those in a structure."""
    return _mapped(t, value, lambda x: _made(t, x, shape_of(t, x)))


def _need_same(t: Core, name: str, given: Value, wanted: Value) -> None:
    """Fail unless a structure has tensors of the shapes of another's."""
    given, wanted = t.settle(t.wrap(given)), t.settle(t.wrap(wanted))
    if isinstance(given, Tensor) and isinstance(wanted, Tensor):
        one, two = shape_of(t, given), shape_of(t, wanted)
        if len(one) != len(two) or any(map(t.emit.differ, one, two)):
            t.fail("shape-mismatch", f"{name}: expected the shape of {t.show(wanted)}, got "
                   f"{t.show(given)}", given, wanted)  # fmt: skip
    elif isinstance(given, tuple) and isinstance(wanted, tuple):
        if len(given) != len(wanted):
            t.fail("value", f"{name}: expected {len(wanted)} of them, got {len(given)}")
        for one_, two_ in zip(given, wanted, strict=True):
            _need_same(t, name, one_, two_)


@TORCH.function("func.jvp")
def jvp(
    t: Core, func: Value, primals: Value, tangents: Value, *, strict: Value = False,
    has_aux: Value = False,
) -> Value:  # fmt: skip
    """Return a function's result, and its derivative in a direction: of the same types."""
    if t.emit.builds:
        named = {"has_aux": t.wrap(has_aux)}
        return run_own(t, jacobians.jvp, [func, t.wrap(primals), t.wrap(tangents)], named)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        t.fail("type", "jvp: expected tuples as primals and tangents", remedy="write (x,)")
    _need_same(t, "jvp: tangents", tuple(tangents), tuple(primals))
    found = t.settle(t.call(func, [t.wrap(x) for x in primals], {}))
    value, aux = (found[0], (found[1],)) if has_aux is True else (found, ())
    return (value, _like_each(t, value), *aux)


@TORCH.function("func.vjp")
def vjp(t: Core, func: Value, *primals: Value, has_aux: Value = False) -> Value:
    """Return a function's result, and a function that brings gradients of it back."""
    if t.emit.builds:
        given = [func, *map(t.wrap, primals)]
        return run_own(t, jacobians.vjp, given, {"has_aux": t.wrap(has_aux)})
    found = t.settle(t.call(func, [t.wrap(x) for x in primals], {}))
    value, aux = (found[0], (found[1],)) if has_aux is True else (found, ())
    return (value, _later("vjp", value, t.wrap(tuple(primals))), *aux)


@TORCH.function("func.<vjp>")
def brought_back(t: Core, value: Value, primals: Value, cotangents: Value) -> Value:
    """Return the gradients of all arguments."""
    _need_same(t, "vjp: cotangents", cotangents, value)
    return _like_each(t, t.wrap(primals))


def _of_functional(name: str) -> None:
    """Register a function of ``torch.autograd.functional``, which calls ``func`` at once."""

    def run(t: Core, func: Value, inputs: Value, v: Value = None, **named: Value) -> Value:
        if t.emit.builds:
            given = [func, t.wrap(inputs)]
            if v is not None:
                given.append(t.wrap(v))
            words = {word: t.wrap(x) for word, x in named.items()}
            return run_own(t, jacobians.FUNCTIONAL[name], given, words)
        several = isinstance(inputs, tuple | list)
        given = [need_tensor(t, x, "inputs") for x in (inputs if several else (inputs,))]
        found = t.settle(t.call(func, list(given), {}))
        listed = found if type(found) is tuple else (found,)
        outputs = [need_tensor(t, y, "output") for y in listed]
        if name not in ("jacobian", "vjp", "jvp") and (len(outputs) > 1 or shape_of(t, outputs[0])):
            t.fail("shape-mismatch", f"{name}: expected one number as the function's result, got "
                   f"{t.show(outputs[0])}", outputs[0], remedy="reduce it with .sum()")  # fmt: skip

        def table(rows: Sequence[Tensor], in_tuple: bool) -> Value:
            made = [
                tuple(_made(t, y, (*shape_of(t, y), *shape_of(t, x))) for x in given) for y in rows
            ]
            parts = [row if several else row[0] for row in made]
            return tuple(parts) if in_tuple else parts[0]

        if name == "jacobian":
            return table(outputs, type(found) is tuple)
        if name == "hessian":
            return table(given, several)
        like = outputs if name == "jvp" else given
        in_tuple = type(found) is tuple if name == "jvp" else several
        parts = [_made(t, x, shape_of(t, x)) for x in like]
        return (found, tuple(parts) if in_tuple else parts[0])

    TORCH.function(f"autograd.functional.{name}")(run)


for _name in ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"):
    _of_functional(_name)
