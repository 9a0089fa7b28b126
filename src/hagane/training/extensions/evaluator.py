"""How good a model is on data that it is not trained on."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from hagane.errors import InvalidArgument
from hagane.nn.autograd.configuration import no_backprop_mode, using_config
from hagane.nn.autograd.devices import get_device
from hagane.nn.conversion import call_converter, concat_examples
from hagane.nn.reporter import DictSummary, Reporter, report, report_scope
from hagane.training.expected import by_name, fail, need_callable
from hagane.training.extension import PRIORITY_WRITER, Extension
from hagane.training.extensions.terminal import Bar
from hagane.training.updaters.standard import call_with


class Evaluator(Extension):
    """Runs a model over an iterator and reports the means of the values that it reports.

    Args:
        iterator: An iterator that ends, or iterators by name, ``main`` among them.
        target: A link, or links by name, ``main`` among them.
        converter: Makes arrays from a batch and a device.
        device: The CPU, or None.
        eval_hook: Called with this object before each evaluation.
        eval_func: Called with the arrays, by default the target.
        progress_bar: Show how far it is.
    """

    trigger = (1, "epoch")
    default_name = "validation"
    priority = PRIORITY_WRITER

    def __init__(
        self,
        iterator: Any,
        target: Any,
        converter: Callable[..., Any] = concat_examples,
        device: Any = None,
        eval_hook: Callable[[Any], None] | None = None,
        eval_func: Callable[..., Any] | None = None,
        *,
        progress_bar: bool = False,
    ):
        expected = "an iterator such as SerialIterator(dataset, batch_size, repeat=False)"
        self._iterators = by_name("Evaluator: iterator", iterator, expected, "__iter__")
        for name, one in self._iterators.items():
            if hasattr(one, "__getitem__") and not hasattr(one, "__next__"):  # samples, no batches
                raise fail(f"Evaluator: iterator '{name}'", expected, one)
        self._targets = by_name("Evaluator: target", target, "a link", "namedlinks")
        need_callable("Evaluator: converter", converter)
        need_callable("Evaluator: eval_hook", eval_hook, optional=True)
        need_callable("Evaluator: eval_func", eval_func, optional=True)
        self.converter = converter
        self.device = None if device is None else get_device(device)
        self.eval_hook = eval_hook
        self.eval_func = eval_func
        self._progress_bar = progress_bar
        for name, one in self._iterators.items():
            if getattr(one, "repeat", False) is True:
                warnings.warn(
                    f"The `repeat` property of the iterator {name} is set to `True`: it does not "
                    "end, and neither would the evaluation. Make it with repeat=False",
                    stacklevel=2,
                )

    def get_iterator(self, name: str) -> Any:
        """Return an iterator."""
        return self._iterators[name]

    def get_all_iterators(self) -> dict[str, Any]:
        """Return the iterators by name."""
        return dict(self._iterators)

    def get_target(self, name: str) -> Any:
        """Return a link."""
        return self._targets[name]

    def get_all_targets(self) -> dict[str, Any]:
        """Return the links by name."""
        return dict(self._targets)

    def __call__(self, trainer: Any = None) -> dict[str, Any]:
        """Evaluate, report and return the means by name; also without a trainer."""
        reporter = Reporter()
        prefix = "" if self.name is None else f"{self.name}/"
        for name, target in self._targets.items():
            reporter.add_observer(prefix + name, target)
            reporter.add_observers(prefix + name, target.namedlinks(skipself=True))
        with reporter, using_config("train", False):
            result = self.evaluate()
        report(result)
        return result

    def evaluate(self) -> dict[str, Any]:
        """Return the means of the reported values over all batches, each batch counted once.

        Raises:
            InvalidArgument: The iterator does not end.
        """
        iterator = self._iterators["main"]
        function = self.eval_func or self._targets["main"]
        if self.eval_hook:
            self.eval_hook(self)
        if hasattr(iterator, "reset"):
            iterator.reset()
        else:
            warnings.warn(
                "This iterator does not have the reset method; it is copied instead.",
                DeprecationWarning,
                stacklevel=3,
            )
            iterator = copy.copy(iterator)
        summary = DictSummary()
        bar = Bar() if self._progress_bar else None
        again = False
        for batch in iterator:
            if again:
                raise InvalidArgument(
                    "Evaluator: the iterator 'main' begins a second epoch, and the evaluation "
                    "would have no end: make it with repeat=False"
                )
            again = bool(getattr(iterator, "repeat", False) and iterator.is_new_epoch)
            observation: dict[str, Any] = {}
            with report_scope(observation):
                arrays = call_converter(self.converter, batch, self.device)
                with no_backprop_mode():
                    call_with(function, arrays)
            summary.add(observation)
            if bar is not None:
                _show(bar, iterator)
        if bar is not None:
            bar.close()
        return summary.compute_mean()

    def finalize(self) -> None:
        """Finalize the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()


def _show(bar: Bar, iterator: Any) -> None:
    for attribute in ("current_position", "epoch_detail"):
        if not hasattr(iterator, attribute):
            raise InvalidArgument(
                f"Evaluator: progress_bar: {type(iterator).__name__} lacks '{attribute}'"
            )
    position, detail = iterator.current_position, iterator.epoch_detail
    iterations, epochs = bar.speed(position, detail)
    bar.show(
        [
            bar.draw("validation", min(detail, 1.0)),
            f"{position:10} samples\n",
            bar.remaining(1.0 - detail, epochs, iterations),
        ]
    )
