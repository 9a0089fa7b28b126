"""The models of ``training_models.py`` written for Chainer 7.8.1, for ``training.py --chainer``.

Runs in Chainer's own environment, without PyTorch: weights and the batch come from a file that
``training.py`` writes, under PyTorch's names. Functions are applied to parameters as Chainer's
links do. GELU, which Chainer lacks, is written with ``erf`` (SciPy computes it); attention is two
products around a softmax. Adam adds its epsilon before the correction of the first steps, PyTorch
behind it: losses of those steps differ by some 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import chainer
import chainer.functions as F  # noqa: N812
import numpy as np

_EPS = 1e-5


class Network(chainer.Chain):  # type: ignore[misc]
    """Parameters and running statistics under PyTorch's names, and functions of them."""

    def __init__(self, weights: Mapping[str, np.ndarray]):
        super().__init__()
        self.held: dict[str, Any] = {}
        with self.init_scope():
            for name, array in weights.items():
                if name.endswith("num_batches_tracked"):
                    continue
                if "running_" in name:
                    self.held[name] = array.copy()
                    continue
                parts = np.split(array, 4) if ".weight_" in name or ".bias_" in name else [array]
                made = [chainer.Parameter(part.copy()) for part in parts]
                for number, parameter in enumerate(made):
                    setattr(self, f"{name.replace('.', '_')}_{number}", parameter)
                self.held[name] = made if len(made) > 1 else made[0]

    def names(self, ending: str) -> list[str]:
        """Return the names that end so, in order."""
        return [name for name in self.held if name.endswith(ending)]

    def linear(self, name: str, x: Any) -> Any:
        """Return a linear layer of the last axis."""
        weight, bias = self.held[f"{name}.weight"], self.held[f"{name}.bias"]
        return F.linear(x, weight, bias, n_batch_axes=x.ndim - 1)

    def conv(self, name: str, x: Any, stride: int = 1, dilate: int = 1) -> Any:
        """Return a convolution that pads to keep sizes, but for its stride."""
        weight, bias = self.held[f"{name}.weight"], self.held.get(f"{name}.bias")
        pad = dilate * (weight.shape[-1] // 2)
        if x.ndim == 3:
            return F.convolution_1d(x, weight, bias, stride, pad, dilate=dilate)
        return F.convolution_2d(x, weight, bias, stride, pad)

    def norm(self, name: str, x: Any) -> Any:
        """Return batch normalisation, which moves the running statistics."""
        held = (self.held[f"{name}.{part}"] for part in ("weight", "bias"))
        mean, var = (self.held[f"{name}.running_{part}"] for part in ("mean", "var"))
        return F.batch_normalization(
            x, *held, eps=_EPS, running_mean=mean, running_var=var, decay=0.9
        )

    def layer_norm(self, name: str, x: Any) -> Any:
        """Return the normalisation of the last axis."""
        held = (self.held[f"{name}.{part}"] for part in ("weight", "bias"))
        rows = F.reshape(x, (-1, x.shape[-1]))
        return F.reshape(F.layer_normalization(rows, *held, eps=_EPS), x.shape)

    def embed(self, name: str, x: Any) -> Any:
        """Return rows of an embedding."""
        return F.embed_id(x, self.held[f"{name}.weight"])


def mlp(net: Network, x: Any) -> Any:
    """Return the scores of two hidden layers."""
    return net.linear("4", F.relu(net.linear("2", F.relu(net.linear("0", x)))))


def lenet(net: Network, x: Any) -> Any:
    """Return the scores of LeNet-5, whose second convolution is not padded."""
    h = F.max_pooling_2d(F.relu(net.conv("0", x)), 2)
    h = F.convolution_2d(h, net.held["3.weight"], net.held["3.bias"])
    h = F.max_pooling_2d(F.relu(h), 2)
    return net.linear("11", F.relu(net.linear("9", F.relu(net.linear("7", h.reshape(len(x), -1))))))


def resnet(net: Network, x: Any) -> Any:
    """Return the scores of a residual network; small ones begin without pooling."""

    def unit(name: str, x: Any, stride: int = 1) -> Any:
        return net.norm(f"{name}.norm", net.conv(f"{name}.conv", x, stride))

    small = net.held["0.conv.weight"].shape[-1] == 3
    h = F.relu(unit("0", x, 1 if small else 2))
    if not small:
        h = F.max_pooling_2d(h, 3, 2, 1, cover_all=False)
    blocks = [name.removesuffix(".body.0.conv.weight") for name in net.names("body.0.conv.weight")]
    narrow = f"{blocks[0]}.body.4.conv.weight" in net.held
    for number, name in enumerate(blocks):
        shortcut = h
        # Where sizes are halved, channels double; the first block of all keeps sizes.
        stride = 2 if number and f"{name}.shortcut.conv.weight" in net.held else 1
        if f"{name}.shortcut.conv.weight" in net.held:
            shortcut = unit(f"{name}.shortcut", h, stride)
        if narrow:
            h = F.relu(unit(f"{name}.body.2", F.relu(unit(f"{name}.body.0", h)), stride))
            h = unit(f"{name}.body.4", h)
        else:
            h = unit(f"{name}.body.2", F.relu(unit(f"{name}.body.0", h, stride)))
        h = F.relu(h + shortcut)
    last = net.names(".weight")[-1].removesuffix(".weight")
    return net.linear(last, F.average(h, axis=(2, 3)))


def unet(net: Network, x: Any) -> Any:
    """Return the scores of pixels of U-Net."""

    def pair(name: str, x: Any) -> Any:
        return F.relu(net.conv(f"{name}.2", F.relu(net.conv(f"{name}.0", x))))

    def level(name: str, x: Any) -> Any:
        x = pair(f"{name}.down", x)
        if f"{name}.up.weight" not in net.held:
            return x
        below = level(f"{name}.inner", F.max_pooling_2d(x, 2))
        weight, bias = net.held[f"{name}.up.weight"], net.held[f"{name}.up.bias"]
        return pair(f"{name}.join", F.concat([x, F.deconvolution_2d(below, weight, bias, 2)]))

    return net.conv("1", level("0", x))


def dilated(net: Network, x: Any) -> Any:
    """Return the scores of places of a residual network whose dilation doubles."""
    h = net.conv("0", x)
    for number in range(6):
        body, before = f"{number + 1}.body", h
        h = F.relu(net.norm(f"{body}.1", net.conv(f"{body}.0", h, dilate=1 << number)))
        h = F.relu(net.norm(f"{body}.4", net.conv(f"{body}.3", h, dilate=1 << number)) + before)
    return net.conv("7", h)


def lstm(net: Network, x: Any) -> Any:
    """Return the scores of next tokens of two layers of LSTM."""
    kinds = [
        [
            [part for side in ("ih", "hh") for part in net.held[f"lstm.{kind}_{side}_l{layer}"]]
            for layer in range(2)
        ]
        for kind in ("weight", "bias")
    ]
    steps = F.separate(net.embed("embed", x.T), axis=0)
    start = np.zeros((2, len(x), steps[0].shape[1]), np.float32)
    _, _, found = F.n_step_lstm(2, 0.0, start, start, *kinds, steps)
    return F.swapaxes(net.linear("out", F.stack(found, axis=1)), 1, 2)


def transformer(heads: int, *, causal: bool) -> Callable[[Network, Any], Any]:
    """Return a transformer: of next tokens, normalised first, or of whole texts."""

    def attend(net: Network, name: str, x: Any) -> Any:
        batch, time, units = x.shape
        split = F.reshape(net.linear(f"{name}.read", x), (batch, time, 3, heads, units // heads))
        q, k, v = F.separate(F.transpose(split, (2, 0, 3, 1, 4)), axis=0)
        scores = F.matmul(q, k, transb=True) * (1 / math.sqrt(units // heads))
        if causal:
            mask = np.triu(np.full((time, time), -np.inf, np.float32), 1)
            scores = scores + np.broadcast_to(mask, scores.shape)
        found = F.transpose(F.matmul(F.softmax(scores, axis=3), v), (0, 2, 1, 3))
        return net.linear(f"{name}.out", F.reshape(found, x.shape))

    def feed(net: Network, name: str, x: Any) -> Any:
        h = net.linear(f"{name}.wide", x)
        return net.linear(f"{name}.narrow", 0.5 * h * (1 + F.erf(h * math.sqrt(0.5))))

    def scores(net: Network, x: Any) -> Any:
        place = net.held["place.weight"][: x.shape[1]]
        h = net.embed("embed", x)
        h = h + F.broadcast_to(place, h.shape)
        if not causal:
            h = net.layer_norm("norm", h)
        for name in net.names("read.weight"):
            name = name.removesuffix(".read.weight")
            if causal:
                h = h + attend(net, name, net.layer_norm(f"{name}.norm1", h))
                h = h + feed(net, name, net.layer_norm(f"{name}.norm2", h))
            else:
                h = net.layer_norm(f"{name}.norm1", h + attend(net, name, h))
                h = net.layer_norm(f"{name}.norm2", h + feed(net, name, h))
        if causal:
            return F.swapaxes(net.linear("out", net.layer_norm("norm", h)), 1, 2)
        return net.linear("out", h[:, 0])

    return scores


MODELS: Mapping[str, Callable[[Network, Any], Any]] = {
    "MLP": mlp,
    "LeNet": lenet,
    "ResNet-18": resnet,
    "ResNet-50": resnet,
    "U-Net": unet,
    "dilated ResNet": dilated,
    "LSTM": lstm,
    "transformer": transformer(8, causal=True),
    "BERT-base": transformer(12, causal=False),
}


def optimizer(settings: Mapping[str, Any]) -> Any:
    """Return Chainer's optimizer of the settings of PyTorch's."""
    if "momentum" in settings:
        return chainer.optimizers.MomentumSGD(settings["lr"], settings["momentum"])
    # AdamW's decay is scaled by the rate; Chainer's is not.
    decay = settings["lr"] * settings["weight_decay"]
    return chainer.optimizers.Adam(settings["lr"], weight_decay_rate=decay)


def stepper(name: str, path: str) -> Callable[[], float]:
    """Return a function that does one step from the state in a file, and returns its loss."""
    with np.load(path) as kept:
        weights = {key[2:]: kept[key] for key in kept.files if key.startswith("w.")}
        x, target = (kept[key] if kept[key].dtype.kind == "f" else kept[key].astype(np.int32)
                     for key in ("x", "target"))  # fmt: skip
        settings = {key[2:]: float(kept[key]) for key in kept.files if key.startswith("o.")}
    net = Network(weights)
    rule = optimizer(settings).setup(net)

    def step() -> float:
        loss = F.softmax_cross_entropy(MODELS[name](net, x), target)
        net.cleargrads()
        loss.backward()
        rule.update()
        return float(loss.array)

    return step
