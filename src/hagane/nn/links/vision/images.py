"""Images as inputs of models, and the common base of models of images."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument, MissingExtra
from hagane.nn import functions as F
from hagane.nn.autograd.configuration import get_dtype, no_backprop_mode, using_config
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import pop_options
from hagane.nn.initializers import Zero
from hagane.nn.model.chain import Chain
from hagane.nn.serializers.npz import load_npz

available = importlib.util.find_spec("PIL") is not None


def prepared(image: Any, size: tuple[int, int] | None, mean: Sequence[float]) -> Any:
    """Return an image as (3, height, width) in the order blue, green, red, less a mean.

    Args:
        image: One of Pillow, or an array of (height, width), (height, width, 3), (1, height, width)
            or (3, height, width), of values 0 to 255.
        size: Width and height of the result; None for those of the image.
        mean: The subtrahends of blue, green and red.

    Raises:
        MissingExtra: Pillow is not there.
    """
    if not available:
        raise MissingExtra("preparing images", "image")
    from PIL import Image

    if isinstance(image, np.ndarray):
        if image.ndim == 3 and image.shape[0] == 1:
            image = image[0]
        elif image.ndim == 3 and image.shape[0] == 3:
            image = image.transpose(1, 2, 0)
        image = Image.fromarray(image.astype(np.uint8))
    image = image.convert("RGB")
    if size:
        image = image.resize(size)
    dtype = get_dtype()
    pixels = np.asarray(image, dtype=dtype)[:, :, ::-1]
    return (pixels - np.array(mean, dtype)).transpose(2, 0, 1)


def crops(images: Any, height: int, width: int) -> Any:
    """Return ten cuts of each image: four corners and the middle, then all of them mirrored.

    Args:
        images: (batch, channels, at least height, at least width).
        height: Of the cuts.
        width: Of the cuts.

    Returns:
        (10 * batch, channels, height, width).
    """
    rows, columns = images.shape[2] - height, images.shape[3] - width
    corners = [(0, 0), (0, columns), (rows, 0), (rows, columns), (rows // 2, columns // 2)]
    cuts = np.stack([images[:, :, y : y + height, x : x + width] for y, x in corners], axis=1)
    found = np.concatenate([cuts, cuts[..., ::-1]], axis=1)
    return found.reshape(-1, *found.shape[2:])


class ImageModel(Chain):
    """A model whose steps have names, so that the values between them can be had.

    Attributes:
        extracted: The default result of ``extract``.
        branches: After which step a step begins that does not follow the one before it.
    """

    extracted = "pool5"
    branches: Mapping[str, str] = {}

    @property
    def functions(self) -> Mapping[str, Sequence[Callable[[Any], Any]]]:
        """The steps in their order, each a row of functions."""
        raise NotImplementedError

    @property
    def available_layers(self) -> list[str]:
        """The names of the steps."""
        return list(self.functions)

    def prepare(self, image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
        """Return an image as the model takes it."""
        raise NotImplementedError

    def forward(self, x: Any, layers: Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Return values behind steps, by name.

        Args:
            x: (batch, 3, height, width).
            layers: Names of steps; ``prob``, the probabilities of classes, by default.
            **kwargs: None are known.

        Raises:
            InvalidArgument: There is no step of a name.
        """
        pop_options(type(self).__name__, kwargs, removed=("train", "test"))
        steps = self.functions
        wanted = {"prob"} if layers is None else set(layers)
        if not wanted <= steps.keys():
            raise InvalidArgument(
                f"layers: expected some of {', '.join(steps)}, got {sorted(wanted - steps.keys())}"
            )
        kept: dict[str, Any] = {}
        for name, row in steps.items():
            if wanted <= kept.keys():
                break
            if name in self.branches:
                x = kept[self.branches[name]]
            for function in row:
                x = function(x)
            if name in wanted or name in self.branches.values():
                kept[name] = x
        return {name: value for name, value in kept.items() if name in wanted}

    def extract(
        self,
        images: Iterable[Any],
        layers: Sequence[str] | None = None,
        size: tuple[int, int] | None = (224, 224),
        **kwargs: Any,
    ) -> Any:
        """Return values behind steps for images, by name.

        Args:
            images: Images of Pillow, or arrays.
            layers: Names of steps.
            size: Width and height that images are brought to; None for their own, all the same.
            **kwargs: None are known.
        """
        pop_options(type(self).__name__, kwargs, removed=("train", "test", "volatile"))
        x = np.stack([self.prepare(image, size=size) for image in images])
        return self(Variable(x), layers=[self.extracted] if layers is None else layers)

    def predict(self, images: Iterable[Any], oversample: bool = True) -> Any:
        """Return probabilities of classes, (batch, 1000).

        Args:
            images: Images of Pillow, or arrays.
            oversample: Whether they are means over ten cuts of each image, else of the middle.
        """
        x = np.stack([self.prepare(image, size=(256, 256)) for image in images])
        x = crops(x, 224, 224) if oversample else x[:, :, 16:240, 16:240]
        with no_backprop_mode(), using_config("train", False):
            y = self(Variable(np.ascontiguousarray(x)), layers=["prob"])["prob"]
            return F.mean(F.reshape(y, (-1, 10, y.shape[1])), axis=1) if oversample else y

    def _load(self, pretrained_model: Any) -> None:
        if pretrained_model:
            load_npz(pretrained_model, self)


def weights_of(pretrained_model: Any, initializer: Any) -> Any:
    """Return the initializer of filters: zeros where they are read from a file.

    Raises:
        InvalidArgument: The weights should be downloaded.
    """
    if pretrained_model == "auto" or str(pretrained_model).endswith(".caffemodel"):
        raise InvalidArgument(
            f"pretrained_model: expected None, for random weights, or the path of an npz file that "
            f"Chainer wrote, got {pretrained_model!r}: weights are not downloaded or converted"
        )
    return Zero() if pretrained_model else initializer
