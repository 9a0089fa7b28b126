"""Distributions of others: independent, transformed (``torch.distributions.transforms``), mixed."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.numbers.distributions import (
    COMPOSED,
    Composed,
    Distribution,
    summed,
)
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    category,
    dims_input,
    promoted,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Host,
    Library,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.numbers.bijections import BIJECTIONS
from hagane.ops.functions.numbers.elementary import cast

_TRANSFORM = "torch.distributions.transforms.Transform"
_INVERSE = "distributions.transforms._InverseTransform"
_BASE = "torch.distributions.Distribution"


def _names(name: str) -> tuple[str, str]:
    return f"distributions.transforms.{name}", f"distributions.{name}"


@TORCH.layer(*_names("Transform"))
class Transform:
    """A function that can be inverted, from elements to elements.

    ``settings`` are the tensors that it computes with; ``event`` the axes that are one value;
    ``parts`` the functions that it applies one after the other; ``inverse_of`` the transform
    of which it is the inverse; ``pair`` the latest x and y where it keeps them.
    """

    @staticmethod
    def __call__(t: Core, self: View, x: Value) -> Value:
        """Return the transformed values."""
        return _applied(t, self, to_tensor(t, x, FLOAT), back=_is_inverse(self))

    @staticmethod
    def log_abs_det_jacobian(t: Core, self: View, x: Value, y: Value) -> Value:
        """Return the logarithm of the determinant of the derivative, one number an event."""
        first, second = to_tensor(t, x, FLOAT), to_tensor(t, y, FLOAT)
        if _is_inverse(self):
            found = _slope(t, self, second, first)
            return t.call_library("torch.neg", [found])
        return _slope(t, self, first, second)


@TORCH.attribute("inv", of=_TRANSFORM)
def inverse(t: Core, self: Value) -> Value:
    """Return the inverse, which keeps shapes and types, too."""
    found = t.heap[self]
    if "inverse_of" in found:
        return found["inverse_of"]
    held = {**found, "inverse_of": self}
    return Instance(t.heap.new(held), Library(f"torch.{_INVERSE}"))


@TORCH.layer(_INVERSE, base=_TRANSFORM)
class InverseTransform:
    """The inverse of a transform."""


def _is_inverse(self: View) -> bool:
    return self.raw("inverse_of") is not None


def _applied(t: Core, self: View, x: Tensor, *, back: bool) -> Tensor:
    """Return the values that a transform, or its inverse, makes of others."""
    pair = self.raw("pair")
    kept = pair.object[back] if pair is not None and pair.object else None
    if kept is x:
        found: Tensor = pair.object[not back]
        return found
    parts = self.raw("parts")
    if parts is None:
        made = _of_one(t, self, x, back=back)
    else:
        made = x
        for part in reversed(parts) if back else parts:
            inner = View(t, part)
            made = _applied(t, inner, made, back=back != _is_inverse(inner))
    if pair is not None:
        pair.object[:] = (made, x) if back else (x, made)
    return made


def _of_one(t: Core, self: View, x: Tensor, *, back: bool) -> Tensor:
    settings, law = self.raw("settings"), BIJECTIONS[self.raw("kind")]
    dtype = x.dtype if category(x.dtype) > 1 else FLOAT
    for part in settings:
        dtype = promoted(dtype, part.dtype)
    shape = broadcast_shape(t, x, *settings)
    return built(t, (dtype, shape), lambda *given: (law.inverse if back else law.forward)(
        *(cast(one, dtype) for one in given)), x, *settings)  # fmt: skip


def _slope(t: Core, self: View, x: Tensor, y: Tensor) -> Tensor:
    """Return the logarithm of the determinant of a transform's derivative, inverted or not."""
    event = self.raw("event")
    parts = self.raw("parts")
    if parts is not None:
        found = None
        for part in parts:
            inner = View(t, part)
            after = _applied(t, inner, x, back=_is_inverse(inner))
            term = Transform.log_abs_det_jacobian(t, inner, x, after)
            term = summed(t, term, event - inner.raw("event"))
            found = term if found is None else t.call_library("torch.add", [found, term])
            x = after
        return t.call_library("torch.zeros_like", [x]) if found is None else found
    law = BIJECTIONS[self.raw("kind")]
    settings = self.raw("settings")
    if law.slope is None:
        t.fail("value", f"NotImplementedError: {self.raw('kind')} has no log_abs_det_jacobian()")
    shape, rule = broadcast_shape(t, x, y), law.slope
    whole = dims_input(shape)

    def compute(x: Any, y: Any, *given: Any) -> Any:
        found = rule(cast(x, y_type), y, *(cast(one, y_type) for one in given))
        return op("Expand", found, whole)

    y_type = y.dtype
    return summed(t, built(t, (y_type, shape), compute, x, y, *settings), event)


def _register(name: str, parameters: tuple[str, ...]) -> None:
    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        given = dict(zip((*parameters, "event_dim", "cache_size"), arguments, strict=False))
        given.update(keywords)
        wrong = [key for key in given if key not in (*parameters, "event_dim", "cache_size")]
        missing = [key for key in parameters if key not in given]
        if wrong or missing:
            t.fail("call", f"{name}({', '.join(parameters)}): got {', '.join(given) or 'nothing'}")
        settings = tuple(to_tensor(t, given[key], FLOAT) for key in parameters)
        named = {key: given[key] for key in parameters}
        return {**named, "settings": settings, "event": given.get("event_dim", 0), "kind": name,
                **_pair(given.get("cache_size", 0))}  # fmt: skip

    TORCH.layer(*_names(name), base=_TRANSFORM)(type(name, (), {"init": staticmethod(init)}))


def _content(t: Core, part: Value) -> dict[str, Value]:
    """Return the attributes of a transform; fail if its formulas are not known."""
    found = t.heap[part] if isinstance(part, Instance) else {}
    if "settings" not in found:
        t.fail("capture", f"no formulas of the transform {t.show(part)} are known; apply it "
               "to draws, and its slope to densities, by code of your own")  # fmt: skip
    return found


def _pair(cache_size: Value) -> dict[str, Value]:
    return {"pair": Host([])} if cache_size else {}


for _name, _parameters in {
    "AbsTransform": (), "AffineTransform": ("loc", "scale"), "ExpTransform": (),
    "PowerTransform": ("exponent",), "SigmoidTransform": (), "SoftplusTransform": (),
    "TanhTransform": (),
}.items():  # fmt: skip
    _register(_name, _parameters)


@TORCH.layer(*_names("ComposeTransform"), base=_TRANSFORM)
class ComposeTransform:
    """Transforms one after the other."""

    @staticmethod
    def init(t: Core, parts: Value, cache_size: Value = 0) -> dict[str, Value]:
        """Return the attributes."""
        found = [_content(t, part) for part in parts]
        return {
            "parts": tuple(parts),
            **_pair(cache_size),
            "settings": tuple(one for part in found for one in part["settings"]),
            "event": max((part["event"] for part in found), default=0),
        }


@TORCH.layer("distributions.Independent", base=_BASE)
class Independent:
    """The last axes of a batch taken as one event."""

    @staticmethod
    def init(
        t: Core, base_distribution: Value, reinterpreted_batch_ndims: Value,
        validate_args: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        found = t.heap[base_distribution]
        batch = found["batch_shape"]
        cut = len(batch) - reinterpreted_batch_ndims
        if cut < 0:
            t.fail("value", f"expected at most {len(batch)} axes of the batch as the event's, got "
                   f"{reinterpreted_batch_ndims}")  # fmt: skip
        event = (*batch[cut:], *found["event_shape"])
        return {**found, "base_dist": base_distribution, "inner": base_distribution,
                "batch_shape": batch[:cut], "event_shape": event}  # fmt: skip


@TORCH.layer("distributions.TransformedDistribution", base=_BASE)
class TransformedDistribution:
    """What transforms make of draws of another distribution."""

    @staticmethod
    def init(
        t: Core, base_distribution: Value, transforms: Value, validate_args: Value = None
    ) -> dict[str, Value]:
        """Return the attributes."""
        listed = transforms if isinstance(transforms, list | tuple) else [transforms]
        base = t.heap[base_distribution]
        parts = [_content(t, part) for part in listed]
        settings = [one for part in parts for one in part["settings"]]
        like: Tensor = base["like"]
        event = base["event_shape"]
        front = t.emit.new(like.dtype, (*base["batch_shape"], *event))
        whole = broadcast_shape(t, front, *settings)
        count = max([len(event), *(part["event"] for part in parts)])
        cut = len(whole) - count
        return {
            "base_dist": base_distribution, "transforms": tuple(listed), "like": like,
            "batch_shape": whole[:cut], "event_shape": whole[cut:], "drawn": like.dtype,
            "kind": "TransformedDistribution", "parameters": (),
        }  # fmt: skip

    @staticmethod
    def entropy(t: Core, self: View) -> Value:
        """Fail, as there is no formula of it."""
        del self
        t.fail("value", "NotImplementedError: a transformed distribution has no entropy()",
               remedy="estimate it as -log_prob(rsample()).mean()")  # fmt: skip


def _transformed_density(t: Core, self: View, value: Value) -> Tensor:
    y, event = to_tensor(t, value), len(self.raw("event_shape"))
    slopes = list[Tensor]()
    for part in reversed(self.raw("transforms")):
        inner = View(t, part)
        x = _applied(t, inner, y, back=not _is_inverse(inner))
        slope = Transform.log_abs_det_jacobian(t, inner, x, y)
        slopes.append(summed(t, slope, event - inner.raw("event")))
        y = x
    base = View(t, self.raw("base_dist"))
    found = Distribution.log_prob(t, base, y)
    found = summed(t, found, event - len(base.raw("event_shape")))
    for slope in slopes:
        found = t.call_library("torch.sub", [found, slope])
    return found


def _transformed_draw(t: Core, self: View, sample_shape: Value) -> Tensor:
    found = Distribution.rsample(t, View(t, self.raw("base_dist")), sample_shape)
    for part in self.raw("transforms"):
        inner = View(t, part)
        found = _applied(t, inner, found, back=_is_inverse(inner))
    return found


COMPOSED["TransformedDistribution"] = Composed(_transformed_density, _transformed_draw)


@TORCH.layer("distributions.MixtureSameFamily", base=_BASE)
class MixtureSameFamily:
    """A mixture: the last axis of a batch of components, of which a categorical one picks."""

    @staticmethod
    def init(
        t: Core, mixture_distribution: Value, component_distribution: Value,
        validate_args: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        mixture, component = t.heap[mixture_distribution], t.heap[component_distribution]
        if mixture.get("kind") != "Categorical":
            t.fail("type", "expected a Categorical as mixture_distribution, got "
                   f"{mixture.get('kind')}")  # fmt: skip
        batch = component["batch_shape"]
        like: Tensor = component["like"]
        parts = (*mixture["batch_shape"], View(t, mixture_distribution).raw("logits").shape[-1])
        pairs = list(zip(batch[::-1], parts[::-1], strict=False))
        fits = bool(batch) and not t.emit.differ(*pairs[0])
        if not fits or any(1 not in pair and t.emit.differ(*pair) for pair in pairs[1:]):
            picked = t.show(t.emit.new(like.dtype, parts))
            t.fail("shape-mismatch", f"a mixture over {picked} does not fit "
                   f"components in a batch of {t.show(t.emit.new(like.dtype, batch))}; the last "
                   "axis of the batch has to be that of the categories", like)  # fmt: skip
        made = t.emit.typed("Distribution", [like, mixture["like"]], like.dtype, batch[:-1])
        return {
            "mixture_distribution": mixture_distribution, "like": made,
            "component_distribution": component_distribution, "batch_shape": batch[:-1],
            "event_shape": component["event_shape"], "drawn": component["drawn"],
            "kind": "MixtureSameFamily", "parameters": (), "picked": mixture["batch_shape"],
        }  # fmt: skip

    @staticmethod
    def sample(t: Core, self: View, sample_shape: Value = ()) -> Value:
        """Return draws: (*sample_shape, *batch, *event)."""
        picked, batch = self.raw("picked"), self.raw("batch_shape")
        if len(picked) != len(batch):
            t.fail("rank", f"a mixture over a batch of {len(picked)} axes cannot be drawn from for "
                   f"components in one of {len(batch)}", self.raw("like"),
                   remedy="give the mixture the batch of its components")  # fmt: skip
        return Distribution.sample(t, self, sample_shape)

    @staticmethod
    def rsample(t: Core, self: View, sample_shape: Value = ()) -> Value:
        """Fail, as a choice of a component lets no gradient through."""
        del self, sample_shape
        t.fail("value", "NotImplementedError: a mixture has no rsample()",
               remedy="call .sample(), which no gradient goes through")  # fmt: skip

    @staticmethod
    def entropy(t: Core, self: View) -> Value:
        """Fail, as there is no formula of it."""
        del self
        t.fail("value", "NotImplementedError: a mixture has no entropy()",
               remedy="estimate it as -log_prob(sample()).mean()")  # fmt: skip


def _mixed_density(t: Core, self: View, value: Value) -> Tensor:
    place = -1 - len(self.raw("event_shape"))
    x = t.call_library("torch.unsqueeze", [to_tensor(t, value), place])
    component, mixture = self.raw("component_distribution"), self.raw("mixture_distribution")
    found = t.call(t.attribute(component, "log_prob"), [x], {})
    shares = t.call_library("torch.log_softmax", [t.attribute(mixture, "logits"), -1])
    whole = t.call_library("torch.add", [found, shares])
    made: Tensor = t.call_library("torch.logsumexp", [whole, -1])
    return made


def _mixed_draw(t: Core, self: View, sample_shape: Value) -> Tensor:
    del self, sample_shape
    return t.fail("capture", "draws of 'torch.distributions.MixtureSameFamily' cannot be captured; "
                  "draw them outside and pass them in")  # fmt: skip


COMPOSED["MixtureSameFamily"] = Composed(_mixed_density, _mixed_draw)
