"""The base classes of links."""

from hagane.nn.model.chain import Chain, ChainList
from hagane.nn.model.link import DeviceResident, Link

__all__ = ["Chain", "ChainList", "DeviceResident", "Link"]
