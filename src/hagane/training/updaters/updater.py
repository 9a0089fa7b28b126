"""The interface of updaters."""

from __future__ import annotations

from typing import Any


class Updater:
    """Base of updaters: each call of ``update`` is one iteration of training."""

    def connect_trainer(self, trainer: Any) -> None:
        """Called by the trainer that takes this updater."""

    def finalize(self) -> None:
        """Called at the end of a run."""
        raise NotImplementedError(f"{type(self).__name__} does not define finalize")

    def get_optimizer(self, name: str) -> Any:
        """Return an optimizer."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_optimizer")

    def get_all_optimizers(self) -> dict[str, Any]:
        """Return the optimizers by name."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_all_optimizers")

    def update(self) -> None:
        """Read a batch and update the parameters."""
        raise NotImplementedError(f"{type(self).__name__} does not define update")

    def serialize(self, serializer: Any) -> None:
        """Read or write the state."""
        raise NotImplementedError(f"{type(self).__name__} does not define serialize")
