"""torchvision: transforms of images and data sets of them, over images of Pillow.

https://docs.pytorch.org/vision/stable/transforms.html
"""

from __future__ import annotations

from hagane.frontends.libraries.torchvision import datasets, functional, images, showing, transforms
from hagane.frontends.libraries.torchvision.table import PIL, TORCHVISION

# Importing a module enters its functions into the table.
PARTS = (datasets, functional, images, showing, transforms)

__all__ = ["PARTS", "PIL", "TORCHVISION"]
