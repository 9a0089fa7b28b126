"""The protocol by which links and optimizers are saved and loaded."""

from __future__ import annotations

from typing import Any


class AbstractSerializer:
    """Reads or writes named values; ``serializer[key]`` is that of a part."""

    def __getitem__(self, key: str) -> Any:
        """Return the serializer of a part."""
        raise NotImplementedError

    def __call__(self, key: str, value: Any) -> Any:
        """Write a value and return it, or return the value that was read."""
        raise NotImplementedError


class Serializer(AbstractSerializer):
    """A serializer that writes."""

    def save(self, obj: Any) -> None:
        """Write an object, or values by path."""
        if not isinstance(obj, dict):
            obj.serialize(self)
            return
        for key, value in obj.items():
            self(key, value)


class Deserializer(AbstractSerializer):
    """A serializer that reads."""

    def load(self, obj: Any) -> None:
        """Read an object's values into it."""
        obj.serialize(self)
