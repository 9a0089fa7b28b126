"""The protocol of saving and loading."""

from hagane.nn.serializers.serializer import AbstractSerializer, Deserializer, Serializer

__all__ = ["AbstractSerializer", "Deserializer", "Serializer"]
