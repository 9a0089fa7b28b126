"""Hyperparameters, inherited by the rules of single parameters from their optimizer."""

from __future__ import annotations

from typing import Any

from hagane.errors import InvalidArgument


class Hyperparameter:
    """Named values; those not set here are taken from the parent."""

    def __init__(self, parent: Hyperparameter | None = None):
        self._parent = parent

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            raise InvalidArgument(f"hyperparameter '{name}': expected a number, got {value!r}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if "_parent" not in self.__dict__:
            raise AttributeError("_parent is not set up yet")
        if self._parent is None:
            raise AttributeError(f"there is no hyperparameter '{name}'")
        return getattr(self._parent, name)

    def __repr__(self) -> str:
        values = ", ".join(f"{key}={item}" for key, item in sorted(self.get_dict().items()))
        return f"Hyperparameter({values})"

    @property
    def parent(self) -> Hyperparameter | None:
        """Where values that are not set here come from."""
        return self._parent

    def get_dict(self) -> dict[str, Any]:
        """Return all values, the inherited ones included."""
        found = {} if self._parent is None else self._parent.get_dict()
        found.update({key: item for key, item in self.__dict__.items() if key != "_parent"})
        return found


class HyperparameterProxy:
    """An attribute of an optimizer that is one of its hyperparameters."""

    def __init__(self, attr_name: str):
        self._name = attr_name
        self.__doc__ = f"Alias to ``self.hyperparam.{attr_name}``"

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else getattr(owner.hyperparam, self._name)

    def __set__(self, owner: Any, value: Any) -> None:
        setattr(owner.hyperparam, self._name, value)
