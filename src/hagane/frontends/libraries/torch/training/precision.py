"""``torch.amp.GradScaler``, averaged models, and wrappers of modules."""

from __future__ import annotations

import contextlib

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.operands import INT64
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.stand_ins import identity
from hagane.frontends.python.values.values import (
    Host,
    Many,
    Real,
    Tensor,
    Value,
)

_MODULE = "torch.nn.Module"


@TORCH.layer("amp.GradScaler", "amp.grad_scaler.GradScaler")
class GradScaler:
    """Scales losses so that small gradients survive 16 bits."""

    @staticmethod
    def init(
        t: Core, device: Value = "cuda", init_scale: Value = 65536.0, growth_factor: Value = 2.0,
        backoff_factor: Value = 0.5, growth_interval: Value = 2000, enabled: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {"_enabled": enabled}

    @staticmethod
    def get_growth_factor(t: Core, self: View) -> Value:
        """Return a setting."""
        return Real()

    get_backoff_factor = get_growth_factor

    @staticmethod
    def get_growth_interval(t: Core, self: View) -> Value:
        """Return how many steps without an overflow let the scale grow."""
        return t.emit.fresh("interval")

    @staticmethod
    def set_growth_factor(t: Core, self: View, new_factor: Value) -> Value:
        """Change a setting."""
        return None

    set_backoff_factor = set_growth_factor

    @staticmethod
    def set_growth_interval(t: Core, self: View, new_interval: Value) -> Value:
        """Change a setting."""
        return None

    @staticmethod
    def scale(t: Core, self: View, outputs: Value) -> Value:
        """Return a loss, or several, scaled."""
        if isinstance(outputs, Tensor):
            return t.emit.typed("Mul", [outputs], outputs.dtype, outputs.shape)
        return outputs

    @staticmethod
    def unscale_(t: Core, self: View, optimizer: Value) -> Value:
        """Divide gradients by the scale."""
        return None

    @staticmethod
    def step(t: Core, self: View, optimizer: Value, *args: Value, **kwargs: Value) -> Value:
        """Step where all gradients are finite."""
        return t.call(t.attribute(optimizer, "step"), list(args), kwargs)

    @staticmethod
    def update(t: Core, self: View, new_scale: Value = None) -> Value:
        """Change the scale."""
        return None

    @staticmethod
    def load_state_dict(t: Core, self: View, state_dict: Value) -> Value:
        """Take the state over."""
        return None

    @staticmethod
    def get_scale(t: Core, self: View) -> Value:
        """Return the scale."""
        return Real()

    @staticmethod
    def is_enabled(t: Core, self: View) -> Value:
        """Return whether it scales."""
        return self._enabled

    @staticmethod
    def state_dict(t: Core, self: View) -> Value:
        """Return the state."""
        return {"scale": Real()}


@TORCH.layer("cuda.amp.GradScaler", base="torch.amp.GradScaler")
class CudaGradScaler:
    """The same, of graphics processors."""

    @staticmethod
    def init(
        t: Core, init_scale: Value = 65536.0, growth_factor: Value = 2.0,
        backoff_factor: Value = 0.5, growth_interval: Value = 2000, enabled: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return GradScaler.init(t, enabled=enabled)


class _Wrapper:
    """A module around another one."""

    @staticmethod
    def init(t: Core, module: Value, *_: Value, **__: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"training": True, "module": module}

    @staticmethod
    def forward(t: Core, self: View, *inputs: Value, **keywords: Value) -> Value:
        """Call the module inside."""
        return t.call(self.raw("module"), [t.wrap(x) for x in inputs], keywords)

    @staticmethod
    def no_sync(t: Core, self: View) -> Value:
        """Return a context in which gradients stay here."""
        return Host(contextlib.nullcontext())


@TORCH.layer("nn.parallel.DistributedDataParallel",
             "nn.parallel.distributed.DistributedDataParallel",
             "nn.DataParallel", "nn.parallel.DataParallel", base=_MODULE)  # fmt: skip
class Parallel(_Wrapper):
    """A module in several processes or on several devices."""

    init, forward, no_sync = _Wrapper.init, _Wrapper.forward, _Wrapper.no_sync


@TORCH.layer("optim.swa_utils.AveragedModel", base=_MODULE)
class AveragedModel(_Wrapper):
    """A copy of a module whose weights are averages."""

    forward = _Wrapper.forward

    @staticmethod
    def init(
        t: Core, model: Value, device: Value = None, avg_fn: Value = None,
        multi_avg_fn: Value = None, use_buffers: Value = False,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        count = t.emit.new(INT64, (), kind="torch.Tensor")
        return {"training": True, "module": t.copied(model, {}), "n_averaged": count}

    @staticmethod
    def update_parameters(t: Core, self: View, model: Value) -> Value:
        """Take weights into the average."""
        return None


@TORCH.function("optim.swa_utils.get_ema_multi_avg_fn", "optim.swa_utils.get_swa_multi_avg_fn",
                "optim.swa_utils.get_ema_avg_fn", "optim.swa_utils.get_swa_avg_fn")  # fmt: skip
def averaging(t: Core, decay: Value = 0.999) -> Value:
    """Return a function that averages."""
    return Host(identity)


@TORCH.function("optim.swa_utils.update_bn")
def update_bn(t: Core, loader: Value, model: Value, device: Value = None) -> Value:
    """Compute the statistics of batch normalisations anew."""
    items = t.sequence(t.wrap(loader))
    batch = items.element if isinstance(items, Many) else items[0] if items else None
    if batch is None:
        return None
    first = batch if isinstance(batch, Tensor) else t.item(batch, 0)
    t.call(model, [first], {})
    return None
