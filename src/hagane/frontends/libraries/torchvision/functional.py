"""``torchvision.transforms.functional``: functions of images and of tensors of them."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import dtype_of
from hagane.frontends.libraries.torchvision.images import (
    UINT8,
    image,
    is_image,
    sizes_of,
)
from hagane.frontends.libraries.torchvision.table import TORCHVISION
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import (
    Tensor,
    Unknown,
    Value,
    is_size,
)
from hagane.symbolic import Dim

_TORCH = "torch.Tensor"
_PLACES = ("transforms.functional", "transforms.v2.functional")


def names(name: str) -> tuple[str, ...]:
    """Return the names of a function."""
    return tuple(f"{place}.{name}" for place in _PLACES)


def extent(t: Core, img: Value) -> tuple[Dim, Dim]:
    """Return the height and the width of an image or a tensor of images.

    Raises:
        CheckError: It is neither.
    """
    if is_image(img):
        height, width, _ = sizes_of(t, img)
        return height, width
    if not isinstance(img, Tensor) or img.kind != _TORCH:
        t.fail("type", f"expected a PIL image or a tensor, got {t.show(t.wrap(img))}")
    if img.shape is None:
        t.fail(OPEN, "a tensor of images whose rank is not known")
    if len(img.shape) < 2:
        t.fail("rank", f"expected a tensor of images, (..., height, width), got {t.show(img)}", img)
    return img.shape[-2], img.shape[-1]


def resized(t: Core, img: Value, height: Dim, width: Dim) -> Value:
    """Return an image, or a tensor of images, of another height and width."""
    extent(t, img)
    if is_image(img):
        bands = sizes_of(t, img)[2]
        return image(t, height, width, bands, t.heap[img]["mode"])
    return made(t, img, (*img.shape[:-2], height, width))


def made(t: Core, x: Tensor, shape: tuple[Dim, ...], dtype: ir.DataType | None = None) -> Tensor:
    """Return a tensor that comes of another."""
    result = t.emit.new(x.dtype if dtype is None else dtype, shape, kind=_TORCH, device=x.device)
    result.origin = x.origin
    return result


def window(t: Core, size: Value) -> tuple[Dim, Dim]:
    """Return the height and width of a part that are given as a number or two."""
    found = t.unwrap(size)
    if is_size(found):
        return found, found
    if isinstance(found, list | tuple) and len(found) in (1, 2) and all(map(is_size, found)):
        return found[0], found[-1]
    if isinstance(found, float | str) or found is None:
        t.fail("type", f"expected an integer or two as size, got {t.show(t.wrap(found))}")
    t.fail(OPEN, f"a size that is not known: {t.show(t.wrap(found))}")
    raise AssertionError


@TORCHVISION.function(*names("resize"))
def resize(
    t: Core, img: Value, size: Value, *_: Value, max_size: Value = None, **__: Value
) -> Value:
    """Return images whose shorter side is ``size``, or of a height and a width."""
    if isinstance(img, Unknown):
        return img
    found = t.unwrap(size)
    if isinstance(found, list | tuple) and len(found) == 2:
        return resized(t, img, *window(t, size))
    short = window(t, size)[0]
    height, width = extent(t, img)
    if max_size is None and height == width:
        return resized(t, img, short, short)
    known = isinstance(height, int) and isinstance(width, int)
    if max_size is None and known and isinstance(short, int):
        assert isinstance(height, int)
        assert isinstance(width, int)
        long = int(short * max(height, width) / min(height, width))
        return resized(t, img, *((short, long) if height < width else (long, short)))
    return resized(t, img, t.emit.fresh("height"), t.emit.fresh("width"))


@TORCHVISION.function(*names("center_crop"))
def center_crop(t: Core, img: Value, output_size: Value) -> Value:
    """Return the middle of images, with a border where they are smaller."""
    return img if isinstance(img, Unknown) else resized(t, img, *window(t, output_size))


@TORCHVISION.function(*names("crop"))
def crop(t: Core, img: Value, top: Value, left: Value, height: Value, width: Value) -> Value:
    """Return a part of images, with a border beyond them."""
    return img if isinstance(img, Unknown) else resized(t, img, *window(t, (height, width)))


@TORCHVISION.function(*names("resized_crop"))
def resized_crop(
    t: Core, img: Value, top: Value, left: Value, height: Value, width: Value, size: Value,
    *_: Value, **__: Value,
) -> Value:  # fmt: skip
    """Return a part of images in another size."""
    return img if isinstance(img, Unknown) else resized(t, img, *window(t, size))


@TORCHVISION.function(*names("pad"))
def pad(
    t: Core, img: Value, padding: Value, fill: Value = 0, padding_mode: Value = "constant"
) -> Value:
    """Return images with a border: one width, those of left and top, or of all four sides."""
    if isinstance(img, Unknown):
        return img
    given = t.unwrap(padding)
    widths = [given] if is_size(given) else list(given)
    if len(widths) not in (1, 2, 4) or not all(map(is_size, widths)):
        t.fail("value", f"expected 1, 2 or 4 widths as padding, got {t.show(t.wrap(given))}")
    left, top, right, bottom = (widths * 4)[:4]
    height, width = extent(t, img)
    return resized(t, img, height + top + bottom, width + left + right)


def _same(t: Core, img: Value, *_: Value, **__: Value) -> Value:
    """Return images of the same size."""
    return img if isinstance(img, Unknown) else resized(t, img, *extent(t, img))


TORCHVISION.function(*(name for short in (
    "hflip", "vflip", "horizontal_flip", "vertical_flip", "adjust_brightness", "adjust_contrast",
    "adjust_saturation", "adjust_hue", "adjust_gamma", "adjust_sharpness", "gaussian_blur",
    "autocontrast", "equalize", "invert", "posterize", "solarize", "affine", "perspective",
    "elastic_transform", "erase",
) for name in names(short)))(_same)  # fmt: skip


@TORCHVISION.function(*names("rotate"))
def rotate(
    t: Core, img: Value, angle: Value, interpolation: Value = None, expand: Value = False,
    *_: Value, **__: Value,
) -> Value:  # fmt: skip
    """Return images turned."""
    if expand is False:
        return _same(t, img)
    return resized(t, img, t.emit.fresh("height"), t.emit.fresh("width"))


@TORCHVISION.function(*names("to_grayscale"), *names("rgb_to_grayscale"))
def to_grayscale(t: Core, img: Value, num_output_channels: Value = 1) -> Value:
    """Return images in one band, which may be repeated."""
    if isinstance(img, Unknown):
        return img
    height, width = extent(t, img)
    if is_image(img):
        return image(t, height, width, num_output_channels)
    if len(img.shape) < 3 or (t.emit.differ(img.shape[-3], 3) and t.emit.differ(img.shape[-3], 1)):
        t.fail("rank", f"expected images of 1 or 3 channels, got {t.show(img)}", img)
    return made(t, img, (*img.shape[:-3], num_output_channels, height, width))


@TORCHVISION.function(*names("to_tensor"))
def to_tensor(t: Core, pic: Value) -> Value:
    """Return an image as a tensor of numbers from 0 to 1."""
    if isinstance(pic, Unknown):
        return pic
    if is_image(pic):
        height, width, bands = sizes_of(t, pic)
        kinds = {"I": ir.DataType.INT32, "F": ir.DataType.FLOAT}
        mode = t.heap[pic]["mode"]
        dtype = kinds.get(mode, ir.DataType.FLOAT) if isinstance(mode, str) else ir.DataType.FLOAT
        return t.emit.new(dtype, (bands, height, width), kind=_TORCH)
    if not isinstance(pic, Tensor) or pic.kind != "numpy.ndarray":
        tensors = [pic] if isinstance(pic, Tensor) else []
        shown = t.show(t.wrap(pic))
        t.fail("type", f"TypeError: ToTensor takes a PIL image or an array, got {shown}", *tensors)
    if pic.shape is None:
        t.fail(OPEN, "an image whose rank is not known")
    if len(pic.shape) not in (2, 3):
        t.fail("rank", f"ToTensor: expected an array of 2 or 3 axes, got {t.show(pic)}", pic)
    shape = (pic.shape[2], *pic.shape[:2]) if len(pic.shape) == 3 else (1, *pic.shape)
    return made(t, pic, shape, ir.DataType.FLOAT if pic.dtype == UINT8 else pic.dtype)


@TORCHVISION.function(*names("pil_to_tensor"), *names("to_image"))
def pil_to_tensor(t: Core, pic: Value) -> Value:
    """Return the bytes of an image as a tensor."""
    if isinstance(pic, Unknown):
        return pic
    if is_image(pic):
        height, width, bands = sizes_of(t, pic)
        return t.emit.new(UINT8, (bands, height, width), kind=_TORCH)
    if isinstance(pic, Tensor) and pic.kind == "numpy.ndarray" and len(pic.shape or ()) == 3:
        assert pic.shape is not None
        return made(t, pic, (pic.shape[2], *pic.shape[:2]))
    extent(t, pic)
    return made(t, pic, pic.shape)


@TORCHVISION.function(*names("to_pil_image"))
def to_pil_image(t: Core, pic: Value, mode: Value = None) -> Value:
    """Return a tensor of channels, or an array, as an image."""
    if isinstance(pic, Unknown):
        return pic
    if not isinstance(pic, Tensor):
        t.fail("type", f"TypeError: expected a tensor or an array, got {t.show(t.wrap(pic))}")
    if pic.shape is None:
        t.fail(OPEN, "an image whose rank is not known")
    if len(pic.shape) not in (2, 3):
        t.fail("rank", f"to_pil_image: expected 2 or 3 axes, got {t.show(pic)}", pic)
    if len(pic.shape) == 2:
        return image(t, pic.shape[0], pic.shape[1], 1, mode)
    bands, height, width = pic.shape if pic.kind == _TORCH else (pic.shape[2], *pic.shape[:2])
    if isinstance(bands, int) and bands > 4:
        t.fail(
            "shape-mismatch", f"to_pil_image: expected at most 4 channels, got {t.show(pic)}", pic
        )
    return image(t, height, width, bands, mode)


@TORCHVISION.function(*names("convert_image_dtype"), *names("to_dtype"))
def convert_image_dtype(t: Core, image_: Value, dtype: Value = None, scale: Value = False) -> Value:
    """Return images of another element type."""
    if isinstance(image_, Unknown):
        return image_
    extent(t, image_)
    wanted = ir.DataType.FLOAT if dtype is None else dtype_of(dtype)
    return made(t, image_, image_.shape, wanted)


@TORCHVISION.function(*names("normalize"))
def normalize(t: Core, tensor: Value, mean: Value, std: Value, inplace: Value = False) -> Value:
    """Return images less the mean of each channel, over its deviation."""
    if isinstance(tensor, Unknown):
        return tensor
    if not isinstance(tensor, Tensor) or tensor.kind != _TORCH:
        t.fail("type", f"TypeError: Normalize takes a tensor, got {t.show(t.wrap(tensor))}",
               remedy="put ToTensor() before it")  # fmt: skip
    if not tensor.dtype.is_floating_point():
        t.fail("type", f"Normalize: expected a tensor of floats, got {t.show(tensor)}", tensor)
    if tensor.shape is None:
        return tensor
    if len(tensor.shape) < 3:
        t.fail("rank", f"Normalize: expected (..., channels, height, width), got {t.show(tensor)}",
               tensor)  # fmt: skip
    channels = tensor.shape[-3]
    for name, value in (("mean", mean), ("std", std)):
        held = t.unwrap(value)
        if not isinstance(held, list | tuple) or len(held) == 1:
            continue
        if t.emit.differ(len(held), channels):
            t.fail(
                "shape-mismatch",
                f"Normalize: expected a number of '{name}' for each of {channels} "
                f"channels, got {len(held)} for {t.show(tensor)}",
                tensor,
            )
    return made(t, tensor, tensor.shape)


@TORCHVISION.function(*names("get_image_size"))
def get_image_size(t: Core, img: Value) -> Value:
    """Return the width and the height."""
    height, width = extent(t, img)
    return [width, height]


@TORCHVISION.function(*names("get_dimensions"))
def get_dimensions(t: Core, img: Value) -> Value:
    """Return channels, height and width."""
    height, width = extent(t, img)
    bands = sizes_of(t, img)[2] if is_image(img) else 1 if len(img.shape) == 2 else img.shape[-3]
    return [bands, height, width]


def several(name: str, count: int) -> None:
    """Enter a function that returns parts of images, all of one size."""

    def parts(t: Core, img: Value, size: Value, *_: Value, **__: Value) -> Value:
        if isinstance(img, Unknown):
            return img
        return tuple(resized(t, img, *window(t, size)) for _ in range(count))

    TORCHVISION.function(*names(name))(parts)


several("five_crop", 5)
several("ten_crop", 10)


__all__ = [
    "center_crop", "convert_image_dtype", "crop", "extent", "made", "normalize", "pad",
    "pil_to_tensor", "resize", "resized", "rotate", "to_grayscale", "to_pil_image", "to_tensor",
    "window",
]  # fmt: skip
