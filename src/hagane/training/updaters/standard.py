"""The updater of one iterator and one optimizer."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from hagane.errors import InvalidArgument
from hagane.nn.autograd.devices import get_device
from hagane.nn.conversion import call_converter, concat_examples
from hagane.training.expected import need, need_callable
from hagane.training.updaters.updater import Updater


def call_with(function: Callable[..., Any], batch: Any) -> Any:
    """Call a function with a converted batch: a tuple or dict gives its arguments."""
    if isinstance(batch, tuple):
        return function(*batch)
    if isinstance(batch, dict):
        return function(**batch)
    return function(batch)


class StandardUpdater(Updater):
    """Updates the target of the main optimizer from batches of the main iterator.

    Args:
        iterator: An iterator, or iterators by name, ``main`` among them.
        optimizer: An optimizer, or optimizers by name, ``main`` among them.
        converter: Makes arrays from a batch and a device.
        device: The CPU, or None.
        loss_func: Called with the arrays; returns the loss. By default the optimizer's target. A
            compiled step of a link, ``hagane.compile(model, optimizer)``, updates by itself.
        loss_scale: The factor of the loss; see ``Optimizer.set_loss_scale``.
        auto_new_epoch: Call the optimizer's ``new_epoch`` at the end of each epoch.
        input_device: The device of the arrays, by default ``device``.

    Attributes:
        iteration: The number of updates.

    Raises:
        InvalidArgument: There is no iterator or optimizer ``main``, or an optimizer has no target.
    """

    def __init__(
        self,
        iterator: Any,
        optimizer: Any,
        converter: Callable[..., Any] = concat_examples,
        device: Any = None,
        loss_func: Callable[..., Any] | None = None,
        loss_scale: float | None = None,
        auto_new_epoch: bool = True,
        *,
        input_device: Any = None,
    ):
        need_callable("StandardUpdater: converter", converter)
        need_callable("StandardUpdater: loss_func", loss_func, optional=True)
        self._device = None if device is None else get_device(device)
        self._input_device = self._device if input_device is None else get_device(input_device)
        self._iterators = _named("iterator", iterator)
        # An update of the program's own asks for optimizers by names of its own.
        own = type(self).update_core is not StandardUpdater.update_core
        self._optimizers = _named("optimizer", optimizer, whole=not own)
        for name, one in self._optimizers.items():
            need(f"StandardUpdater: optimizer '{name}'", one, _OPTIMIZER, "target", "update")
        self.converter = converter
        self.loss_func = loss_func
        self.loss_scale = loss_scale
        self.auto_new_epoch = auto_new_epoch
        self.iteration = 0
        self.seconds_waited = 0.0  # for batches
        for name, one in self._optimizers.items():
            if one.target is None:
                raise InvalidArgument(
                    f"StandardUpdater: optimizer '{name}', {type(one).__name__}, has no target: "
                    "call setup(model) first"
                )
            if next(iter(one.target.params()), None) is None:
                warnings.warn(
                    f"StandardUpdater: the target of optimizer '{name}', a "
                    f"{type(one.target).__name__}, has no parameters, and nothing is trained: "
                    "links and parameters of a Chain are those set within init_scope()",
                    stacklevel=2,
                )
            if self._device is not None:
                one.target.to_device(self._device)
            if loss_scale is not None:
                one.set_loss_scale(loss_scale)
            if auto_new_epoch:
                one.use_auto_new_epoch = True
        for name, one in () if own else self._iterators.items():
            need(f"StandardUpdater: iterator '{name}'", one, _ITERATOR, "next")

    @property
    def device(self) -> Any:
        """The device of the model; None where it was not given."""
        return self._device

    @property
    def input_device(self) -> Any:
        """The device of the arrays; None where it was not given."""
        return self._input_device

    @property
    def epoch(self) -> int:
        """Epochs of the main iterator that are completed."""
        return int(self._iterators["main"].epoch)

    @property
    def epoch_detail(self) -> float:
        """Epochs of the main iterator, with the fraction of the current one."""
        return float(self._iterators["main"].epoch_detail)

    @property
    def previous_epoch_detail(self) -> float | None:
        """The value of ``epoch_detail`` before the last batch."""
        found: float | None = self._iterators["main"].previous_epoch_detail
        return found

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last batch completed an epoch."""
        return bool(self._iterators["main"].is_new_epoch)

    def finalize(self) -> None:
        """Finalize the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()

    def get_optimizer(self, name: str) -> Any:
        """Return an optimizer."""
        return self._optimizers[name]

    def get_all_optimizers(self) -> dict[str, Any]:
        """Return the optimizers by name."""
        return dict(self._optimizers)

    def get_iterator(self, name: str) -> Any:
        """Return an iterator."""
        return self._iterators[name]

    def update(self) -> None:
        """Read a batch and update the parameters."""
        self.update_core()
        self.iteration += 1

    def update_core(self) -> None:
        """Do one iteration; the method for subclasses to override."""
        iterator = self._iterators["main"]
        began = time.perf_counter()
        batch = call_converter(self.converter, iterator.next(), self._input_device)
        self.seconds_waited += time.perf_counter() - began
        optimizer = self._optimizers["main"]
        loss = self.loss_func or optimizer.target
        if getattr(loss, "updates", False):  # a compiled step
            call_with(loss, batch)
        else:
            call_with(lambda *args, **kwds: optimizer.update(loss, *args, **kwds), batch)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def serialize(self, serializer: Any) -> None:
        """Read or write iterators, optimizers, their targets and the number of updates."""
        for name, iterator in self._iterators.items():
            iterator.serialize(serializer[f"iterator:{name}"])
        for name, optimizer in self._optimizers.items():
            optimizer.serialize(serializer[f"optimizer:{name}"])
            optimizer.target.serialize(serializer[f"model:{name}"])
        self.iteration = serializer("iteration", self.iteration)


_OPTIMIZER = "an optimizer such as hagane.optimizers.SGD().setup(model)"
_ITERATOR = "an iterator such as SerialIterator(dataset, batch_size)"


def _named(kind: str, given: Any, whole: bool = True) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"main": given}
    if whole and "main" not in given:
        raise InvalidArgument(f"{kind}: expected one named 'main', got {sorted(given)}")
    return dict(given)
