"""Functions that a trainer calls after updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.errors import InvalidArgument

PRIORITY_WRITER = 300
PRIORITY_EDITOR = 200
PRIORITY_READER = 100


class Extension:
    """Base of extensions: callables that take the trainer.

    Any callable can extend a trainer; this class gives the defaults.

    Attributes:
        trigger: When it is called, by default after each update.
        priority: Extensions of higher priority are called earlier: writers of observed values
            (``PRIORITY_WRITER``), editors, readers.
        name: The name under which the trainer has it.
        observes: Whether training is the same without its state, so that it may begin anew when a
            program goes on from a snapshot that has none.
    """

    trigger: Any = (1, "iteration")
    priority: int = PRIORITY_READER
    name: str | None = None
    observes: bool = False

    @property
    def default_name(self) -> str:
        """The name where none is given: that of the class."""
        return type(self).__name__

    def __call__(self, trainer: Any) -> Any:
        """Do it."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__(trainer)")

    def initialize(self, trainer: Any) -> None:
        """Called before the first update of a run, after a snapshot was loaded."""

    def on_error(self, trainer: Any, exc: Exception, tb: Any) -> None:
        """Called when an update or an extension raised, before ``finalize``."""

    def finalize(self) -> None:
        """Called at the end of a run."""

    def serialize(self, serializer: Any) -> None:
        """Read or write the state."""


def make_extension(
    trigger: Any = None,
    default_name: str | None = None,
    priority: int | None = None,
    finalizer: Callable[[], None] | None = None,
    initializer: Callable[[Any], None] | None = None,
    on_error: Callable[[Any, Exception, Any], None] | None = None,
    *,
    invoke_before_training: Any = None,
) -> Callable[[Any], Any]:
    """Return a decorator that gives a function the attributes of an extension.

    Args:
        trigger: When it is called, by default after each update.
        default_name: Its name, by default the function's.
        priority: By default that of readers.
        finalizer: Called at the end of a run.
        initializer: Called with the trainer before the first update.
        on_error: Called with trainer, error and traceback if the run fails.
        invoke_before_training: An option of old versions, refused.

    Raises:
        InvalidArgument: ``invoke_before_training`` is given.
    """
    if invoke_before_training is not None:
        raise InvalidArgument(
            "make_extension: invoke_before_training has been removed from Chainer: give an "
            "initializer, which is called before the first update"
        )

    def decorate(function: Any) -> Any:
        function.trigger = Extension.trigger if trigger is None else trigger
        function.default_name = default_name or function.__name__
        function.priority = Extension.priority if priority is None else priority
        function.finalize = finalizer
        function.on_error = on_error
        function.initialize = initializer
        return function

    return decorate
