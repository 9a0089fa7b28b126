"""The tables of torchvision, whose transforms and data sets are known by name, and of Pillow."""

from __future__ import annotations

from hagane.frontends.libraries.table import Table

TORCHVISION = Table("torchvision", "torchvision.Tensor")
PIL = Table("PIL", "PIL.Tensor")

__all__ = ["PIL", "TORCHVISION"]
