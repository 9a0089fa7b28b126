"""``torchvision.datasets``: how many images there are, their sizes, and their labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torchvision.images import UINT8, image, open_image
from hagane.frontends.libraries.torchvision.table import TORCHVISION
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
    is_size,
)
from hagane.symbolic import Dim

_BASE = "torch.utils.data.Dataset"
_INT64 = ir.DataType.INT64


def _array(t: Core, dtype: ir.DataType, shape: tuple[Dim, ...], kind: str) -> Tensor:
    return t.emit.new(dtype, shape, kind=kind)


def _texts(t: Core, count: Dim) -> Value:
    return t.new_list(Many(t.outside("the name of a class"), count))


def _label(t: Core) -> Value:
    return t.emit.fresh("label")


def _transformed(t: Core, self: View, item: Value, target: Value) -> Value:
    for name, value in (("transform", item), ("target_transform", target)):
        function = self.raw(name)
        if function is None:
            continue
        made = t.call(function, [value], {})
        item, target = (made, target) if name == "transform" else (item, made)
    return (item, target)


def _dataset(
    name: str,
    settings: dict[str, Value],
    held: Callable[[Core, dict[str, Value]], dict[str, Value]],
    item: Callable[[Core, View], tuple[Value, Value]],
) -> None:
    """Enter a class of data sets.

    Args:
        name: Its name.
        settings: Its arguments with their defaults, in order.
        held: The attributes of an object, ``<length>`` among them, from its arguments.
        item: An image and what belongs to it, before the transforms.
    """

    def init(t: Core, *given: Value, **named: Value) -> dict[str, Value]:
        found = {**settings, **dict(zip(settings, given, strict=False)), **named}
        return {**found, **held(t, found)}

    def get(t: Core, self: View, index: Value) -> Value:
        return _transformed(t, self, *item(t, self))

    def length(t: Core, self: View) -> Value:
        return self.raw("<length>")

    content: dict[str, Any] = {"init": init, "__getitem__": get, "__len__": length}
    cls = type(name, (), {key: staticmethod(value) for key, value in content.items()})
    TORCHVISION.layer(f"datasets.{name}", base=_BASE)(cls)


def _counted(train: Value, counts: tuple[int, int], t: Core) -> Dim:
    return counts[0 if train else 1] if isinstance(train, bool) else t.emit.fresh("items")


# Digits and their like: images of 28 x 28 in one band.


def _named(data: Tensor, targets: Tensor) -> dict[str, Value]:
    """Return digits and their labels under all of their names."""
    found = {"data": data, "targets": targets}
    for part in ("train", "test"):
        found |= {f"{part}_data": data, f"{part}_labels": targets}
    return found


def _digits(name: str, counts: tuple[int, int], classes: int) -> None:
    def held(t: Core, found: dict[str, Value]) -> dict[str, Value]:
        length = _counted(found["train"], counts, t)
        data = _array(t, UINT8, (length, 28, 28), "torch.Tensor")
        targets = _array(t, _INT64, (length,), "torch.Tensor")
        return {**_named(data, targets), "classes": _texts(t, classes), "<length>": length}

    settings = {"root": None, "train": True, "transform": None, "target_transform": None,
                "download": False}  # fmt: skip
    _dataset(name, settings, held, lambda t, self: (image(t, 28, 28, 1), _label(t)))


for _name in ("MNIST", "FashionMNIST", "KMNIST"):
    _digits(_name, (60_000, 10_000), 10)

_EMNIST = {"byclass": (697_932, 116_323, 62), "bymerge": (697_932, 116_323, 47),
           "balanced": (112_800, 18_800, 47), "letters": (124_800, 20_800, 37),
           "digits": (240_000, 40_000, 10), "mnist": (60_000, 10_000, 10)}  # fmt: skip


def _of_emnist(t: Core, found: dict[str, Value]) -> dict[str, Value]:
    known = _EMNIST.get(found["split"]) if isinstance(found["split"], str) else None
    if known is None:
        t.fail("value", f"EMNIST: expected one of {', '.join(_EMNIST)} as split, got "
               f"{t.show(t.wrap(found['split']))}")  # fmt: skip
        raise AssertionError
    length = _counted(found.get("train", True), known[:2], t)
    data = _array(t, UINT8, (length, 28, 28), "torch.Tensor")
    targets = _array(t, _INT64, (length,), "torch.Tensor")
    return {**_named(data, targets), "classes": _texts(t, known[2]), "<length>": length}


_dataset("EMNIST", {"root": None, "split": None, "train": True, "transform": None,
                    "target_transform": None, "download": False},
         _of_emnist, lambda t, self: (image(t, 28, 28, 1), _label(t)))  # fmt: skip


# Small pictures in colour.


def _cifar(name: str, classes: int) -> None:
    def held(t: Core, found: dict[str, Value]) -> dict[str, Value]:
        length = _counted(found["train"], (50_000, 10_000), t)
        return {"data": _array(t, UINT8, (length, 32, 32, 3), "numpy.ndarray"),
                "targets": t.new_list(Many(_label(t), length)), "classes": _texts(t, classes),
                "<length>": length}  # fmt: skip

    settings = {"root": None, "train": True, "transform": None, "target_transform": None,
                "download": False}  # fmt: skip
    _dataset(name, settings, held, lambda t, self: (image(t, 32, 32, 3), _label(t)))


_cifar("CIFAR10", 10)
_cifar("CIFAR100", 100)


def _split(name: str, side: int, counts: dict[str, int], default: str) -> None:
    def held(t: Core, found: dict[str, Value]) -> dict[str, Value]:
        split = found["split"]
        if isinstance(split, str) and split not in counts:
            t.fail("value", f"{name}: expected one of {', '.join(counts)} as split, got {split!r}")
        length = counts[split] if isinstance(split, str) else t.emit.fresh("items")
        return {"data": _array(t, UINT8, (length, 3, side, side), "numpy.ndarray"),
                "labels": _array(t, _INT64, (length,), "numpy.ndarray"),
                "<length>": length}  # fmt: skip

    settings = {"root": None, "split": default, "transform": None, "target_transform": None,
                "download": False}  # fmt: skip
    if name == "STL10":
        settings = {"root": None, "split": default, "folds": None, "transform": None,
                    "target_transform": None, "download": False}  # fmt: skip
    _dataset(name, settings, held, lambda t, self: (image(t, side, side, 3), _label(t)))


_split("SVHN", 32, {"train": 73_257, "test": 26_032, "extra": 531_131}, "train")
_split("STL10", 96, {"train": 5_000, "test": 8_000, "unlabeled": 100_000,
                     "train+unlabeled": 105_000}, "train")  # fmt: skip


# Images that are made up.


def _fake(t: Core, found: dict[str, Value]) -> dict[str, Value]:
    return {"<length>": found["size"]}


def _fake_item(t: Core, self: View) -> tuple[Value, Value]:
    shape = self.image_size
    if not isinstance(shape, list | tuple) or len(shape) != 3 or not all(map(is_size, shape)):
        return open_image(t, 3), _label(t)
    return image(t, shape[1], shape[2], shape[0]), _label(t)


_dataset("FakeData", {"size": 1000, "image_size": (3, 224, 224), "num_classes": 10,
                      "transform": None, "target_transform": None, "random_offset": 0},
         _fake, _fake_item)  # fmt: skip


# Folders of files, and large collections: only a run knows how many, and their sizes.


def _folder(t: Core, found: dict[str, Value]) -> dict[str, Value]:
    count = t.emit.fresh("items")
    pair = (t.outside("the name of a file"), _label(t))
    return {"classes": _texts(t, t.emit.fresh("classes")),
            "class_to_idx": t.outside("the classes of a folder"),
            "samples": t.new_list(Many(pair, count)), "imgs": t.new_list(Many(pair, count)),
            "targets": t.new_list(Many(_label(t), count)), "<length>": count}  # fmt: skip


def _loaded(t: Core, self: View) -> tuple[Value, Value]:
    own = self.raw("loader")
    path = t.outside("the name of a file")
    return (open_image(t, 3) if own is None else t.call(own, [path], {})), _label(t)


_dataset("ImageFolder", {"root": None, "transform": None, "target_transform": None,
                         "loader": None, "is_valid_file": None, "allow_empty": False},
         _folder, _loaded)  # fmt: skip
_dataset("DatasetFolder", {"root": None, "loader": None, "extensions": None, "transform": None,
                           "target_transform": None, "is_valid_file": None},
         _folder, _loaded)  # fmt: skip


def _open_length(t: Core, found: dict[str, Value]) -> dict[str, Value]:
    return {"<length>": t.emit.fresh("items")}


def _picture(t: Core, self: View) -> tuple[Value, Value]:
    return open_image(t, 3), _label(t)


_dataset("ImageNet", {"root": None, "split": "train", "transform": None, "target_transform": None,
                      "loader": None}, _folder, _loaded)  # fmt: skip
_dataset("LSUN", {"root": None, "classes": "train", "transform": None, "target_transform": None},
         _open_length, _picture)  # fmt: skip
for _name in ("Food101", "StanfordCars", "Flowers102", "GTSRB"):
    _dataset(_name, {"root": None, "split": "train", "transform": None, "target_transform": None,
                     "download": False},
             _open_length, _picture)  # fmt: skip


def _attributes(t: Core, self: View) -> tuple[Value, Value]:
    if self.target_type != "attr":
        return image(t, 218, 178, 3), t.lost("a target of CelebA of another kind than 'attr'")
    return image(t, 218, 178, 3), _array(t, _INT64, (40,), "torch.Tensor")


_dataset("CelebA", {"root": None, "split": "train", "target_type": "attr", "transform": None,
                    "target_transform": None, "download": False},
         _open_length, _attributes)  # fmt: skip

__all__ = ["image"]
