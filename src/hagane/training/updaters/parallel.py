"""The updater of several copies of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from hagane.errors import InvalidArgument
from hagane.nn.autograd.configuration import force_backprop_mode
from hagane.nn.autograd.devices import get_device
from hagane.nn.conversion import call_converter, concat_examples
from hagane.training.errors import NotProvided
from hagane.training.expected import fail
from hagane.training.updaters.standard import StandardUpdater, call_with


class ParallelUpdater(StandardUpdater):
    """Splits each batch among copies of a model, and updates all by the sum of their gradients.

    On one CPU the copies run one after the other.

    Args:
        iterator: As for ``StandardUpdater``.
        optimizer: As for ``StandardUpdater``.
        converter: Makes arrays from a part of a batch and a device.
        models: Models by name, the main optimizer's target among them; by default copies of it,
            one for each device.
        devices: Devices by the same names, ``main`` among them.
        loss_func: Called with the arrays; by default each model.
        loss_scale: The factor of losses.
        auto_new_epoch: As for ``StandardUpdater``.

    Raises:
        InvalidArgument: Neither models nor devices are given.
        KeyError: No device is named ``main``.
    """

    def __init__(
        self,
        iterator: Any,
        optimizer: Any,
        converter: Callable[..., Any] = concat_examples,
        models: Mapping[str, Any] | None = None,
        devices: Mapping[str, Any] | None = None,
        loss_func: Callable[..., Any] | None = None,
        loss_scale: float | None = None,
        auto_new_epoch: bool = True,
    ):
        super().__init__(
            iterator,
            optimizer,
            converter,
            loss_func=loss_func,
            loss_scale=loss_scale,
            auto_new_epoch=auto_new_epoch,
        )
        if "main" not in self._optimizers:
            raise fail("ParallelUpdater: optimizer", "one named 'main'", sorted(self._optimizers))
        target = self._optimizers["main"].target
        for told, given in (("models", models), ("devices", devices)):
            if not isinstance(given, Mapping | None):
                raise fail(f"ParallelUpdater: {told}", f"{told} by name", given)
        if models is None:
            if devices is None:
                raise InvalidArgument("ParallelUpdater: either models or devices must be specified")
            if "main" not in devices:
                raise KeyError("'devices' must contain a 'main' key.")
            others = [name for name in devices if name != "main"]
            models = {"main": target, **{name: copy.deepcopy(target) for name in others}}
        self._models = dict(models)
        self._devices = {name: get_device(one) for name, one in (devices or {}).items()}

    def connect_trainer(self, trainer: Any) -> None:
        """Let the copies report under their names."""
        for name, model in self._others().items():
            trainer.reporter.add_observer(name, model)

    def _others(self) -> dict[str, Any]:
        main = self._optimizers["main"].target
        return {name: model for name, model in self._models.items() if model is not main}

    def update_core(self) -> None:
        """Do one iteration."""
        optimizer, iterator = self._optimizers["main"], self._iterators["main"]
        main, others = optimizer.target, self._others()
        batch = iterator.next()
        n = len(self._models)
        losses = []
        for first, (name, model) in enumerate(self._models.items()):
            model.cleargrads()
            if not len(batch[first::n]):
                continue
            arrays = call_converter(self.converter, batch[first::n], self._devices.get(name))
            with force_backprop_mode():
                losses.append(call_with(self.loss_func or model, arrays))
        for model in self._models.values():
            model.cleargrads()
        for loss in losses:
            loss.backward(loss_scale=self.loss_scale)
        for model in others.values():
            main.addgrads(model)
        optimizer.update()
        for model in others.values():
            model.copyparams(main)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)


class MultiprocessParallelUpdater(StandardUpdater):
    """Chainer's updater of several GPUs, which there are not."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotProvided(
            "MultiprocessParallelUpdater needs GPUs and NCCL, which hagane does not use; "
            "ParallelUpdater splits batches on the CPU"
        )

    @staticmethod
    def available() -> bool:
        """Return False."""
        return False
