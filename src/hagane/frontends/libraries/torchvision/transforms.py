"""``torchvision.transforms``: transforms of images as objects, and rows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torchvision import functional as fn
from hagane.frontends.libraries.torchvision.table import TORCHVISION
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import (
    Many,
    Unknown,
    Value,
)

_REQUIRED = object()
_MODULE = "torch.nn.Module"


def _names(name: str) -> tuple[str, ...]:
    return (f"transforms.{name}", f"transforms.v2.{name}", f"transforms.transforms.{name}")


def _enter(
    name: str, settings: dict[str, Value], forward: Callable[..., Value], *, module: bool = True
) -> None:
    """Enter a class of transforms: its settings with their defaults, and what it does."""

    def init(t: Core, *given: Value, **named: Value) -> dict[str, Value]:
        if len(given) > len(settings):
            t.fail("call", f"{name}() takes {len(settings)} arguments, got {len(given)}")
        found = {**settings, **dict(zip(settings, given, strict=False)), **named}
        for key, value in found.items():
            if key not in settings:
                t.fail("call", f"{name}() got an unexpected argument '{key}'; its arguments: "
                       + ", ".join(settings))  # fmt: skip
            if value is _REQUIRED:
                t.fail("call", f"{name}() is missing the argument '{key}'")
        return found

    def call(t: Core, self: View, img: Value = None, *rest: Value) -> Value:
        made = img if isinstance(img, Unknown) else forward(t, self, img)
        return (made, *rest) if rest else made

    content = {"init": staticmethod(init), "forward": staticmethod(call)}
    if not module:
        content["__call__"] = staticmethod(call)
    TORCHVISION.layer(*_names(name), base=_MODULE if module else "")(type(name, (), content))


def _same(t: Core, self: View, img: Value) -> Value:
    return fn.resized(t, img, *fn.extent(t, img))


# Those that leave the size of an image as it is.
_KEEPING: dict[str, dict[str, Value]] = {
    "RandomHorizontalFlip": {"p": 0.5},
    "RandomVerticalFlip": {"p": 0.5},
    "ColorJitter": {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0},
    "RandomAffine": {"degrees": _REQUIRED, "translate": None, "scale": None, "shear": None,
                     "interpolation": None, "fill": 0, "center": None},
    "RandomPerspective": {"distortion_scale": 0.5, "p": 0.5, "interpolation": None, "fill": 0},
    "RandomErasing": {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0,
                      "inplace": False},
    "GaussianBlur": {"kernel_size": _REQUIRED, "sigma": (0.1, 2.0)},
    "RandomGrayscale": {"p": 0.1},
    "RandomInvert": {"p": 0.5},
    "RandomPosterize": {"bits": _REQUIRED, "p": 0.5},
    "RandomSolarize": {"threshold": _REQUIRED, "p": 0.5},
    "RandomAdjustSharpness": {"sharpness_factor": _REQUIRED, "p": 0.5},
    "RandomAutocontrast": {"p": 0.5},
    "RandomEqualize": {"p": 0.5},
    "ElasticTransform": {"alpha": 50.0, "sigma": 5.0, "interpolation": None, "fill": 0},
    "AutoAugment": {"policy": None, "interpolation": None, "fill": None},
    "RandAugment": {"num_ops": 2, "magnitude": 9, "num_magnitude_bins": 31, "interpolation": None,
                    "fill": None},
    "TrivialAugmentWide": {"num_magnitude_bins": 31, "interpolation": None, "fill": None},
    "AugMix": {"severity": 3, "mixture_width": 3, "chain_depth": -1, "alpha": 1.0,
               "all_ops": True, "interpolation": None, "fill": None},
}  # fmt: skip
for _name, _settings in _KEEPING.items():
    _enter(_name, _settings, _same)
_enter("RandomRotation",
       {"degrees": _REQUIRED, "interpolation": None, "expand": False, "center": None, "fill": 0},
       lambda t, self, img: fn.rotate(t, img, 0, None, self.expand))  # fmt: skip
_enter("Resize", {"size": _REQUIRED, "interpolation": None, "max_size": None, "antialias": True},
       lambda t, self, img: fn.resize(t, img, self.size, max_size=self.max_size))  # fmt: skip
_enter(
    "CenterCrop",
    {"size": _REQUIRED},
    lambda t, self, img: fn.center_crop(t, img, self.size),
)
_enter("RandomResizedCrop",
       {"size": _REQUIRED, "scale": (0.08, 1.0), "ratio": (0.75, 4 / 3), "interpolation": None,
        "antialias": True},
       lambda t, self, img: fn.center_crop(t, img, self.size))  # fmt: skip
_enter("Pad", {"padding": _REQUIRED, "fill": 0, "padding_mode": "constant"},
       lambda t, self, img: fn.pad(t, img, self.padding))  # fmt: skip
_enter("Grayscale", {"num_output_channels": 1},
       lambda t, self, img: fn.to_grayscale(t, img, self.num_output_channels))  # fmt: skip
_enter("Normalize", {"mean": _REQUIRED, "std": _REQUIRED, "inplace": False},
       lambda t, self, img: fn.normalize(t, img, self.mean, self.std))  # fmt: skip
_enter("ConvertImageDtype", {"dtype": None},
       lambda t, self, img: fn.convert_image_dtype(t, img, self.dtype))  # fmt: skip
_enter("ToDtype", {"dtype": _REQUIRED, "scale": False},
       lambda t, self, img: fn.convert_image_dtype(t, img, self.dtype))  # fmt: skip
_enter("FiveCrop", {"size": _REQUIRED},
       lambda t, self, img: (fn.center_crop(t, img, self.size),) * 5)  # fmt: skip
_enter("TenCrop", {"size": _REQUIRED, "vertical_flip": False},
       lambda t, self, img: (fn.center_crop(t, img, self.size),) * 10)  # fmt: skip
_enter("ToTensor", {}, lambda t, self, img: fn.to_tensor(t, img), module=False)
_enter("PILToTensor", {}, lambda t, self, img: fn.pil_to_tensor(t, img), module=False)
_enter("ToImage", {}, lambda t, self, img: fn.pil_to_tensor(t, img))
_enter("ToPILImage", {"mode": None}, lambda t, self, img: fn.to_pil_image(t, img, self.mode),
       module=False)  # fmt: skip
_enter("Lambda", {"lambd": _REQUIRED}, lambda t, self, img: t.call(self.raw("lambd"), [img], {}),
       module=False)  # fmt: skip
_enter("Identity", {}, lambda t, self, img: img)


def _random_crop(t: Core, self: View, img: Value) -> Value:
    if self.padding is not None:
        img = fn.pad(t, img, self.padding)
    height, width = fn.extent(t, img)
    wanted = fn.window(t, self.size)
    if self.pad_if_needed is False:
        for has, needs in zip((height, width), wanted, strict=True):
            if isinstance(has, int) and isinstance(needs, int) and has < needs:
                t.fail("value", f"ValueError: RandomCrop of {wanted} of an image of "
                       f"{(height, width)}")  # fmt: skip
    return fn.resized(t, img, *wanted)


_enter("RandomCrop",
       {"size": _REQUIRED, "padding": None, "pad_if_needed": False, "fill": 0,
        "padding_mode": "constant"}, _random_crop)  # fmt: skip


# Rows of transforms.


def _listed(t: Core, self: View) -> Sequence[Value]:
    found = t.sequence(self.raw("transforms"))
    if isinstance(found, Many):
        t.fail(OPEN, "a number of transforms that is not known")
    return list(found)


def _all(t: Core, self: View, img: Value) -> Value:
    for one in _listed(t, self):
        img = t.call(one, [img], {})
    return img


def _perhaps(t: Core, self: View, img: Value) -> Value:
    return t.join(t.as_term(t.unknown_truth()), _all(t, self, img), img)


def _one_of(t: Core, self: View, img: Value) -> Value:
    results = [t.call(one, [img], {}) for one in _listed(t, self)]
    made: Value = results[0]
    for other in results[1:]:
        made = t.join(t.as_term(t.unknown_truth()), made, other)
    return made


_enter("Compose", {"transforms": _REQUIRED}, _all, module=False)
_enter("RandomApply", {"transforms": _REQUIRED, "p": 0.5}, _perhaps)
_enter("RandomChoice", {"transforms": _REQUIRED, "p": None}, _one_of, module=False)
_enter("RandomOrder", {"transforms": _REQUIRED}, _all, module=False)

_MODES = ("NEAREST", "NEAREST_EXACT", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS")
for _name in _MODES:
    for _place in ("transforms", "transforms.functional", "transforms.v2"):
        TORCHVISION.constants[f"torchvision.{_place}.InterpolationMode.{_name}"] = _name.lower()

__all__ = ["fn"]
