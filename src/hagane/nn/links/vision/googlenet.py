"""GoogLeNet (Szegedy et al., 2014)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.nn import functions as F
from hagane.nn.initializers import LeCunUniform
from hagane.nn.links.composed import Inception
from hagane.nn.links.connection import Linear
from hagane.nn.links.convolution import Convolution2D
from hagane.nn.links.vision.images import ImageModel, available, prepared, weights_of

__all__ = ["GoogLeNet", "available", "prepare"]

# Channels before each block, and the maps of its convolutions.
BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}
# Of which blocks the outputs are classified too, and their channels.
BRANCHES = {"loss1": ("inception_4a", 512), "loss2": ("inception_4d", 528)}


def prepare(image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
    """Return an image, (3, height, width), less the mean of the training images."""
    return prepared(image, size, (104.0, 117.0, 123.0))


def _pool(x: Any) -> Any:
    return F.max_pooling_2d(x, 3, stride=2)


def _normalize(x: Any) -> Any:
    return F.local_response_normalization(x, n=5, k=1, alpha=1e-4 / 5)


class GoogLeNet(ImageModel):
    """GoogLeNet; steps ``conv1`` to ``pool5``, ``loss3_fc``, ``prob``, and two ``loss…_fc2``.

    Args:
        pretrained_model: The path of an npz file with the weights, None for random ones.

    Raises:
        InvalidArgument: It is ``"auto"``: weights are not downloaded.
    """

    branches = {f"{name}_fc2": block for name, (block, _channels) in BRANCHES.items()}

    def __init__(self, pretrained_model: Any = "auto"):
        super().__init__()
        given = {"initialW": weights_of(pretrained_model, LeCunUniform(scale=1.0))}
        with self.init_scope():
            self.conv1 = Convolution2D(3, 64, 7, stride=2, pad=3, **given)
            self.conv2_reduce = Convolution2D(64, 64, 1, **given)
            self.conv2 = Convolution2D(64, 192, 3, stride=1, pad=1, **given)
            for name, sizes in BLOCKS.items():
                setattr(self, f"inc{name}", Inception(*sizes))
            self.loss3_fc = Linear(1024, 1000, **given)
            for name, (_block, channels) in BRANCHES.items():
                setattr(self, f"{name}_conv", Convolution2D(channels, 128, 1, **given))
                setattr(self, f"{name}_fc1", Linear(2048, 1024, **given))
                setattr(self, f"{name}_fc2", Linear(1024, 1000, **given))
        self._load(pretrained_model)

    def prepare(self, image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
        """Return an image as the model takes it."""
        return prepare(image, size)

    @property
    def functions(self) -> Mapping[str, Sequence[Callable[[Any], Any]]]:
        """The steps in their order; the branches ``loss1`` and ``loss2`` begin at their blocks."""
        found: dict[str, Sequence[Callable[[Any], Any]]] = {
            "conv1": [self.conv1, F.relu],
            "pool1": [_pool, _normalize],
            "conv2_reduce": [self.conv2_reduce, F.relu],
            "conv2": [self.conv2, F.relu, _normalize],
            "pool2": [_pool],
        }
        for name in BLOCKS:
            found[f"inception_{name}"] = [getattr(self, f"inc{name}")]
            if name in ("3b", "4e"):
                found[f"pool{name[0]}"] = [_pool]
        found["pool5"] = [lambda x: F.average_pooling_2d(x, 7, stride=1)]
        found["loss3_fc"] = [lambda x: F.dropout(x, ratio=0.4), self.loss3_fc]
        found["prob"] = [F.softmax]
        for name in BRANCHES:
            found[f"{name}_fc2"] = [
                lambda x: F.average_pooling_2d(x, 5, stride=3),
                getattr(self, f"{name}_conv"),
                F.relu,
                getattr(self, f"{name}_fc1"),
                F.relu,
                getattr(self, f"{name}_fc2"),
            ]
        return found
