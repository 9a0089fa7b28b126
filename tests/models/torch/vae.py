"""Auto-Encoding Variational Bayes (Kingma and Welling, 2013), with convolutions."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Output(NamedTuple):
    reconstruction: Tensor
    mean: Tensor
    log_var: Tensor


def reparameterise(mean: Tensor, log_var: Tensor) -> Tensor:
    std = torch.exp(0.5 * log_var)
    noise = torch.randn_like(std)
    return mean + noise * std


class Encoder(nn.Module):
    def __init__(self, channels: int, widths: tuple[int, ...], latent: int, size: int):
        super().__init__()
        stages = []
        for width in widths:
            conv = nn.Conv2d(channels, width, kernel_size=3, stride=2, padding=1)
            stages.append(nn.Sequential(conv, nn.BatchNorm2d(width), nn.LeakyReLU()))
            channels = width
        self.stages = nn.ModuleList(stages)
        self.size = size // 2 ** len(widths)
        self.fc = nn.Linear(channels * self.size**2, 2 * latent)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for stage in self.stages:
            x = stage(x)
        x = x.flatten(start_dim=1)
        mean, log_var = self.fc(x).chunk(2, dim=-1)
        return mean, log_var


class Decoder(nn.Module):
    def __init__(self, channels: int, widths: tuple[int, ...], latent: int, size: int):
        super().__init__()
        self.size = size // 2 ** len(widths)
        self.width = widths[-1]
        self.fc = nn.Linear(latent, self.width * self.size**2)
        layers: list[nn.Module] = []
        reverse = [*widths[::-1], widths[0]]
        for inputs, outputs in zip(reverse, reverse[1:], strict=False):
            up = nn.ConvTranspose2d(inputs, outputs, 3, stride=2, padding=1, output_padding=1)
            layers.append(up)
            layers.append(nn.BatchNorm2d(outputs))
            layers.append(nn.LeakyReLU())
        self.layers = nn.Sequential(*layers)
        self.final = nn.Conv2d(widths[0], channels, kernel_size=3, padding="same")

    def forward(self, z: Tensor) -> Tensor:
        h = self.fc(z).view(-1, self.width, self.size, self.size)
        h = self.layers(h)
        return torch.sigmoid(self.final(h))


class VAE(nn.Module):
    def __init__(self, channels=3, widths=(32, 64, 128, 256), latent=128, size=64):
        super().__init__()
        self.latent = latent
        self.encoder = Encoder(channels, widths, latent, size)
        self.decoder = Decoder(channels, widths, latent, size)
        self.register_buffer("prior_mean", torch.zeros(latent))

    def encode(self, x):
        return self.encoder(x)

    def forward(self, x):
        mean, log_var = self.encode(x)
        z = reparameterise(mean, log_var) if self.training else mean
        return Output(self.decoder(z), mean, log_var)

    def loss(self, x, beta=1.0):
        reconstruction, mean, log_var = self(x)
        error = F.mse_loss(reconstruction, x, reduction="none").sum(dim=(1, 2, 3))
        kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp(), dim=1)
        return (error + beta * kl).mean()

    def importance_bound(self, x, samples):
        """The tighter bound of importance-weighted autoencoders (Burda et al., 2015)."""
        mean, log_var = self.encode(x)
        std = torch.exp(0.5 * log_var)
        noise = torch.randn(samples, *mean.shape, device=x.device)
        z = mean + std * noise
        decoded = self.decoder(z.reshape(-1, self.latent))
        decoded = decoded.view(samples, x.size(0), *x.shape[1:])
        log_p = -((decoded - x) ** 2).flatten(2).sum(-1)
        log_prior = -0.5 * (z - self.prior_mean).square().sum(-1)
        log_q = -0.5 * (noise**2 + log_var).sum(-1)
        weights = log_p + log_prior - log_q
        return (torch.logsumexp(weights, dim=0) - torch.log(torch.tensor(samples))).mean()

    @torch.no_grad()
    def sample(self, count):
        z = self.prior_mean + torch.randn(count, self.latent)
        return self.decoder(z)
