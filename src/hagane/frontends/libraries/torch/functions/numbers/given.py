"""Distributions that the running Python made: attributes of modules and globals, such as priors."""

from __future__ import annotations

from functools import partial
from typing import Any

from hagane.frontends.libraries.torch.functions.numbers.distributions import KINDS, attributes_of
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Library,
    Value,
)

# The attributes that have the first arguments of distributions which are made of others.
_PARTS = {
    "Independent": ("base_dist", "reinterpreted_batch_ndims"),
    "MixtureSameFamily": ("_mixture_distribution", "_component_distribution"),
    "TransformedDistribution": ("base_dist", "transforms"),
}


def given_transform(core: Core, found: Any) -> Value:
    """Return the stand-in of a real transform of distributions, ``MISSING`` if none is known."""
    if type(found).__name__ == "_InverseTransform":
        inner = core.lift(found._inv)
        return core.attribute(inner, "inv") if isinstance(inner, Instance) else MISSING
    name = core.tables.name_of(type(found))
    if name is None:
        return MISSING
    made = Instance(core.heap.new({}), Library(name), found)
    parameters = [n for n in ("parts", "loc", "scale", "exponent") if n in vars(found)]
    given = {
        n: core.observer.attribute(made, n, partial(core.host_attribute, found, n))
        for n in parameters
    }
    settings = {"cache_size": found._cache_size}
    if "_event_dim" in vars(found):
        settings["event_dim"] = found._event_dim
    if "parts" in given:
        given["parts"] = [core.lift(part) for part in found.parts]
    return core.call(Library(name), [], {**given, **settings})


def given_distribution(core: Core, found: Any) -> Value:
    """Return the stand-in of a real distribution, ``MISSING`` if its source says what it means."""
    name = core.tables.name_of(type(found))
    if name is None:
        return MISSING
    made = Instance(core.heap.new({}), Library(name), found)

    def read(attribute: str) -> Value:
        if attribute not in vars(found):  # a part of another distribution that it has
            return core.lift(getattr(found, attribute))
        held = partial(core.host_attribute, found, attribute)
        return core.observer.attribute(made, attribute, held)

    short = name.rpartition(".")[2]
    if short in _PARTS:
        return core.call(Library(name), [read(part) for part in _PARTS[short]], {})
    kind = KINDS.get(short)
    if kind is None:
        return MISSING
    names = [*kind.parameters]
    if kind.exclusive:  # the other one is computed when it is asked for
        names = [next(n for n in names if n in vars(found))]
    given = {n: read(n) for n in names}
    core.heap[made].update(attributes_of(core, short, kind, given, given=True))
    return made
