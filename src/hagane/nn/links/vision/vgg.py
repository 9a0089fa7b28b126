"""VGG-16 and VGG-19 (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.nn import functions as F
from hagane.nn.initializers import Normal, Zero
from hagane.nn.links.connection import Linear
from hagane.nn.links.convolution import Convolution2D
from hagane.nn.links.vision.images import ImageModel, available, prepared, weights_of

__all__ = ["VGG16Layers", "VGG19Layers", "available", "prepare"]

_MAPS = (64, 128, 256, 512, 512)


def prepare(image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
    """Return an image, (3, height, width), less the mean of the training images."""
    return prepared(image, size, (103.939, 116.779, 123.68))


class _VGG(ImageModel):
    counts: Sequence[int]
    extracted = "fc7"

    def __init__(self, pretrained_model: Any = "auto"):
        super().__init__()
        given = {
            "initialW": weights_of(pretrained_model, Normal(0.01)),
            "initial_bias": Zero(),
        }
        before = 3
        with self.init_scope():
            for stage, (count, maps) in enumerate(zip(self.counts, _MAPS, strict=True), start=1):
                for number in range(1, count + 1):
                    made = Convolution2D(before, maps, 3, 1, 1, **given)
                    setattr(self, f"conv{stage}_{number}", made)
                    before = maps
            self.fc6 = Linear(512 * 7 * 7, 4096, **given)
            self.fc7 = Linear(4096, 4096, **given)
            self.fc8 = Linear(4096, 1000, **given)
        self._load(pretrained_model)

    def prepare(self, image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
        """Return an image as the model takes it."""
        return prepare(image, size)

    @property
    def functions(self) -> Mapping[str, Sequence[Callable[[Any], Any]]]:
        """The steps in their order, each a row of functions."""
        found: dict[str, Sequence[Callable[[Any], Any]]] = {}
        for stage, count in enumerate(self.counts, start=1):
            for number in range(1, count + 1):
                name = f"conv{stage}_{number}"
                found[name] = [getattr(self, name), F.relu]
            found[f"pool{stage}"] = [lambda x: F.max_pooling_2d(x, 2, stride=2)]
        for name in ("fc6", "fc7"):
            found[name] = [getattr(self, name), F.relu, F.dropout]
        return {**found, "fc8": [self.fc8], "prob": [F.softmax]}


class VGG16Layers(_VGG):
    """VGG-16; steps ``conv1_1`` to ``pool5``, ``fc6``, ``fc7``, ``fc8`` and ``prob``.

    Args:
        pretrained_model: The path of an npz file with the weights, None for random ones.

    Raises:
        InvalidArgument: It is ``"auto"``: weights are not downloaded.
    """

    counts = (2, 2, 3, 3, 3)


class VGG19Layers(_VGG):
    """VGG-19; steps ``conv1_1`` to ``pool5``, ``fc6``, ``fc7``, ``fc8`` and ``prob``.

    Args:
        pretrained_model: The path of an npz file with the weights, None for random ones.

    Raises:
        InvalidArgument: It is ``"auto"``: weights are not downloaded.
    """

    counts = (2, 2, 4, 4, 4)
