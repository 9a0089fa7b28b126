"""``torch.optim``: optimizers, which step over parameters."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.recording import is_computed
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Host,
    ListRef,
    Many,
    Tensor,
    Unknown,
    Value,
)

OPTIMIZER = "torch.optim.Optimizer"
_SHARED = {"foreach": None, "maximize": False, "capturable": False, "differentiable": False}
_ADAM = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8}
# The settings of each optimizer in their order, with defaults.
SETTINGS: dict[str, dict[str, Value]] = {
    "Adadelta": {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0, **_SHARED},
    "Adafactor": {"lr": 1e-2, "beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0,
                  "weight_decay": 0.0, "foreach": None, "maximize": False},
    "Adagrad": {"lr": 1e-2, "lr_decay": 0.0, "weight_decay": 0.0, "initial_accumulator_value": 0.0,
                "eps": 1e-10, "foreach": None, "maximize": False, "differentiable": False,
                "fused": None},
    "Adam": {**_ADAM, "weight_decay": 0.0, "amsgrad": False, **_SHARED, "fused": None,
             "decoupled_weight_decay": False},
    "AdamW": {**_ADAM, "weight_decay": 1e-2, "amsgrad": False, **_SHARED, "fused": None},
    "Adamax": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0, **_SHARED},
    "ASGD": {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0.0, **_SHARED},
    "LBFGS": {"lr": 1.0, "max_iter": 20, "max_eval": None, "tolerance_grad": 1e-7,
              "tolerance_change": 1e-9, "history_size": 100, "line_search_fn": None},
    "Muon": {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True,
             "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7, "ns_steps": 5,
             "adjust_lr_fn": None},
    "NAdam": {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0,
              "momentum_decay": 4e-3, "decoupled_weight_decay": False, **_SHARED},
    "RAdam": {**_ADAM, "weight_decay": 0.0, "decoupled_weight_decay": False, **_SHARED},
    "RMSprop": {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0.0, "momentum": 0.0,
                "centered": False, **_SHARED},
    "Rprop": {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50), **_SHARED},
    "SGD": {"lr": 1e-3, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False,
            "maximize": False, "foreach": None, "differentiable": False, "fused": None},
    "SparseAdam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "maximize": False},
}  # fmt: skip


def groups_of(t: Core, params: Value, defaults: dict[str, Value]) -> list[Value]:
    """Return the groups of parameters that an optimizer is given."""
    if isinstance(params, Tensor):
        t.fail("type", "expected an iterable of parameters, got one tensor", params,
               remedy="put it in a list")  # fmt: skip
    found = _items(t, params)
    if isinstance(found, Many):
        return [{"params": [found.element], **defaults}]
    if not found:
        t.fail("value", "ValueError: the optimizer got an empty list of parameters")
    if all(_is_group(item) for item in found):
        return [_group(t, item, defaults) for item in found]
    return [{"params": [_parameter(t, item) for item in found], **defaults}]


def _items(t: Core, value: Value) -> list[Value] | Many:
    if isinstance(value, list | tuple):
        return list(value)
    return value if isinstance(value, Many) else t.sequence(t.wrap(value))


def _is_group(item: Value) -> bool:
    return isinstance(item, dict | DictRef)


def _group(t: Core, item: Value, defaults: dict[str, Value]) -> dict[str, Value]:
    content = dict(item if isinstance(item, dict) else t.heap[item])
    if "params" not in content:
        t.fail("key", f"KeyError: a group needs 'params', got {list(content)}")
    own = content.pop("params")
    items = [own] if isinstance(own, Tensor) else _items(t, own)
    listed = [items.element] if isinstance(items, Many) else items
    return {"params": [_parameter(t, one) for one in listed], **defaults, **content}


def _parameter(t: Core, item: Value) -> Value:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        item = item[1]  # of named_parameters()
    if not _may_be_parameter(item):
        t.fail("type", f"expected a tensor as parameter, got {t.show(t.wrap(item))}")
    if isinstance(item, Tensor) and is_computed(t, item):
        t.fail("gradient", f"ValueError: can't optimize {t.show(item)}, which is computed of "
               "others and no leaf", item,
               remedy="give the optimizer what it is computed of")  # fmt: skip
    return item


def _may_be_parameter(item: Value) -> bool:
    if isinstance(item, Choice):
        return _may_be_parameter(item.yes) or _may_be_parameter(item.no)
    return isinstance(item, Tensor | Unknown)


def _state(groups: list[Value], defaults: dict[str, Value]) -> dict[str, Value]:
    return {"param_groups": groups, "defaults": dict(defaults), "state": {}}


@TORCH.layer("optim.Optimizer", "optim.optimizer.Optimizer")
class Optimizer:
    """The base class."""

    @staticmethod
    def init(t: Core, params: Value, defaults: Value = None) -> dict[str, Value]:
        """Return the groups of parameters."""
        given = dict(defaults or {})
        # A class of the program's own fills it; what a library's keeps there is not known.
        state = t.new_dict({}, f"defaultdict:{t.heap.new(Host(dict))}")
        return {**_state(groups_of(t, params, given), given), "state": state}

    @staticmethod
    def step(t: Core, self: View, closure: Value = None, **_: Value) -> Value:
        """Step once; a closure computes the loss."""
        return None if closure is None else t.call(closure, [], {})

    @staticmethod
    def zero_grad(t: Core, self: View, set_to_none: Value = True) -> Value:
        """Forget gradients."""
        return None

    @staticmethod
    def add_param_group(t: Core, self: View, param_group: Value) -> Value:
        """Add a group."""
        held = self.raw("param_groups")
        assert isinstance(held, ListRef)
        made = t.wrap(_group(t, param_group, dict(self.defaults)))
        t.heap[held] = (*t.heap[held], made)
        return None

    @staticmethod
    def state_dict(t: Core, self: View) -> Value:
        """Return state and groups."""
        return {"state": {}, "param_groups": t.unwrap(self.raw("param_groups"))}

    @staticmethod
    def load_state_dict(t: Core, self: View, state_dict: Value) -> Value:
        """Take state and groups over."""
        return None

    @staticmethod
    def train(t: Core, self: View, *_: Value) -> Value:
        """Return None."""
        return None

    eval = register_step_post_hook = register_step_pre_hook = train


def _add(name: str, settings: dict[str, Value]) -> None:
    names = list(settings)

    def init(t: Core, params: Value, *arguments: Value, **keywords: Value) -> dict[str, Value]:
        given = {**dict(zip(names, arguments, strict=False)), **keywords}
        wrong = next((key for key in given if key not in settings), "")
        if wrong or len(arguments) > len(names):
            known = ", ".join(names)
            t.fail("call", f"unexpected argument '{wrong or len(arguments)}'; it has: {known}")
        defaults = {**settings, **given}
        if isinstance(defaults["lr"], int | float) and not defaults["lr"] >= 0:
            t.fail(
                "value", f"ValueError: expected a learning rate of 0 or more, got {defaults['lr']}"
            )
        return _state(groups_of(t, params, defaults), defaults)

    content: dict[str, Any] = dict(vars(Optimizer))
    members = {key: item for key, item in content.items() if not key.startswith("__")}
    TORCH.layer(f"optim.{name}", base=OPTIMIZER)(
        type(name, (), {**members, "init": staticmethod(init)})
    )


for _name, _settings in SETTINGS.items():
    _add(_name, _settings)


def is_optimizer(t: Core, value: Value) -> bool:
    """Whether a value is an optimizer, or may be one."""
    if isinstance(value, Unknown):
        return True
    return isinstance(value, Instance) and (
        OPTIMIZER in t.tables.libraries_of(t, value) or "param_groups" in t.heap[value]
    )
