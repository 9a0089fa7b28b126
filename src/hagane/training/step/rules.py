"""The update rules of PyTorch's optimizers, over the builder.

Each follows the algorithm in the documentation of its class in ``torch.optim``. Numbers that
change from step to step (learning rates, corrections of bias) are computed in Python in double
precision and come in as scalars; the others are part of the program.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.elementary import add, div, mul, neg, sqrt, square, sub, where

Group = Mapping[str, Any]  # the settings of an optimizer for some parameters
Scalars = Mapping[str, Any]  # numbers of one step
States = Mapping[str, Any]  # tensors of one parameter


@dataclass(frozen=True, slots=True)
class Rule:
    """How an optimizer changes a parameter.

    Attributes:
        states: The names of the tensors that it keeps for a parameter, which begin as zeros.
        scalars: The numbers of a step: of the settings, the count of steps from 1 on, and the
            numbers that it keeps.
        update: The new parameter and states, of the parameter, its gradient, the states, the
            scalars and the settings.
        fixed: The settings that are part of the program. Of momentum and decay, which schedules
            change as they do rates, only whether they are zero is part of it.
        counted: Whether the count of steps is kept under ``step``.
        kept: Numbers that are kept for a parameter, with their first values.
        refused: Settings that are not supported, with the reason.
        by_itself: Whether the optimizer's own ``step`` follows the gradients, and no rule does.
    """

    states: Callable[[Group], Sequence[str]]
    scalars: Callable[[Group, int, dict[str, float]], Mapping[str, float]]
    update: Callable[[Any, Any, States, Scalars, Group], tuple[Any, dict[str, Any]]]
    fixed: Sequence[str]
    counted: bool = True
    kept: Mapping[str, float] | None = None
    refused: Mapping[str, str] | None = None
    by_itself: bool = False


def _like(value: float, x: Any) -> Any:
    return np.array(value, dtype_of(x).numpy())


def _direction(p: Any, g: Any, at: Scalars, group: Group, *, decay: bool = True) -> Any:
    """Return the gradient that is followed, with the decay of weights."""
    if group.get("maximize"):
        g = neg(g)
    if decay and group.get("weight_decay"):
        g = add(g, mul(p, at["decay"]))
    return g


def _decay(group: Group) -> dict[str, float]:
    return {"decay": float(group["weight_decay"])}


def _share(name: str, value: float) -> dict[str, float]:
    """Return the numbers that ``_mixed`` takes."""
    return {name: value, f"{name}_rest": 1.0 - value}


def _betas(group: Group) -> dict[str, float]:
    first, second = (float(beta) for beta in group["betas"])
    return {**_share("first", first), **_share("second", second), **_decay(group)}


def _mixed(old: Any, new: Any, at: Scalars, name: str) -> Any:
    """Return a share of the old and the rest of the new."""
    return add(mul(old, at[name]), mul(new, at[f"{name}_rest"]))


# SGD


def _sgd_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    fresh = 1.0 if step == 1 else 1.0 - float(group["dampening"])
    momentum = float(group["momentum"])
    return {"lr": float(group["lr"]), "share": fresh, "momentum": momentum, **_decay(group)}


def _sgd(p: Any, g: Any, states: States, at: Scalars, group: Group) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group)
    if not group["momentum"]:
        return sub(p, mul(g, at["lr"])), {}
    moved = add(mul(states["momentum_buffer"], at["momentum"]), mul(g, at["share"]))
    g = add(g, mul(moved, at["momentum"])) if group["nesterov"] else moved
    return sub(p, mul(g, at["lr"])), {"momentum_buffer": moved}


# Adam and its relatives


def _decoupled(group: Group) -> bool:
    return bool(group.get("decoupled_weight_decay"))


def _shrunk(p: Any, at: Scalars, group: Group) -> Any:
    """Return a parameter after the decay that is apart from the gradient."""
    return mul(p, at["shrink"]) if _decoupled(group) and group["weight_decay"] else p


def _shrink(group: Group) -> float:
    return 1.0 - float(group["lr"]) * float(group["weight_decay"])


def _adam_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    first, second = (float(beta) for beta in group["betas"])
    return {
        "rate": float(group["lr"]) / (1 - first**step),
        "root": math.sqrt(1 - second**step),
        "shrink": _shrink(group),
        **_betas(group),
    }


def _adam(p: Any, g: Any, states: States, at: Scalars, group: Group) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group, decay=not _decoupled(group))
    p = _shrunk(p, at, group)
    mean = _mixed(states["exp_avg"], g, at, "first")
    spread = _mixed(states["exp_avg_sq"], square(g), at, "second")
    found = {"exp_avg": mean, "exp_avg_sq": spread}
    if group["amsgrad"]:
        spread = found["max_exp_avg_sq"] = op("Max", states["max_exp_avg_sq"], spread)
    scale = add(div(sqrt(spread), at["root"]), _like(float(group["eps"]), p))
    return sub(p, mul(div(mean, scale), at["rate"])), found


def _nadam_scalars(group: Group, step: int, kept: dict[str, float]) -> dict[str, float]:
    first, second = (float(beta) for beta in group["betas"])
    decay, rate = float(group["momentum_decay"]), float(group["lr"])
    now = first * (1 - 0.5 * 0.96 ** (step * decay))
    following = first * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
    # PyTorch multiplies in the type that it keeps: float32, or the parameter's once it was loaded.
    real = type(kept["mu_product"])
    kept["mu_product"] = real(kept["mu_product"] * real(now))
    product = float(kept["mu_product"])
    return {
        "of_gradient": rate * (1 - now) / (1 - product),
        "of_mean": rate * following / (1 - product * following),
        "correction": 1 - second**step,
        "shrink": _shrink(group),
        **_betas(group),
    }


def _nadam(p: Any, g: Any, states: States, at: Scalars, group: Group) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group, decay=not _decoupled(group))
    p = _shrunk(p, at, group)
    mean = _mixed(states["exp_avg"], g, at, "first")
    spread = _mixed(states["exp_avg_sq"], square(g), at, "second")
    scale = add(sqrt(div(spread, at["correction"])), _like(float(group["eps"]), p))
    p = sub(p, mul(div(g, scale), at["of_gradient"]))
    p = sub(p, mul(div(mean, scale), at["of_mean"]))
    return p, {"exp_avg": mean, "exp_avg_sq": spread}


def _radam_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    first, second = (float(beta) for beta in group["betas"])
    correction = 1 - second**step
    longest = 2 / (1 - second) - 1
    length = longest - 2 * step * second**step / correction
    rectified = 0.0
    if length > 5:
        rectified = math.sqrt(
            (length - 4) * (length - 2) * longest
            / ((longest - 4) * (longest - 2) * length) * correction
        )  # fmt: skip
    return {
        "rate": float(group["lr"]) / (1 - first**step),
        "rectified": rectified,
        "shrink": _shrink(group),
        **_betas(group),
    }


def _radam(p: Any, g: Any, states: States, at: Scalars, group: Group) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group, decay=not _decoupled(group))
    p = _shrunk(p, at, group)
    mean = _mixed(states["exp_avg"], g, at, "first")
    spread = _mixed(states["exp_avg_sq"], square(g), at, "second")
    adapted = div(at["rectified"], add(sqrt(spread), _like(float(group["eps"]), p)))
    scale = where(op("Greater", at["rectified"], _like(0, p)), adapted, _like(1, p))
    p = sub(p, mul(mean, scale, at["rate"]))
    return p, {"exp_avg": mean, "exp_avg_sq": spread}


def _adamax_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    rate = float(group["lr"]) / (1 - float(group["betas"][0]) ** step)
    return {"rate": rate, **_betas(group)}


def _adamax(
    p: Any, g: Any, states: States, at: Scalars, group: Group
) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group)
    mean = _mixed(states["exp_avg"], g, at, "first")
    largest = op(
        "Max",
        mul(states["exp_inf"], at["second"]),
        add(op("Abs", g), _like(float(group["eps"]), p)),
    )
    return sub(p, mul(div(mean, largest), at["rate"])), {"exp_avg": mean, "exp_inf": largest}


# Others that scale by the size of past gradients


def _rmsprop_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    numbers = {"lr": float(group["lr"]), "momentum": float(group["momentum"]), **_decay(group)}
    return {**numbers, **_share("alpha", float(group["alpha"]))}


def _rmsprop_states(group: Group) -> list[str]:
    more = ["momentum_buffer"] if group["momentum"] > 0 else []
    return ["square_avg", *more, *(["grad_avg"] if group["centered"] else [])]


def _rmsprop(
    p: Any, g: Any, states: States, at: Scalars, group: Group
) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group)
    spread = _mixed(states["square_avg"], square(g), at, "alpha")
    found = {"square_avg": spread}
    if group["centered"]:
        mean = found["grad_avg"] = _mixed(states["grad_avg"], g, at, "alpha")
        spread = sub(spread, square(mean))
    moved = div(g, add(sqrt(spread), _like(float(group["eps"]), p)))
    if group["momentum"] > 0:
        kept = mul(states["momentum_buffer"], at["momentum"])
        moved = found["momentum_buffer"] = add(kept, moved)
    return sub(p, mul(moved, at["lr"])), found


def _adagrad_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    rate = float(group["lr"]) / (1 + (step - 1) * float(group["lr_decay"]))
    return {"lr": rate, **_decay(group)}


def _adagrad(
    p: Any, g: Any, states: States, at: Scalars, group: Group
) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group)
    total = add(states["sum"], square(g))
    scale = add(sqrt(total), _like(float(group["eps"]), p))
    return sub(p, mul(div(g, scale), at["lr"])), {"sum": total}


def _adadelta_scalars(group: Group, step: int, _: dict[str, float]) -> dict[str, float]:
    return {"lr": float(group["lr"]), **_share("rho", float(group["rho"])), **_decay(group)}


def _adadelta(
    p: Any, g: Any, states: States, at: Scalars, group: Group
) -> tuple[Any, dict[str, Any]]:
    g = _direction(p, g, at, group)
    tiny = _like(float(group["eps"]), p)
    spread = _mixed(states["square_avg"], square(g), at, "rho")
    moved = mul(div(sqrt(add(states["acc_delta"], tiny)), sqrt(add(spread, tiny))), g)
    total = _mixed(states["acc_delta"], square(moved), at, "rho")
    return sub(p, mul(moved, at["lr"])), {"square_avg": spread, "acc_delta": total}


_ADAM = ("eps", "maximize", "decoupled_weight_decay")
_MOMENTS = ("exp_avg", "exp_avg_sq")

# By the name of the class in torch.optim.
RULES: Mapping[str, Rule] = {
    "SGD": Rule(
        lambda group: ["momentum_buffer"] if group["momentum"] else [],
        _sgd_scalars, _sgd, ("nesterov", "maximize"), counted=False,
    ),
    "Adam": Rule(
        lambda group: [*_MOMENTS, *(["max_exp_avg_sq"] if group["amsgrad"] else [])],
        _adam_scalars, _adam, (*_ADAM, "amsgrad"),
    ),
    "NAdam": Rule(
        lambda group: _MOMENTS, _nadam_scalars, _nadam, _ADAM, kept={"mu_product": 1.0}
    ),
    "RAdam": Rule(lambda group: _MOMENTS, _radam_scalars, _radam, _ADAM),
    "Adamax": Rule(
        lambda group: ["exp_avg", "exp_inf"], _adamax_scalars, _adamax,
        ("eps", "maximize"),
    ),
    "RMSprop": Rule(
        _rmsprop_states, _rmsprop_scalars, _rmsprop, ("eps", "centered", "maximize"),
    ),
    "Adagrad": Rule(
        lambda group: ["sum"], _adagrad_scalars, _adagrad, ("eps", "maximize")
    ),
    "Adadelta": Rule(
        lambda group: ["square_avg", "acc_delta"], _adadelta_scalars, _adadelta,
        ("eps", "maximize"),
    ),
}  # fmt: skip


def _no_update(*_: Any) -> tuple[Any, dict[str, Any]]:
    raise AssertionError("the optimizer's own step follows the gradients")


# Any other optimizer, one's own included, and those with hooks.
BY_ITSELF = Rule(lambda group: (), lambda *_: {}, _no_update, (), counted=False, by_itself=True)


def _plain_step(step: Any) -> tuple[Any, bool]:
    """Return the function of an optimizer's ``step`` without the wrappers that PyTorch puts on it.

    It wraps the method of a class that is made first, and that of an optimizer with a schedule. The
    wrapper of anyone else does what only a call of it does. Second, whether the function's first
    argument is the optimizer.
    """
    found, bound = getattr(step, "__func__", step), hasattr(step, "__func__")
    while hasattr(found, "__wrapped__"):
        place = getattr(found, "__globals__", {}).get("__name__", "")
        if place.partition(".")[0] != "torch":
            break
        bound = bound or place.startswith("torch.optim.")  # a schedule binds what it wraps itself
        found = getattr(found.__wrapped__, "__func__", found.__wrapped__)
    return found, bound


def rule_of(optimizer: Any) -> Rule:
    """Return the rule of an optimizer of PyTorch.

    Raises:
        InvalidArgument: It is none, or its step calls the loss itself.
    """
    kinds: tuple[Any, ...] = type(optimizer).__mro__
    named = f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"
    if not any(f"{k.__module__}.{k.__name__}" == "torch.optim.optimizer.Optimizer" for k in kinds):
        got = f"the class {optimizer.__qualname__}" if isinstance(optimizer, type) else f"a {named}"
        raise InvalidArgument(
            f"compile: expected an optimizer of torch.optim, got {got}: make one, as in "
            "torch.optim.SGD(module.parameters(), lr=0.1)"
        )
    own, bound = _plain_step(optimizer.step)
    taken = [*inspect.signature(own).parameters.values()][bound:]
    needed = [p for p in taken if p.default is p.empty and p.name != "self"]  # behind wrappers
    if any(p.kind is p.POSITIONAL_OR_KEYWORD for p in needed):
        raise InvalidArgument(
            f"compile: {named}.step takes a function that computes the loss, as often as it likes; "
            "a compiled step computes it once: use another optimizer, or train without compiling"
        )
    if any(kind.__name__ == "SparseAdam" for kind in kinds):
        raise InvalidArgument(
            f"compile: {named} takes sparse gradients, and those of a compiled step are dense: use "
            "torch.optim.Adam, or train without compiling"
        )
    for kind in kinds:
        if kind.__module__.startswith("torch.optim"):
            name = "Adam" if kind.__name__ == "AdamW" else kind.__name__
            same = own is _plain_step(kind.step)[0]
            return RULES.get(name, BY_ITSELF) if same else BY_ITSELF
    return BY_ITSELF
