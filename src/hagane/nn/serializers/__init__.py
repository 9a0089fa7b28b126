"""Saving and loading."""

from hagane.nn.serializers.hdf5 import HDF5Deserializer, HDF5Serializer, load_hdf5, save_hdf5
from hagane.nn.serializers.npz import (
    DictionarySerializer,
    NpzDeserializer,
    load_npz,
    save_npz,
)
from hagane.nn.serializers.safetensors import load_safetensors, save_safetensors

__all__ = [
    "DictionarySerializer",
    "HDF5Deserializer",
    "HDF5Serializer",
    "NpzDeserializer",
    "load_hdf5",
    "load_npz",
    "load_safetensors",
    "save_hdf5",
    "save_npz",
    "save_safetensors",
]
