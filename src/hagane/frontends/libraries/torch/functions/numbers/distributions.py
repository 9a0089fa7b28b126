"""Distributions of ``torch.distributions``: shapes of batches and events, and their formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.arrays.creating import made
from hagane.frontends.libraries.torch.functions.arrays.drawing import drawn, raced
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    category,
    dims_input,
    promoted,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Computed, Instance
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import Shape
from hagane.ops.builder import op
from hagane.ops.functions.numbers.densities import LAWS as LAWS_OF_NUMBERS
from hagane.ops.functions.numbers.densities import both_forms
from hagane.ops.functions.numbers.divergences import DIVERGENCES as DIVERGENCES_OF_NUMBERS
from hagane.ops.functions.numbers.elementary import cast, sum_over
from hagane.ops.functions.sums.gaussian import MULTIVARIATE_NORMAL, between_gaussians

_OF_PLACES = ("Categorical",)  # whose values are places of categories
_OF_CATEGORIES = ("Categorical", "OneHotCategorical")
_BASE = "torch.distributions.Distribution"


class Composed(NamedTuple):
    """A distribution that is made of others: its density at a value, and its draws."""

    density: Callable[[Core, View, Value], Tensor]
    draw: Callable[[Core, View, Value], Tensor]


COMPOSED: dict[str, Composed] = {}  # by kind
LAWS = {**LAWS_OF_NUMBERS, "MultivariateNormal": MULTIVARIATE_NORMAL}
DIVERGENCES = {**DIVERGENCES_OF_NUMBERS, "MultivariateNormal": between_gaussians}


@TORCH.layer("distributions.Distribution")
class Distribution:
    """A distribution: ``batch`` is the shape of independent ones, ``event`` that of one draw."""

    @staticmethod
    def rsample(t: Core, self: View, sample_shape: Value = ()) -> Value:
        """Return draws, which gradients go through: (*sample_shape, *batch, *event)."""
        return _draw(t, self, sample_shape)

    @staticmethod
    def sample(t: Core, self: View, sample_shape: Value = ()) -> Value:
        """Return draws: (*sample_shape, *batch, *event)."""
        return t.emit.stopped(_draw(t, self, sample_shape))

    @staticmethod
    def sample_n(t: Core, self: View, n: Value) -> Value:
        """Return ``n`` draws."""
        return Distribution.sample(t, self, (n,))

    @staticmethod
    def log_prob(t: Core, self: View, value: Value) -> Value:
        """Return the logarithm of the density: one number an event."""
        inner: Instance | None = self.raw("inner")
        if inner is not None:
            found = Distribution.log_prob(t, View(t, inner), value)
            return summed(
                t, found, len(self.raw("event_shape")) - len(t.heap[inner]["event_shape"])
            )
        if self.raw("kind") in COMPOSED:
            return COMPOSED[self.raw("kind")].density(t, self, value)
        dtype, shape, x = _at(t, self, value)
        return _by(t, self, (dtype, shape), "density", x, of_events=True)

    @staticmethod
    def cdf(t: Core, self: View, value: Value) -> Value:
        """Return the cumulative distribution at a value."""
        dtype, shape, x = _at(t, self, value)
        return _by(t, self, (dtype, shape), "cumulative", x)

    @staticmethod
    def icdf(t: Core, self: View, value: Value) -> Value:
        """Return the values below which draws lie with given probabilities."""
        dtype, shape, x = _at(t, self, value)
        return _by(t, self, (dtype, shape), "quantiles", x)

    @staticmethod
    def perplexity(t: Core, self: View) -> Value:
        """Return the exponential of the entropy: one number a distribution."""
        entropy = t.call(t.attribute(self.instance(), "entropy"), [], {})
        return t.call_library("torch.exp", [entropy])

    @staticmethod
    def expand(t: Core, self: View, batch_shape: Value, _instance: Value = None) -> Value:
        """Return the distribution over a larger batch: (*batch_shape,)."""
        del _instance
        wanted = tuple(sizes(t, (batch_shape,)))
        found = dict(t.heap[self.instance()])
        like = t.emit.new(found["like"].dtype, found["batch_shape"])
        whole = broadcast_shape(t, like, t.emit.new(like.dtype, wanted))
        if len(whole) != len(wanted) or any(map(t.emit.differ, whole, wanted)):
            t.fail("broadcast", f"a batch of {t.show(like)} cannot be expanded to "
                   f"{t.show(t.emit.new(like.dtype, wanted))}", like)  # fmt: skip
        for name in found["parameters"]:
            x = self.raw(name)
            tail = x.shape[len(found["batch_shape"]) :]
            dims = dims_input((*wanted, *tail))
            found[name] = built(
                t, (x.dtype, (*wanted, *tail)), lambda x, dims=dims: op("Expand", x, dims), x
            )
        found.update(batch_shape=wanted, like=t.emit.typed(
            "Distribution", [found["like"]], like.dtype, wanted))  # fmt: skip
        return Instance(t.heap.new(found), self.instance().cls)

    @staticmethod
    def entropy(t: Core, self: View) -> Value:
        """Return the entropy: one number a distribution."""
        like: Tensor = self.raw("like")
        promised = like.dtype, self.raw("batch_shape")
        return _by(t, self, promised, "entropy", of_events=True)


def _at(t: Core, self: View, value: Value) -> tuple[ir.DataType, Shape, Tensor]:
    """Return the type of a result at a value, and the value."""
    like: Tensor = self.raw("like")
    x = to_tensor(t, value)
    whole = (*self.raw("batch_shape"), *self.raw("event_shape"))
    shape = broadcast_shape(t, x, t.emit.typed("Distribution", [like], like.dtype, whole))
    event = len(self.raw("event_shape"))
    dtype = like.dtype if category(x.dtype) < 2 else promoted(x.dtype, like.dtype)
    return dtype, shape[: len(shape) - event], x


def _by(
    t: Core, self: View, promised: tuple[ir.DataType, Shape], name: str, *operands: Tensor,
    of_events: bool = False,
) -> Tensor:  # fmt: skip
    """Return what a formula of a distribution's law gives for its parameters.

    Args:
        t: The interpreter.
        self: The distribution.
        promised: The type of the result.
        name: The attribute of the law.
        operands: Further tensors.
        of_events: Whether axes of the batch that are an event's by ``Independent`` are summed over.
    """
    kind, names = self.raw("kind"), self.raw("parameters")
    law = LAWS.get(kind)
    real = [self.raw(parameter) for parameter in names]
    dtype = self.raw("like").dtype
    axes = len(self.raw("event_shape")) - law.event if law is not None and of_events else 0
    formula: Callable[..., Any] | None = getattr(law, name, None)
    if t.emit.builds and formula is None:
        t.fail("capture", f"no formula of the {name} of 'torch.distributions.{kind}' is known; "
               "compute it outside, or by a formula of your own")  # fmt: skip

    def compute(*values: Any) -> Any:
        assert formula is not None
        given = dict(zip(names, values, strict=False))
        behind = [x if kind in _OF_PLACES else cast(x, dtype) for x in values[len(names) :]]
        return _over(formula(given, *behind), axes)

    return built(t, promised, compute, *real, *operands)


def summed(t: Core, x: Tensor, axes: int) -> Tensor:
    """Return sums over so many last axes of a tensor of the program."""
    if not axes:
        return x
    found: Tensor = t.call_library("torch.sum", [x, tuple(range(-axes, 0))])
    return found


def _over(x: Any, axes: int) -> Any:
    """Return sums over so many last axes."""
    return sum_over(x, range(-axes, 0), keepdims=False) if axes else x


def _draw_category(t: Core, self: View, front: Shape, shape: Shape) -> Tensor:
    """Return one draw of each distribution: its place, or a one there."""
    if any(size != 1 for size in front):
        t.fail("capture", f"several draws at once of 'torch.distributions.{self.raw('kind')}' "
               "cannot be captured; draw one after the other, or outside")  # fmt: skip
    shares: Tensor = t.attribute(self.instance(), "probs")
    place = t.call_library("torch.argmax", [raced(t, shares, {}), -1])
    if self.raw("kind") != "Categorical":
        place = t.call_library("torch.nn.functional.one_hot", [place, shape_of(t, shares)[-1]])
        place = t.call_library("torch.Tensor.to", [place, shares])
    found: Tensor = t.call_library("torch.reshape", [place, shape])
    return found


def _draw(t: Core, self: View, sample_shape: Value) -> Tensor:
    inner: Instance | None = self.raw("inner")
    if inner is not None:
        return _draw(t, View(t, inner), sample_shape)
    composed = COMPOSED.get(self.raw("kind"))
    if composed is not None and t.emit.draws_noise:
        return composed.draw(t, self, sample_shape)
    like: Tensor = self.raw("like")
    front = tuple(sizes(t, (sample_shape,)))
    shape = (*front, *self.raw("batch_shape"), *self.raw("event_shape"))
    if not t.emit.draws_noise:
        return t.emit.typed("Sample", [like], self.raw("drawn"), shape)
    if self.raw("kind") in _OF_CATEGORIES:
        return _draw_category(t, self, front, shape)
    law = LAWS.get(self.raw("kind"))
    if law is None or law.draw is None:
        t.fail("capture", f"draws of 'torch.distributions.{self.raw('kind')}' cannot be captured; "
               "draw them outside and pass them in")  # fmt: skip
    noise = drawn(t, law.noise, made(t, like.dtype, list(shape), like.device), {})
    return _by(t, self, (like.dtype, shape), "draw", noise)


def _attribute(name: str, event: bool) -> None:
    def compute(t: Core, self: Value) -> Value:
        found = View(t, self)
        shape = (*found.raw("batch_shape"), *(found.raw("event_shape") if event else ()))
        dtype = found.raw("drawn") if name == "mode" else found.raw("like").dtype
        return _by(t, found, (dtype, shape), name)

    TORCH.attribute(name, of=_BASE)(compute)


for _name in ("mean", "variance", "stddev", "mode"):
    _attribute(_name, event=True)


@TORCH.attribute("_validate_args", of=_BASE)
def validates(t: Core, self: Value) -> Value:
    """Whether values are compared with the support; a graph has no such comparisons."""
    del t, self
    return False


@TORCH.attribute("covariance_matrix", of=_BASE)
def covariance_matrix(t: Core, self: Value) -> Value:
    """Return the covariance of a normal distribution of vectors: (*batch, n, n)."""
    factor = t.attribute(self, "scale_tril")
    return t.call_library("torch.matmul", [factor, t.attribute(factor, "mT")])


# Distributions through whose draws no gradients go.
_WITHOUT_GRADIENTS = frozenset(
    ("Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "NegativeBinomial",
     "OneHotCategorical", "Poisson", "VonMises")
)  # fmt: skip


@TORCH.attribute("has_rsample", of=_BASE)
def has_rsample(t: Core, self: Value) -> Value:
    """Whether gradients go through draws."""
    inner = t.heap[self].get("base_dist")
    if inner is not None:
        return t.attribute(inner, "has_rsample")
    return View(t, self).get("kind", "") not in _WITHOUT_GRADIENTS


class Kind(NamedTuple):
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


KINDS = {
    "Normal": Kind({"loc": 0, "scale": 0}), "Laplace": Kind({"loc": 0, "scale": 0}),
    "LogNormal": Kind({"loc": 0, "scale": 0}), "Cauchy": Kind({"loc": 0, "scale": 0}),
    "Gumbel": Kind({"loc": 0, "scale": 0}), "HalfNormal": Kind({"scale": 0}),
    "Uniform": Kind({"low": 0, "high": 0}), "Exponential": Kind({"rate": 0}),
    "Poisson": Kind({"rate": 0}), "Gamma": Kind({"concentration": 0, "rate": 0}),
    "Beta": Kind({"concentration1": 0, "concentration0": 0}),
    "StudentT": Kind({"df": 0, "loc": 0, "scale": 0}),
    "Dirichlet": Kind({"concentration": 1}, 1),
    "MultivariateNormal": Kind({"loc": 1, "scale_tril": 2}, 1),
    "Bernoulli": Kind({"probs": 0, "logits": 0}, exclusive=True),
    "Geometric": Kind({"probs": 0, "logits": 0}, exclusive=True),
    "Categorical": Kind({"probs": 1, "logits": 1}, 0, True, True),
    "OneHotCategorical": Kind({"probs": 1, "logits": 1}, 1, False, True),
    "OneHotCategoricalStraightThrough": Kind({"probs": 1, "logits": 1}, 1, False, True),
    "ContinuousBernoulli": Kind({"probs": 0, "logits": 0}, exclusive=True),
    "HalfCauchy": Kind({"scale": 0}), "Chi2": Kind({"df": 0}),
    "Weibull": Kind({"scale": 0, "concentration": 0}), "Pareto": Kind({"scale": 0, "alpha": 0}),
    "InverseGamma": Kind({"concentration": 0, "rate": 0}),
    "Kumaraswamy": Kind({"concentration1": 0, "concentration0": 0}),
    "VonMises": Kind({"loc": 0, "concentration": 0}),
    "FisherSnedecor": Kind({"df1": 0, "df2": 0}),
}  # fmt: skip
_DEFAULTS = {"StudentT": {"loc": 0.0, "scale": 1.0}}
# Distributions whose probabilities and logits give each other as those of another.
_FORMS = {
    "OneHotCategoricalStraightThrough": "OneHotCategorical",
    "ContinuousBernoulli": "Bernoulli",
}
# Distributions with a first parameter beside probabilities or logits: its name, its default, and
# the distribution whose shapes they have.
_BESIDE: dict[str, tuple[str, Value, str]] = {
    "RelaxedBernoulli": ("temperature", ..., "Bernoulli"),
    "RelaxedOneHotCategorical": ("temperature", ..., "OneHotCategorical"),
    "Binomial": ("total_count", 1, "Bernoulli"),
    "NegativeBinomial": ("total_count", ..., "Bernoulli"),
    "Multinomial": ("total_count", 1, "OneHotCategorical"),
}


def _register(name: str, kind: Kind) -> None:
    names = list(kind.parameters)
    if name == "MultivariateNormal":
        names[1:1] = ["covariance_matrix", "precision_matrix"]

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        keywords.pop("validate_args", None)
        unknown = [key for key in keywords if key not in names]
        if unknown or len(arguments) > len(names):
            t.fail("call", f"{name}({', '.join(names)}): got {unknown or len(arguments)}")
        given = {**_DEFAULTS.get(name, {}), **dict(zip(names, arguments, strict=False)), **keywords}
        values = {key: value for key, value in given.items() if value is not None}
        if name == "MultivariateNormal":
            values = _with_factor(t, values)
        if kind.exclusive and len(values) != 1:
            t.fail("value", f"{name} takes either probs or logits")
        if not kind.exclusive and len(values) != len(kind.parameters):
            t.fail(
                "call",
                f"{name} takes {', '.join(kind.parameters)}, got {', '.join(values) or 'nothing'}",
            )
        return attributes_of(t, name, kind, values)

    TORCH.layer(f"distributions.{name}", base=_BASE)(type(name, (), {"init": staticmethod(init)}))


def _with_factor(t: Core, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters of a normal distribution of vectors with the factor of its matrix."""
    found = dict(values)
    matrices = [key for key in found if key != "loc"]
    if len(matrices) != 1:
        t.fail("call", "MultivariateNormal takes one of covariance_matrix, precision_matrix and "
               f"scale_tril, got {', '.join(matrices) or 'none'}")  # fmt: skip
    x = to_tensor(t, found.pop(matrices[0]), FLOAT)
    if matrices == ["covariance_matrix"]:
        x = t.call_library("torch.linalg.cholesky", [x])
    elif matrices == ["precision_matrix"]:  # the factor of the inverse, from the last row on
        turned = t.call_library("torch.flip", [x, (-2, -1)])
        turned = t.call_library("torch.linalg.cholesky", [turned])
        turned = t.call_library("torch.flip", [turned, (-2, -1)])
        inverse = t.call_library("torch.transpose", [turned, -2, -1])
        x = t.call_library("torch.linalg.inv", [inverse])
    return {**found, "scale_tril": x}


def attributes_of(
    t: Core, name: str, kind: Kind, values: Mapping[str, Value], *, given: bool = False
) -> dict[str, Value]:
    """Return the attributes of a distribution.

    Args:
        t: The interpreter.
        name: Of its class.
        kind: Its parameters.
        values: Those that are given.
        given: Whether the running Python has made it: then its parameters have the batch's shape,
            and of probabilities and logits one is computed each time that it is read.
    """
    tensors = {key: to_tensor(t, value, FLOAT) for key, value in values.items()}
    dtype = next(iter(tensors.values())).dtype
    for x in tensors.values():
        dtype = promoted(dtype, x.dtype)
    fronts: list[Tensor] = []
    event: Shape = ()
    for key, x in tensors.items():
        shape, axes = shape_of(t, x), kind.parameters[key]
        if len(shape) < axes:
            t.fail("rank", f"expected at least {axes} axes in '{key}', got {t.show(x)}", x)
        front = shape[: len(shape) - axes]
        fronts.append(t.emit.typed("Distribution", [x], dtype, front))
        if axes and axes >= kind.event:
            tail = shape[len(shape) - 1 :] if kind.event else ()
            if event and tail and t.emit.differ(event[0], tail[0]):
                t.fail("shape-mismatch", f"expected {event[0]} as last axis of '{key}', got "
                       f"{t.show(x)}", x)  # fmt: skip
            event = tail or event
    batch = broadcast_shape(t, *fronts)
    like = t.emit.typed("Distribution", list(tensors.values()), dtype, batch)
    whole = (*batch, *next(iter(tensors.values())).shape[-1:]) if kind.exclusive and (  # type: ignore[index]
        next(iter(kind.parameters.values()))) else batch  # fmt: skip
    shape = whole if kind.exclusive else (*batch, *event)
    parameters: dict[str, Value] = {}
    for key, axes in kind.parameters.items():
        if given and key in tensors:
            parameters[key] = tensors[key]
        else:
            own = (*shape, *event) if axes > 1 else shape
            compute = partial(_parameter, t, name, key, tensors, (dtype, own))
            parameters[key] = Computed(compute) if given else compute()
    return {
        **parameters,
        "kind": name,
        "parameters": tuple(parameters),
        "like": like,
        "batch_shape": batch,
        "event_shape": event,
        "drawn": INT64 if kind.integers else dtype,
    }


def _parameter(
    t: Core, name: str, key: str, tensors: Mapping[str, Tensor],
    promised: tuple[ir.DataType, Shape],
) -> Tensor:  # fmt: skip
    """Return a parameter in the shape of the batch; probabilities and logits give each other."""
    dtype, shape = promised
    law = _FORMS.get(name, name)
    if key in ("probs", "logits") and law in LAWS:
        ((given, x),) = tensors.items()
        place = ("probs", "logits").index(key)
        return built(t, promised, lambda x: both_forms(law, given, cast(x, dtype))[place], x)
    sizes_of_batch = dims_input(shape)
    return built(t, promised, lambda x: op("Expand", cast(x, dtype), sizes_of_batch), tensors[key])


def _register_beside(name: str, first: str, default: Value, like: str) -> None:
    def init(
        t: Core, given: Value = default, probs: Value = None, logits: Value = None, **named: Value
    ) -> dict[str, Value]:
        given = named.pop(first, given)
        named.pop("validate_args", None)
        values = {k: v for k, v in {"probs": probs, "logits": logits}.items() if v is not None}
        if named or given is ... or len(values) != 1:
            t.fail("call", f"{name}({first}, probs, logits): takes {first} and either probs or "
                   f"logits, got {', '.join([*values, *named]) or 'neither'}")  # fmt: skip
        found = attributes_of(t, like, KINDS[like], values)
        beside = to_tensor(t, given, FLOAT)
        batch = broadcast_shape(t, beside, t.emit.new(FLOAT, found["batch_shape"]))
        made = t.emit.typed("Distribution", [found["like"], beside], found["like"].dtype, batch)
        return {**found, first: given, "kind": name, "like": made, "batch_shape": batch}

    TORCH.layer(f"distributions.{name}", base=_BASE)(type(name, (), {"init": staticmethod(init)}))


for _name, _kind in KINDS.items():
    _register(_name, _kind)
for _name, _beside in _BESIDE.items():
    _register_beside(_name, *_beside)


@TORCH.function("distributions.kl_divergence", "distributions.kl.kl_divergence")
def kl_divergence(t: Core, p: Value, q: Value) -> Tensor:
    """Return the divergence of two distributions: one number a pair."""
    a, b = t.heap[p], t.heap[q]
    likes = [x["like"] for x in (a, b)]
    shapes = [t.emit.typed("Distribution", [like], like.dtype, x["batch_shape"])
              for like, x in zip(likes, (a, b), strict=True)]  # fmt: skip
    dtype = promoted(a["like"].dtype, b["like"].dtype)
    found = DIVERGENCES.get(a["kind"]) if a["kind"] == b["kind"] else None
    if t.emit.builds and found is None:
        t.fail("capture", f"the divergence of 'torch.distributions.{a['kind']}' and "
               f"'{b['kind']}' cannot be captured; compute it by its formula")  # fmt: skip
    names, count = a["parameters"], len(a["parameters"])
    axes = len(a["event_shape"]) - (LAWS[a["kind"]].event if a["kind"] in LAWS else 0)

    def compute(*values: Any) -> Any:
        assert found is not None
        values = tuple(cast(x, dtype) for x in values)
        p, q = (dict(zip(names, part, strict=True)) for part in (values[:count], values[count:]))
        return _over(found(p, q), axes)

    given = [View(t, x).raw(name) for x in (p, q) for name in names]
    return built(t, (dtype, broadcast_shape(t, *shapes)), compute, *given)
