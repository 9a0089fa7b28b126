"""Saving and loading."""

from hagane.nn.serializers.npz import (
    DictionarySerializer,
    NpzDeserializer,
    load_npz,
    save_npz,
)

__all__ = ["DictionarySerializer", "NpzDeserializer", "load_npz", "save_npz"]
