"""Distributions that others make: transformed (``torch.distributions.transforms``), mixed."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.numbers.distributions import Distribution
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import FLOAT, category, promoted, to_tensor
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Instance, Tensor, Value

_TRANSFORM = "torch.distributions.transforms.Transform"
_BASE = "torch.distributions.Distribution"


def _names(name: str) -> tuple[str, str]:
    return f"distributions.transforms.{name}", f"distributions.{name}"


@TORCH.layer(*_names("Transform"))
class Transform:
    """A function that can be inverted, from elements to elements.

    ``settings`` are the tensors that it computes with; ``event`` the axes that are one value.
    """

    @staticmethod
    def __call__(t: Core, self: View, x: Value) -> Value:
        """Return the transformed values."""
        given = to_tensor(t, x, FLOAT)
        parts = [given, *self.raw("settings")]
        dtype = given.dtype if category(given.dtype) > 1 else FLOAT
        for part in parts[1:]:
            dtype = promoted(dtype, part.dtype)
        return t.emit.typed("Transformed", parts, dtype, broadcast_shape(t, *parts))

    @staticmethod
    def log_abs_det_jacobian(t: Core, self: View, x: Value, y: Value) -> Value:
        """Return the logarithm of the determinant of the derivative, one number an event."""
        del y
        made = Transform.__call__(t, self, x)
        shape = made.shape[: len(made.shape) - self.raw("event")]
        return t.emit.typed("LogDeterminant", [made], made.dtype, shape)


@TORCH.attribute("inv", of=_TRANSFORM)
def inverse(t: Core, self: Value) -> Value:
    """Return the inverse, which keeps shapes and types, too."""
    del t
    return self


def _register(name: str, parameters: tuple[str, ...]) -> None:
    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        given = dict(zip((*parameters, "event_dim", "cache_size"), arguments, strict=False))
        given.update(keywords)
        wrong = [key for key in given if key not in (*parameters, "event_dim", "cache_size")]
        missing = [key for key in parameters if key not in given]
        if wrong or missing:
            t.fail("call", f"{name}({', '.join(parameters)}): got {', '.join(given) or 'nothing'}")
        settings = tuple(to_tensor(t, given[key], FLOAT) for key in parameters)
        return {"settings": settings, "event": given.get("event_dim", 0)}

    TORCH.layer(*_names(name), base=_TRANSFORM)(type(name, (), {"init": staticmethod(init)}))


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
        found = [t.heap[part] for part in parts if isinstance(part, Instance)]
        return {
            "parts": t.wrap(list(parts)),
            "settings": tuple(one for part in found for one in part["settings"]),
            "event": max((part["event"] for part in found), default=0),
        }


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
        settings = [one for part in listed for one in t.heap[part]["settings"]]
        like: Tensor = base["like"]
        event = base["event_shape"]
        front = t.emit.new(like.dtype, (*base["batch_shape"], *event))
        whole = broadcast_shape(t, front, *settings)
        count = max([len(event), *(t.heap[part]["event"] for part in listed)])
        cut = len(whole) - count
        return {
            "base_dist": base_distribution, "transforms": t.wrap(list(listed)), "like": like,
            "batch_shape": whole[:cut], "event_shape": whole[cut:], "drawn": like.dtype,
            "kind": "TransformedDistribution", "parameters": (),
        }  # fmt: skip

    @staticmethod
    def entropy(t: Core, self: View) -> Value:
        """Fail, as there is no formula of it."""
        del self
        t.fail("value", "NotImplementedError: a transformed distribution has no entropy()",
               remedy="estimate it as -log_prob(rsample()).mean()")  # fmt: skip


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
        parts = (*mixture["batch_shape"], mixture["logits"].shape[-1])
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
    def log_prob(t: Core, self: View, value: Value) -> Value:
        """Return the logarithm of the density: one number an event."""
        if not t.emit.builds:
            return Distribution.log_prob(t, self, value)
        place = -1 - len(self.raw("event_shape"))
        x = t.call_library("torch.unsqueeze", [to_tensor(t, value), place])
        component, mixture = self.raw("component_distribution"), self.raw("mixture_distribution")
        found = t.call(t.attribute(component, "log_prob"), [x], {})
        shares = t.call_library("torch.log_softmax", [t.attribute(mixture, "logits"), -1])
        return t.call_library("torch.logsumexp", [t.call_library("torch.add", [found, shares]), -1])

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
