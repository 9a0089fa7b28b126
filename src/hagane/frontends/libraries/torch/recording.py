"""Errors about gradients: of tensors that have none, need them, or were differentiated before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.emitting.recorded import Recorded
from hagane.frontends.python.values.values import Tensor, Value

# Layers whose results need gradients, though their nodes do not show the parameters.
_WITH_PARAMETERS = frozenset(
    ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "MultiheadAttention")
)


def _followed(t: Core) -> Recorded | None:
    """Return what is known of gradients in a script; a function's caller may record none."""
    recorded: Recorded | None = t.emit.recorded if t.runs_modules else None
    return recorded


def asks(t: Core, x: Tensor) -> bool | None:
    """Return whether a tensor needs gradients; None where that is not known."""
    recorded = _followed(t)
    if recorded is None or recorded.own or x.kind != "torch.Tensor":
        return None
    found: bool | None = recorded.asks(x, t.emit.tensors)
    return found


def apart(t: Core, x: Tensor) -> Tensor:
    """Return a new tensor through which no gradient goes."""
    if t.emit.recorded is None:
        made: Tensor = t.emit.stopped(x)
        return made
    made = t.op("Identity", x, device=x.device)
    made.kind, made.strides, made.origin = x.kind, x.strides, x.origin
    t.emit.recorded.apart.add(made.value)
    return made


@contextmanager
def following(t: Core, name: str) -> Iterator[None]:
    """Follow a function of a library, and note of those for networks that they have gradients."""
    recorded = t.emit.recorded
    if recorded is None or not name.startswith("torch.nn."):
        yield
        return
    recorded.trusted += 1
    try:
        yield
    finally:
        recorded.trusted -= 1


def note_layer(t: Core, name: str, made: Value) -> None:
    """Note that results of a layer need gradients, as its own parameters do."""
    recorded = t.emit.recorded
    if recorded is None or t.emit.still or name.split(".")[-2] not in _WITH_PARAMETERS:
        return
    for one in made if isinstance(made, tuple) else (made,):
        if isinstance(one, tuple):
            note_layer(t, name, one)
        elif isinstance(one, Tensor):
            recorded.made.add(one.value)


@contextmanager
def following_own(t: Core) -> Iterator[None]:
    """Follow a function with gradients of its own: within it none are recorded."""
    recorded = t.emit.recorded
    if recorded is None:
        yield
        return
    recorded.own += 1
    try:
        yield
    finally:
        recorded.own -= 1


def leave_open(t: Core, made: Value, given: Sequence[Value]) -> None:
    """Note that nobody knows which results of such a function need gradients."""
    for one in made if isinstance(made, tuple) else (made,):
        new = isinstance(one, Tensor) and not any(one is x for x in given)
        if new and t.emit.recorded is not None:
            t.emit.recorded.open.add(one.value)


def freeze(t: Core) -> None:
    """Note that some parameter may need no gradient from here on."""
    if t.emit.recorded is not None:
        t.emit.recorded.frozen = True


def need_gradients(t: Core, x: Tensor, requires_grad: Value) -> Tensor:
    """Note that a tensor is told to need gradients, which only real ones have."""
    recorded = t.emit.recorded
    if recorded is None or requires_grad is False:
        return x
    if requires_grad is True and not (
        x.dtype.is_floating_point() or x.dtype.name.startswith("COMPLEX")
    ):
        t.fail("dtype-mismatch", "only floating-point and complex tensors can need gradients, got "
               f"{t.show(x)}", x, remedy="make it of another element type: .float()")  # fmt: skip
    if requires_grad is True and not t.knowledge.path.decisions:
        recorded.trained.add(x.value)
        recorded.leaves.add(x.value)
    else:
        recorded.open.add(x.value)
    return x


def is_computed(t: Core, x: Tensor) -> bool:
    """Whether a tensor needs gradients, and is no leaf."""
    recorded = _followed(t)
    if recorded is None or x.parameter or x.value in recorded.trained:
        return False
    return bool(asks(t, x))


def refuse_numpy(t: Core, x: Tensor, name: str) -> None:
    """Refuse to read a tensor that needs gradients as an array."""
    if asks(t, x):
        t.fail("gradient", f"{name}: {t.show(x)} needs gradients, which no array has", x,
               remedy="take .detach() of it first")  # fmt: skip


def refuse_write(t: Core, x: Tensor, name: str) -> None:
    """Refuse to change a leaf in place while gradients are recorded."""
    recorded = _followed(t)
    if recorded is None or recorded.own or t.emit.still or x.kind != "torch.Tensor":
        return
    if recorded.is_leaf(x):
        t.fail("gradient", f"{name}: {t.show(x)} is a leaf that needs gradients, which cannot be "
               "changed in place while they are recorded", x,
               remedy="do it under torch.no_grad()")  # fmt: skip


def differentiate(t: Core, x: Tensor, keep: bool) -> None:
    """Check where gradients start, and free what they are computed from."""
    recorded = _followed(t)
    place = t.here()
    if recorded is None or recorded.own or t.collector.muted or place is None:
        return
    if recorded.asks(x, t.emit.tensors) is False:
        t.fail("gradient", f"backward(): {t.show(x)} needs no gradient: nothing that it is "
               "computed from does, or it was computed under torch.no_grad() or of .detach()",
               x)  # fmt: skip
    decisions = frozenset(t.knowledge.path.decisions)
    before = recorded.backward(x, t.emit.tensors, place, decisions, keep=keep)
    if before is not None:
        t.fail("gradient", "backward(): a part of this was differentiated before, by line "
               f"{before.place.line}, and what its gradients need is gone", x,
               remedy="take .detach() of what comes from there, sum both losses first, or pass "
               "retain_graph=True there")  # fmt: skip


__all__ = [
    "apart",
    "asks",
    "differentiate",
    "freeze",
    "is_computed",
    "need_gradients",
    "refuse_numpy",
    "refuse_write",
]
