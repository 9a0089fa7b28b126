"""``torch.optim.lr_scheduler``: learning rates that change from step to step."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.libraries.torch.training.optimizers import is_optimizer
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    DictRef,
    ListRef,
    Real,
    Value,
)

_BASE = "torch.optim.lr_scheduler.LRScheduler"
# The settings of each schedule after its optimizer, with defaults; ``...`` has to be given.
_CYCLE = {"pct_start": 0.3, "anneal_strategy": "cos", "cycle_momentum": True,
          "base_momentum": 0.85, "max_momentum": 0.95, "div_factor": 25.0,
          "final_div_factor": 1e4, "three_phase": False, "last_epoch": -1}  # fmt: skip
SETTINGS: dict[str, dict[str, Value]] = {
    "LambdaLR": {"lr_lambda": ..., "last_epoch": -1},
    "MultiplicativeLR": {"lr_lambda": ..., "last_epoch": -1},
    "StepLR": {"step_size": ..., "gamma": 0.1, "last_epoch": -1},
    "MultiStepLR": {"milestones": ..., "gamma": 0.1, "last_epoch": -1},
    "ConstantLR": {"factor": 1 / 3, "total_iters": 5, "last_epoch": -1},
    "LinearLR": {"start_factor": 1 / 3, "end_factor": 1.0, "total_iters": 5, "last_epoch": -1},
    "ExponentialLR": {"gamma": ..., "last_epoch": -1},
    "PolynomialLR": {"total_iters": 5, "power": 1.0, "last_epoch": -1},
    "CosineAnnealingLR": {"T_max": ..., "eta_min": 0.0, "last_epoch": -1},
    "CosineAnnealingWarmRestarts": {"T_0": ..., "T_mult": 1, "eta_min": 0.0, "last_epoch": -1},
    "CyclicLR": {"base_lr": ..., "max_lr": ..., "step_size_up": 2000, "step_size_down": None,
                 "mode": "triangular", "gamma": 1.0, "scale_fn": None, "scale_mode": "cycle",
                 "cycle_momentum": True, "base_momentum": 0.8, "max_momentum": 0.9,
                 "last_epoch": -1},
    "OneCycleLR": {"max_lr": ..., "total_steps": None, "epochs": None, "steps_per_epoch": None,
                   **_CYCLE},
    "ReduceLROnPlateau": {"mode": "min", "factor": 0.1, "patience": 10, "threshold": 1e-4,
                          "threshold_mode": "rel", "cooldown": 0, "min_lr": 0, "eps": 1e-8},
    "SequentialLR": {"schedulers": ..., "milestones": ..., "last_epoch": -1},
    "ChainedScheduler": {"optimizer": None},  # after its schedules
}  # fmt: skip


def _groups(t: Core, optimizer: Value) -> list[Value]:
    held = t.heap[optimizer].get("param_groups") if isinstance(optimizer, Instance) else None
    found = t.heap[held] if isinstance(held, ListRef) else ()
    return list(found) if isinstance(found, tuple) else []


def _state(t: Core, optimizer: Value) -> dict[str, Value]:
    rates: list[Value] = []
    for group in _groups(t, optimizer):
        if isinstance(group, DictRef):
            t.heap[group]["initial_lr"] = t.heap[group].get("lr", Real())
            rates.append(t.heap[group].get("lr", Real()))
    return {"optimizer": optimizer, "base_lrs": rates, "last_epoch": t.emit.fresh("epoch")}


@TORCH.layer("optim.lr_scheduler.LRScheduler", "optim.lr_scheduler._LRScheduler")
class Schedule:
    """The base class."""

    @staticmethod
    def init(t: Core, optimizer: Value, last_epoch: Value = -1) -> dict[str, Value]:
        """Return the attributes."""
        if not is_optimizer(t, optimizer):
            t.fail("type", f"expected an optimizer, got {t.show(t.wrap(optimizer))}")
        return _state(t, optimizer)

    @staticmethod
    def step(t: Core, self: View, epoch: Value = None, *_: Value) -> Value:
        """Change the rates."""
        for group in _groups(t, self.raw("optimizer")):
            if isinstance(group, DictRef):
                t.heap[group]["lr"] = Real()
        return None

    @staticmethod
    def get_last_lr(t: Core, self: View) -> Value:
        """Return the rate of each group."""
        return [Real() for _ in _groups(t, self.raw("optimizer"))]

    get_lr = get_last_lr

    @staticmethod
    def state_dict(t: Core, self: View) -> Value:
        """Return the state."""
        return {"last_epoch": t.emit.fresh("epoch")}

    @staticmethod
    def load_state_dict(t: Core, self: View, state_dict: Value) -> Value:
        """Take the state over."""
        return None

    print_lr = load_state_dict


def _add(name: str, settings: dict[str, Value]) -> None:
    names = list(settings)

    first = "schedulers" if name == "ChainedScheduler" else "optimizer"

    def init(t: Core, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        if not arguments and first not in keywords:
            t.fail("call", f"missing the argument '{first}'")
        optimizer, *others = arguments or (keywords.pop(first),)
        given = {**dict(zip(names, others, strict=False)), **keywords}
        wrong = next((key for key in given if key not in settings), "")
        if wrong or len(others) > len(names):
            t.fail(
                "call",
                f"unexpected argument '{wrong or len(others)}'; it has: {', '.join(names)}",
            )
        missing = next((k for k, v in settings.items() if v is ... and k not in given), "")
        if missing:
            t.fail("call", f"missing the argument '{missing}'")
        if name == "ChainedScheduler":
            inner = optimizer[0] if isinstance(optimizer, list | tuple) and optimizer else None
            optimizer = t.heap[inner]["optimizer"] if isinstance(inner, Instance) else inner
        made = Schedule.init(t, optimizer)
        for rule in _rules(t, given.get("lr_lambda")):
            t.call(rule, [t.emit.fresh("epoch")], {})
        if (
            name == "OneCycleLR"
            and given.get("total_steps") is None
            and (given.get("epochs") is None or given.get("steps_per_epoch") is None)
        ):
            t.fail("value", "ValueError: expected total_steps, or epochs and steps_per_epoch")
        return {**{k: v for k, v in settings.items() if v is not ...}, **given, **made}

    content: dict[str, Any] = {k: v for k, v in vars(Schedule).items() if not k.startswith("__")}
    if name == "ReduceLROnPlateau":
        content["step"] = staticmethod(_step_on)
    TORCH.layer(f"optim.lr_scheduler.{name}", base=_BASE)(
        type(name, (), {**content, "init": staticmethod(init)})
    )


def _rules(t: Core, value: Value) -> list[Value]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _step_on(t: Core, self: View, metrics: Value, epoch: Value = None) -> Value:
    """Change the rates if a measurement stagnates."""
    return Schedule.step(t, self)


for _name, _settings in SETTINGS.items():
    _add(_name, _settings)
_add("SWALR", {"swa_lr": ..., "anneal_epochs": 10, "anneal_strategy": "cos", "last_epoch": -1})
TORCH.layers["torch.optim.swa_utils.SWALR"] = TORCH.layers.pop("torch.optim.lr_scheduler.SWALR")
TORCH.bases["torch.optim.swa_utils.SWALR"] = TORCH.bases.pop("torch.optim.lr_scheduler.SWALR")
