"""Images of Pillow: their sizes and bands."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torchvision.table import PIL
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Library,
    Tensor,
    Value,
    is_size,
)
from hagane.symbolic import Dim

CLASS = "PIL.Image.Image"
UINT8 = ir.DataType.UINT8
_BANDS = {"1": 1, "L": 1, "P": 1, "I": 1, "F": 1, "LA": 2, "RGB": 3, "YCbCr": 3, "LAB": 3,
          "HSV": 3, "RGBA": 4, "CMYK": 4}  # fmt: skip
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_TURNED = (2, 4, 5, 6)  # transpositions that swap height and width


def image(t: Core, height: Dim, width: Dim, bands: Dim, mode: Value = None) -> Instance:
    """Return an image of a height, a width and a number of bands."""
    if mode is None:
        known = _MODES.get(bands) if isinstance(bands, int) else None
        mode = known or t.outside("the mode of an image")
    content = {"height": height, "width": width, "mode": mode, "<bands>": bands}
    return Instance(t.heap.new(content), Library(CLASS))


def open_image(t: Core, bands: Dim | None = None) -> Instance:
    """Return an image of which only the run knows the size."""
    fresh = t.emit.fresh
    return image(t, fresh("height"), fresh("width"), fresh("bands") if bands is None else bands)


def is_image(value: Value) -> bool:
    """Whether a value is an image of Pillow."""
    return isinstance(value, Instance) and value.cls == Library(CLASS)


def sizes_of(t: Core, value: Instance) -> tuple[Dim, Dim, Dim]:
    """Return the height, the width and the number of bands of an image."""
    held = t.heap[value]
    return held["height"], held["width"], held["<bands>"]


def pixels(t: Core, value: Instance, kind: str) -> Tensor:
    """Return the bytes of an image as an array: rows, columns, and bands where there are several.

    Raises:
        CheckError: The number of bands is not known.
    """
    height, width, bands = sizes_of(t, value)
    if not isinstance(bands, int):
        t.fail(OPEN, "the array of an image whose number of bands only a run knows; convert('RGB')"
               " says it")  # fmt: skip
    shape = (height, width) if bands == 1 else (height, width, bands)
    return t.emit.new(UINT8, shape, kind=kind)


def _pair(t: Core, value: Value) -> tuple[Dim, Dim]:
    found = t.sequence(t.wrap(value)) if isinstance(value, list) else value
    if not isinstance(found, list | tuple) or len(found) != 2 or not all(map(is_size, found)):
        t.fail(OPEN, f"expected a width and a height that are known, got {t.show(t.wrap(value))}")
    return found[0], found[1]


@PIL.layer("Image.Image")
class Image:
    """An image."""

    @staticmethod
    def convert(t: Core, self: View, mode: Value = None, *_: Value, **__: Value) -> Value:
        """Return the image with other bands."""
        height, width, _bands = sizes_of(t, self.instance())
        known = _BANDS.get(mode) if isinstance(mode, str) else None
        return image(t, height, width, t.emit.fresh("bands") if known is None else known, mode)

    @staticmethod
    def resize(t: Core, self: View, size: Value, *_: Value, **__: Value) -> Value:
        """Return the image in another size."""
        width, height = _pair(t, size)
        return _like(t, self.instance(), height, width)

    @staticmethod
    def crop(t: Core, self: View, box: Value = None) -> Value:
        """Return a part between two corners."""
        held = t.unwrap(box) if box is not None else None
        if not isinstance(held, list | tuple) or not all(map(is_size, held)):
            return _like(t, self.instance(), t.emit.fresh("height"), t.emit.fresh("width"))
        left, upper, right, lower = held
        return _like(t, self.instance(), lower - upper, right - left)

    @staticmethod
    def rotate(
        t: Core, self: View, angle: Value, resample: Value = 0, expand: Value = False, *_: Value,
        **__: Value,
    ) -> Value:  # fmt: skip
        """Return the image turned."""
        height, width, _bands = sizes_of(t, self.instance())
        if expand not in (False, 0):
            height, width = t.emit.fresh("height"), t.emit.fresh("width")
        return _like(t, self.instance(), height, width)

    @staticmethod
    def transpose(t: Core, self: View, method: Value) -> Value:
        """Return the image mirrored, or turned by right angles."""
        height, width, _bands = sizes_of(t, self.instance())
        if not isinstance(method, int):
            height, width = t.emit.fresh("height"), t.emit.fresh("width")
        elif method in _TURNED:
            height, width = width, height
        return _like(t, self.instance(), height, width)

    @staticmethod
    def thumbnail(t: Core, self: View, size: Value, *_: Value, **__: Value) -> Value:
        """Make the image smaller."""
        self.height, self.width = t.emit.fresh("height"), t.emit.fresh("width")

    @staticmethod
    def split(t: Core, self: View) -> Value:
        """Return the bands as images."""
        height, width, bands = sizes_of(t, self.instance())
        if not isinstance(bands, int):
            return t.lost("the bands of an image whose number only a run knows")
        return tuple(image(t, height, width, 1) for _ in range(bands))

    @staticmethod
    def __array__(t: Core, self: View, *_: Value, **__: Value) -> Value:
        """Return the bytes as an array."""
        return pixels(t, self.instance(), "numpy.ndarray")

    @staticmethod
    def __enter__(t: Core, self: View) -> Value:
        return self.instance()


def _like(t: Core, value: Instance, height: Dim, width: Dim) -> Instance:
    held = t.heap[value]
    return image(t, height, width, held["<bands>"], held["mode"])


def _same(t: Core, self: View, *_: Value, **__: Value) -> Value:
    height, width, _bands = sizes_of(t, self.instance())
    return _like(t, self.instance(), height, width)


def _nothing(t: Core, self: View, *_: Value, **__: Value) -> Value:
    return None


def _open(what: str) -> Any:
    return lambda t, self, *_, **__: t.outside(what)


for _name in ("copy", "filter", "point"):
    setattr(Image, _name, staticmethod(_same))
for _name in ("save", "show", "close", "load", "paste", "putpixel", "seek", "verify", "putdata",
              "putpalette", "alpha_composite", "__exit__"):  # fmt: skip
    setattr(Image, _name, staticmethod(_nothing))
for _name in ("getpixel", "getbbox", "getdata", "getextrema", "histogram", "tobytes", "getexif",
              "getcolors", "getbands", "entropy"):  # fmt: skip
    setattr(Image, _name, staticmethod(_open(f"what 'Image.{_name}' gives")))


@PIL.attribute("size", of=CLASS)
def size(t: Core, self: Instance) -> Value:
    """Return width and height."""
    height, width, _bands = sizes_of(t, self)
    return (width, height)


@PIL.attribute("format", "filename", "info", of=CLASS)
def described(t: Core, self: Instance) -> Value:
    """Return what the file says."""
    return t.outside("what the file of an image says")


@PIL.function("Image.open")
def open_file(t: Core, fp: Value, mode: Value = "r", formats: Value = None) -> Value:
    """Return the image of a file."""
    return open_image(t)


@PIL.function("Image.new")
def new_image(t: Core, mode: Value, size: Value, color: Value = 0) -> Value:
    """Return an image of one color."""
    width, height = _pair(t, size)
    known = _BANDS.get(mode) if isinstance(mode, str) else None
    return image(t, height, width, t.emit.fresh("bands") if known is None else known, mode)


@PIL.function("Image.fromarray")
def fromarray(t: Core, obj: Value, mode: Value = None) -> Value:
    """Return the image of an array of rows, columns, and bands where there are several."""
    if not isinstance(obj, Tensor) or obj.shape is None:
        return open_image(t)
    if len(obj.shape) not in (2, 3):
        t.fail("rank", f"Image.fromarray: expected 2 or 3 axes, got {t.show(obj)}", obj)
    bands = obj.shape[2] if len(obj.shape) == 3 else 1
    return image(t, obj.shape[0], obj.shape[1], bands, mode)


@PIL.function("Image.merge")
def merge(t: Core, mode: Value, bands: Value) -> Value:
    """Return the image of bands."""
    first = t.unwrap(bands)[0]
    height, width, _bands = sizes_of(t, first)
    return image(t, height, width, _BANDS.get(mode, t.emit.fresh("bands")), mode)


_TURNS = ("FLIP_LEFT_RIGHT", "FLIP_TOP_BOTTOM", "ROTATE_90", "ROTATE_180", "ROTATE_270",
          "TRANSPOSE", "TRANSVERSE")  # fmt: skip
_FILTERS = ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")
for _place, _name in enumerate(_TURNS):
    PIL.constants[f"PIL.Image.{_name}"] = PIL.constants[f"PIL.Image.Transpose.{_name}"] = _place
for _place, _name in enumerate(_FILTERS):
    PIL.constants[f"PIL.Image.{_name}"] = PIL.constants[f"PIL.Image.Resampling.{_name}"] = _place
PIL.constants["PIL.Image.ANTIALIAS"] = 1

__all__ = ["Image", "image", "is_image", "open_image", "pixels", "sizes_of"]
