"""Models that draw: a variational autoencoder, and the two halves of DCGAN."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.model.chain import Chain, ChainList


class VAE(Chain):
    """A variational autoencoder of vectors in [0, 1]; a call returns the loss of a batch.

    "Auto-encoding variational Bayes" (Kingma and Welling, 2013). Draws from ``numpy.random``.

    Args:
        size: Of a vector.
        latent: Of the code.
        units: Of the hidden layers.
    """

    def __init__(self, size: int = 784, latent: int = 20, units: int = 500):
        super().__init__()
        with self.init_scope():
            self.enter = L.Linear(size, units)
            self.mean = L.Linear(units, latent)
            self.log_variance = L.Linear(units, latent)
            self.leave = L.Linear(latent, units)
            self.out = L.Linear(units, size)

    def encode(self, x: Any) -> tuple[Any, Any]:
        """Return means and logarithms of variances, ``(batch, latent)`` each."""
        h = F.tanh(self.enter(x))
        return self.mean(h), self.log_variance(h)

    def decode(self, z: Any) -> Any:
        """Return scores of which the sigmoid is the vector, ``(batch, size)``."""
        return self.out(F.tanh(self.leave(z)))

    def forward(self, x: Any) -> Any:
        """Return the negative evidence lower bound, a mean over the batch."""
        mean, log_variance = self.encode(x)
        z = F.gaussian(mean, log_variance)
        error = F.bernoulli_nll(x, self.decode(z))
        return (error + F.gaussian_kl_divergence(mean, log_variance)) / len(x)


class Generator(Chain):
    """DCGAN's generator; ``(batch, latent)`` to images ``(batch, channels, 8 base, 8 base)``.

    "Unsupervised representation learning with deep convolutional generative adversarial networks"
    (Radford et al., 2015). Pixels are in [-1, 1].

    Args:
        latent: Of the code.
        channels: Of the images.
        width: Channels of the last stage but one.
        base: Rows and columns of the smallest image.
    """

    def __init__(self, latent: int = 100, channels: int = 3, width: int = 64, base: int = 4):
        super().__init__()
        self._base, self._width = base, 4 * width
        with self.init_scope():
            self.enter = L.Linear(latent, 4 * width * base * base)
            self.norm0 = L.BatchNormalization(4 * width * base * base)
            self.up1 = L.Deconvolution2D(4 * width, 2 * width, 4, 2, 1)
            self.norm1 = L.BatchNormalization(2 * width)
            self.up2 = L.Deconvolution2D(2 * width, width, 4, 2, 1)
            self.norm2 = L.BatchNormalization(width)
            self.up3 = L.Deconvolution2D(width, channels, 4, 2, 1)

    def forward(self, z: Any) -> Any:
        """Return images."""
        h = F.relu(self.norm0(self.enter(z)))
        h = F.reshape(h, (len(z), self._width, self._base, self._base))
        h = F.relu(self.norm1(self.up1(h)))
        return F.tanh(self.up3(F.relu(self.norm2(self.up2(h)))))


class Discriminator(Chain):
    """DCGAN's discriminator; images ``(batch, channels, height, width)`` to ``(batch, 1)``.

    Args:
        channels: Of the images.
        width: Channels of the first stage.
    """

    def __init__(self, channels: int = 3, width: int = 64):
        super().__init__()
        widths = [channels, width, 2 * width, 4 * width]
        with self.init_scope():
            self.down = ChainList(*(L.Convolution2D(a, b, 4, 2, 1) for a, b in pairwise(widths)))
            self.out = L.Linear(None, 1)

    def forward(self, x: Any) -> Any:
        """Return scores; larger ones for images that look real."""
        for down in self.down.children():
            x = F.leaky_relu(down(x))
        return self.out(x)
