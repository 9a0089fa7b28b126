"""The update rules of hagane's own optimizers, over the builder.

Each follows the rule of the same name in ``hagane.nn.optimizers``, which computes on arrays. All
hyperparameters that are numbers come in as scalars, so that they may change between steps; of a
setting, only its being zero or not decides the compiled form.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from hagane.nn.optimizers.adaptive import checked_eps, corrected_rate
from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import add, div, mul, sqrt, square, sub, where
from hagane.training.step.rules import Group, Rule, Scalars, States

_Found = tuple[Any, dict[str, Any]]
_Scalars = Callable[[Group, int, dict[str, float]], Mapping[str, float]]


def _numbers(*names: str) -> _Scalars:
    """Return the rule that takes these hyperparameters as they are."""
    return lambda group, t, _: {name: float(group[name]) for name in names}


def _like(value: float, x: Any) -> Any:
    return np.array(value, dtype_of(x).numpy())


def _sgd(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    return sub(p, mul(g, at["lr"])), {}


def _momentum(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    v = sub(mul(states["v"], at["momentum"]), mul(g, at["lr"]))
    return add(p, v), {"v": v}


def _corrected_momentum(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    v = sub(mul(states["v"], at["momentum"]), g)
    return add(p, mul(v, at["lr"])), {"v": v}


def _nesterov_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    lr, momentum = float(group["lr"]), float(group["momentum"])
    return {"lr": lr, "momentum": momentum, "square": momentum**2, "step": (1 + momentum) * lr}


def _nesterov(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    v = sub(mul(states["v"], at["momentum"]), mul(g, at["lr"]))
    return sub(add(p, mul(v, at["square"])), mul(g, at["step"])), {"v": v}


def _adagrad(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    h = add(states["h"], square(g))
    return sub(p, div(mul(g, at["lr"]), add(sqrt(h), at["eps"]))), {"h": h}


def _adadelta_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    rho = float(group["rho"])
    return {"rho": rho, "rest": 1 - rho, "eps": float(group["eps"])}


def _adadelta(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    of_gradients = add(mul(states["msg"], at["rho"]), mul(square(g), at["rest"]))
    ratio = div(add(states["msdx"], at["eps"]), add(of_gradients, at["eps"]))
    step = mul(sqrt(ratio), g)
    of_steps = add(mul(states["msdx"], at["rho"]), mul(square(step), at["rest"]))
    return sub(p, step), {"msg": of_gradients, "msdx": of_steps}


def _rmsprop_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    alpha = float(group["alpha"])
    eps = float(checked_eps("RMSprop", group["eps"], np.dtype(group["dtype"])))
    return {"lr": float(group["lr"]), "alpha": alpha, "rest": 1 - alpha, "eps": eps}


def _rmsprop(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    ms = add(mul(states["ms"], at["alpha"]), mul(square(g), at["rest"]))
    inside = group["eps_inside_sqrt"]
    root = sqrt(add(ms, at["eps"])) if inside else add(sqrt(ms), at["eps"])
    return sub(p, div(mul(g, at["lr"]), root)), {"ms": ms}


def _graves_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    found = {name: float(group[name]) for name in ("lr", "alpha", "momentum", "eps")}
    return {**found, "rest": 1 - found["alpha"]}


def _graves(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    n = add(mul(states["n"], at["alpha"]), mul(square(g), at["rest"]))
    mean = add(mul(states["g"], at["alpha"]), mul(g, at["rest"]))
    root = sqrt(add(sub(n, square(mean)), at["eps"]))
    delta = sub(mul(states["delta"], at["momentum"]), div(mul(g, at["lr"]), root))
    return add(p, delta), {"n": n, "g": mean, "delta": delta}


def _smorms3(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    one = _like(1, p)
    r = div(one, add(states["mem"], one))
    mean = add(mul(sub(one, r), states["g"]), mul(r, g))
    spread = add(mul(sub(one, r), states["g2"]), mul(r, square(g)))
    x = div(square(mean), add(spread, at["eps"]))
    step = div(mul(g, op("Min", x, at["lr"])), add(sqrt(spread), at["eps"]))
    mem = add(one, mul(states["mem"], sub(one, x)))
    return sub(p, step), {"mem": mem, "g": mean, "g2": spread}


def _adam_states(group: Group) -> list[str]:
    return ["m", "v", *(["vhat"] if group["amsgrad"] else [])]


def _adam_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    at = SimpleNamespace(**group)
    checked_eps("Adam", at.eps, np.promote_types(group["dtype"], np.float32))
    found = {
        "alpha_t": corrected_rate(at, t),
        "rest1": 1 - at.beta1,
        "rest2": 1 - at.beta2,
        "eps": float(at.eps),
        "eta": float(at.eta),
        "shrink": 1 - at.eta * at.weight_decay_rate,
    }
    if at.adabound:
        final = at.final_lr * at.alpha / at.initial_alpha
        found["lower"] = final * (1.0 - 1.0 / (at.gamma * t + 1))
        found["upper"] = final * (1.0 + 1.0 / (at.gamma * t))
    return found


def _adam(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    m = add(states["m"], mul(sub(g, states["m"]), at["rest1"]))
    v = add(states["v"], mul(sub(square(g), states["v"]), at["rest2"]))
    found = {"m": m, "v": v}
    largest = v
    if group["amsgrad"]:
        largest = found["vhat"] = op("Max", states["vhat"], v)
    step = div(at["alpha_t"], add(sqrt(largest), at["eps"]))
    if group["adabound"]:
        step = op("Min", op("Max", step, at["lower"]), at["upper"])
    kept = mul(p, at["shrink"]) if group["weight_decay_rate"] else p
    return sub(kept, mul(mul(step, m), at["eta"])), found


def _msvag_scalars(group: Group, t: int, _: dict[str, float]) -> dict[str, float]:
    beta, power = float(group["beta"]), float(group["beta_power"])
    rho = (1 - beta) ** 2 * (1 - power**2) / ((1 - power) ** 2 * (1 - beta**2))
    rho = min(rho, 0.9999)
    return {"rest": 1 - beta, "unbias": 1 - power, "rho": rho, "free": 1 - rho,
            "lr": float(group["lr"]), "eta": float(group["eta"]),
            "decay": float(group["weight_decay_rate"])}  # fmt: skip


def _msvag(p: Any, g: Any, states: States, at: Scalars, group: Group) -> _Found:
    m = add(states["m"], mul(sub(g, states["m"]), at["rest"]))
    v = add(states["v"], mul(sub(square(g), states["v"]), at["rest"]))
    mean, spread = div(m, at["unbias"]), div(v, at["unbias"])
    variance = div(sub(spread, square(mean)), at["free"])
    factor = div(square(mean), add(square(mean), mul(at["rho"], variance)))
    zero, one = _like(0, p), _like(1, p)
    bounded = op("Min", op("Max", factor, zero), one)
    factor = where(op("IsNaN", factor), zero, bounded)
    step = add(mul(at["lr"], mean, factor), mul(at["decay"], p))
    return sub(p, mul(at["eta"], step)), {"m": m, "v": v}


# By the name of the class in hagane.nn.optimizers.
LINK_RULES: Mapping[str, Rule] = {
    "SGDRule": Rule(lambda _: [], _numbers("lr"), _sgd, ()),
    "MomentumSGDRule": Rule(lambda _: ["v"], _numbers("lr", "momentum"), _momentum, ()),
    "CorrectedMomentumSGDRule": Rule(
        lambda _: ["v"], _numbers("lr", "momentum"), _corrected_momentum, ()
    ),
    "NesterovAGRule": Rule(lambda _: ["v"], _nesterov_scalars, _nesterov, ()),
    "AdaGradRule": Rule(lambda _: ["h"], _numbers("lr", "eps"), _adagrad, ()),
    "AdaDeltaRule": Rule(lambda _: ["msg", "msdx"], _adadelta_scalars, _adadelta, ()),
    "RMSpropRule": Rule(lambda _: ["ms"], _rmsprop_scalars, _rmsprop, ("eps_inside_sqrt",)),
    "RMSpropGravesRule": Rule(lambda _: ["n", "g", "delta"], _graves_scalars, _graves, ()),
    "SMORMS3Rule": Rule(lambda _: ["mem", "g", "g2"], _numbers("lr", "eps"), _smorms3, ()),
    "AdamRule": Rule(_adam_states, _adam_scalars, _adam, ("amsgrad", "adabound")),
    "MSVAGRule": Rule(lambda _: ["m", "v"], _msvag_scalars, _msvag, ()),
}


def link_rule_of(rule: Any) -> Rule | None:
    """Return the rule over the builder for one of a parameter; None if it has none here."""
    kinds: tuple[Any, ...] = type(rule).__mro__
    for kind in kinds:
        if kind.__name__ in LINK_RULES and kind.__module__.startswith("hagane.nn.optimizers"):
            same = all(
                inspect.getattr_static(type(rule), name) is inspect.getattr_static(kind, name)
                for name in ("step", "update", "update_core", "update_core_cpu", "init_state")
            )
            return LINK_RULES[kind.__name__] if same else None
    return None
