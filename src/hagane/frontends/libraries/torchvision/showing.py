"""``torchvision.utils`` and ``torchvision.io``: grids of images, files."""

from __future__ import annotations

from hagane.frontends.libraries.torchvision.functional import made
from hagane.frontends.libraries.torchvision.images import UINT8
from hagane.frontends.libraries.torchvision.table import TORCHVISION
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Unknown,
    Value,
)
from hagane.symbolic import Dim, ceildiv, minimum


@TORCHVISION.function("utils.make_grid")
def make_grid(
    t: Core, tensor: Value, nrow: Value = 8, padding: Value = 2, *_: Value, **__: Value
) -> Value:
    """Return images of one size in a grid, as one image."""
    if isinstance(tensor, Unknown):
        return tensor
    if not isinstance(tensor, Tensor):
        found = tensor if isinstance(tensor, Many) else t.sequence(t.wrap(tensor))
        count: Dim = found.length if isinstance(found, Many) else len(found)
        first = found.element if isinstance(found, Many) else found[0]
        if not isinstance(first, Tensor) or first.shape is None:
            t.fail(OPEN, "a grid of images of unknown sizes")
        shape = (count, *first.shape)
    else:
        first = tensor
        if tensor.shape is None:
            t.fail(OPEN, "a grid of images of unknown sizes")
        shape = tensor.shape
    if len(shape) not in (2, 3, 4):
        t.fail("rank", f"make_grid: expected images of 2 to 4 axes, got {t.show(first)}", first)
    if len(shape) == 2:
        shape = (1, *shape)
    if len(shape) == 3:
        shape = (1, *shape)
    count, channels, height, width = shape
    channels = 3 if channels == 1 else channels
    if count == 1:
        return made(t, first, (channels, height, width))
    columns = minimum(nrow, count)
    rows = ceildiv(count, columns)
    size = (rows * (height + padding) + padding, columns * (width + padding) + padding)
    return made(t, first, (channels, *size))


@TORCHVISION.function("utils.save_image", "io.write_png", "io.write_jpeg")
def save_image(t: Core, tensor: Value, *_: Value, **settings: Value) -> Value:
    """Return nothing."""
    return None


@TORCHVISION.function("io.read_image", "io.decode_image")
def read_image(t: Core, path: Value, mode: Value = "UNCHANGED", *_: Value, **__: Value) -> Value:
    """Return the bytes of the image in a file: channels, rows, columns."""
    bands: Dim = {"GRAY": 1, "RGB": 3, "RGB_ALPHA": 4, "GRAY_ALPHA": 2}.get(
        mode, t.emit.fresh("bands")
    )
    shape = (bands, t.emit.fresh("height"), t.emit.fresh("width"))
    return t.emit.new(UINT8, shape, kind="torch.Tensor")


for _name in ("UNCHANGED", "GRAY", "GRAY_ALPHA", "RGB", "RGB_ALPHA"):
    for _place in ("io", "io.image"):
        TORCHVISION.constants[f"torchvision.{_place}.ImageReadMode.{_name}"] = _name


__all__ = ["make_grid"]
