"""Distributions of ``torch.distributions``: shapes of batches and events."""

from __future__ import annotations

from typing import NamedTuple

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    category,
    promoted,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import Shape

_BASE = "torch.distributions.Distribution"


@TORCH.layer("distributions.Distribution")
class Distribution:
    """A distribution: ``batch`` is the shape of independent ones, ``event`` that of one draw."""

    @staticmethod
    def sample(t: Core, self: View, sample_shape: Value = ()) -> Value:
        """Return draws: (*sample_shape, *batch, *event)."""
        like: Tensor = self.raw("like")
        front = tuple(sizes(t, (sample_shape,)))
        shape = (*front, *self.raw("batch_shape"), *self.raw("event_shape"))
        return t.emit.typed("Sample", [like], self.raw("drawn"), shape)

    rsample = sample

    @staticmethod
    def sample_n(t: Core, self: View, n: Value) -> Value:
        """Return ``n`` draws."""
        return Distribution.sample(t, self, (n,))

    @staticmethod
    def log_prob(t: Core, self: View, value: Value) -> Value:
        """Return the logarithm of the density: one number an event."""
        like: Tensor = self.raw("like")
        x = to_tensor(t, value)
        whole = (*self.raw("batch_shape"), *self.raw("event_shape"))
        shape = broadcast_shape(t, x, t.emit.new(like.dtype, whole))
        event = len(self.raw("event_shape"))
        dtype = like.dtype if category(x.dtype) < 2 else promoted(x.dtype, like.dtype)
        return t.emit.typed("LogProb", [like, x], dtype, shape[: len(shape) - event])

    @staticmethod
    def cdf(t: Core, self: View, value: Value) -> Value:
        """Return the cumulative distribution at a value."""
        return Distribution.log_prob(t, self, value)

    @staticmethod
    def entropy(t: Core, self: View) -> Value:
        """Return the entropy: one number a distribution."""
        like: Tensor = self.raw("like")
        return t.emit.typed("Entropy", [like], like.dtype, self.raw("batch_shape"))


def _attribute(name: str, event: bool) -> None:
    def compute(t: Core, self: Value) -> Value:
        found = t.heap[self]
        shape = (*found["batch_shape"], *(found["event_shape"] if event else ()))
        return t.emit.typed(name, [found["like"]], found["like"].dtype, shape)

    TORCH.attribute(name, of=_BASE)(compute)


for _name in ("mean", "variance", "stddev", "mode"):
    _attribute(_name, event=True)


class _Kind(NamedTuple):
    """The parameters of a distribution.

    Attributes:
        parameters: Names of the parameters with the number of axes of one event in them.
        event: The number of those axes that a draw has.
        integers: Whether draws are int64.
        exclusive: Whether one of two parameters is given: probabilities or logits.
    """

    parameters: dict[str, int]
    event: int = 0
    integers: bool = False
    exclusive: bool = False


_KINDS = {
    "Normal": _Kind({"loc": 0, "scale": 0}), "Laplace": _Kind({"loc": 0, "scale": 0}),
    "LogNormal": _Kind({"loc": 0, "scale": 0}), "Cauchy": _Kind({"loc": 0, "scale": 0}),
    "Gumbel": _Kind({"loc": 0, "scale": 0}), "HalfNormal": _Kind({"scale": 0}),
    "Uniform": _Kind({"low": 0, "high": 0}), "Exponential": _Kind({"rate": 0}),
    "Poisson": _Kind({"rate": 0}), "Gamma": _Kind({"concentration": 0, "rate": 0}),
    "Beta": _Kind({"concentration1": 0, "concentration0": 0}),
    "StudentT": _Kind({"df": 0, "loc": 0, "scale": 0}),
    "Dirichlet": _Kind({"concentration": 1}, 1),
    "MultivariateNormal": _Kind({"loc": 1, "covariance_matrix": 2}, 1),
    "Bernoulli": _Kind({"probs": 0, "logits": 0}, exclusive=True),
    "Geometric": _Kind({"probs": 0, "logits": 0}, exclusive=True),
    "Categorical": _Kind({"probs": 1, "logits": 1}, 0, True, True),
    "OneHotCategorical": _Kind({"probs": 1, "logits": 1}, 1, False, True),
}  # fmt: skip
_DEFAULTS = {"StudentT": {"loc": 0.0, "scale": 1.0}}


def _register(name: str, kind: _Kind) -> None:
    names = list(kind.parameters)

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        keywords.pop("validate_args", None)
        other = {key: keywords.pop(key) for key in ("scale_tril", "precision_matrix")
                 if key in keywords and name == "MultivariateNormal"}  # fmt: skip
        unknown = [key for key in keywords if key not in names]
        if unknown or len(arguments) > len(names):
            t.fail("call", f"{name}({', '.join(names)}): got {unknown or len(arguments)}")
        given = {**_DEFAULTS.get(name, {}), **dict(zip(names, arguments, strict=False)), **keywords}
        if other:
            given["covariance_matrix"] = next(iter(other.values()))
        values = {key: value for key, value in given.items() if value is not None}
        if kind.exclusive and len(values) != 1:
            t.fail("value", f"{name} takes either probs or logits")
        if not kind.exclusive and len(values) != len(names):
            t.fail("call", f"{name} takes {', '.join(names)}, got {', '.join(values) or 'nothing'}")
        return _attributes(t, kind, values)

    TORCH.layer(f"distributions.{name}", base=_BASE)(type(name, (), {"init": staticmethod(init)}))


def _attributes(t: Core, kind: _Kind, values: dict[str, Value]) -> dict[str, Value]:
    tensors = {key: to_tensor(t, value, FLOAT) for key, value in values.items()}
    dtype = next(iter(tensors.values())).dtype
    for x in tensors.values():
        dtype = promoted(dtype, x.dtype)
    fronts: list[Shape] = []
    event: Shape = ()
    for key, x in tensors.items():
        shape, axes = shape_of(t, x), kind.parameters[key]
        if len(shape) < axes:
            t.fail("rank", f"expected at least {axes} axes in '{key}', got {t.show(x)}", x)
        fronts.append(shape[: len(shape) - axes])
        if axes and axes >= kind.event:
            tail = shape[len(shape) - 1 :] if kind.event else ()
            if event and tail and t.emit.differ(event[0], tail[0]):
                t.fail("shape-mismatch", f"expected {event[0]} as last axis of '{key}', got "
                       f"{t.show(x)}", x)  # fmt: skip
            event = tail or event
    batch = broadcast_shape(t, *(t.emit.new(dtype, front) for front in fronts))
    like = t.emit.typed("Distribution", list(tensors.values()), dtype, batch)
    whole = (*batch, *next(iter(tensors.values())).shape[-1:]) if kind.exclusive and (  # type: ignore[index]
        next(iter(kind.parameters.values()))) else batch  # fmt: skip
    parameters = {
        key: t.emit.typed("Parameter", [like], dtype, whole if kind.exclusive else (*batch, *event))
        for key in kind.parameters
        if kind.parameters[key] < 2
    }
    return {
        **parameters, "like": like, "batch_shape": batch, "event_shape": event,
        "drawn": INT64 if kind.integers else dtype,
    }  # fmt: skip


for _name, _kind in _KINDS.items():
    _register(_name, _kind)


@TORCH.layer("distributions.Independent", base=_BASE)
class Independent:
    """The last axes of a batch taken as one event."""

    @staticmethod
    def init(
        t: Core, base_distribution: Value, reinterpreted_batch_ndims: Value, **_: Value
    ) -> dict[str, Value]:
        """Return the attributes."""
        found = t.heap[base_distribution]
        batch = found["batch_shape"]
        cut = len(batch) - reinterpreted_batch_ndims
        if cut < 0:
            t.fail("value", f"expected at most {len(batch)} axes of the batch as the event's, got "
                   f"{reinterpreted_batch_ndims}")  # fmt: skip
        return {**found, "base_dist": base_distribution, "batch_shape": batch[:cut],
                "event_shape": (*batch[cut:], *found["event_shape"])}  # fmt: skip


@TORCH.function("distributions.kl_divergence", "distributions.kl.kl_divergence")
def kl_divergence(t: Core, p: Value, q: Value) -> Tensor:
    """Return the divergence of two distributions: one number a pair."""
    a, b = t.heap[p], t.heap[q]
    shapes = [t.emit.new(x["like"].dtype, x["batch_shape"]) for x in (a, b)]
    dtype = promoted(a["like"].dtype, b["like"].dtype)
    return t.emit.typed("KL", [a["like"], b["like"]], dtype, broadcast_shape(t, *shapes))
