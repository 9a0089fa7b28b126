"""Deep convolutional generative adversarial networks (Radford et al., 2015) for 64x64 images."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def init_weights(module):
    name = type(module).__name__
    if "Conv" in name:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


class Generator(nn.Module):
    def __init__(self, latent=100, width=64, channels=3):
        super().__init__()
        self.latent = latent
        self.main = nn.Sequential(
            nn.ConvTranspose2d(latent, width * 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(width * 8),
            nn.ReLU(True),
            nn.ConvTranspose2d(width * 8, width * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(width * 4, width * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(True),
            nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False),
            nn.Tanh(),
        )
        self.apply(init_weights)

    def forward(self, z):
        if z.dim() == 2:
            z = z[..., None, None]
        return self.main(z)

    def sample(self, count):
        z = torch.randn(count, self.latent, device=next(self.parameters()).device)
        return self(z)


class Discriminator(nn.Module):
    def __init__(self, width=64, channels=3, slope=0.2):
        super().__init__()

        def block(inputs, outputs):
            yield nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False)
            yield nn.BatchNorm2d(outputs)
            yield nn.LeakyReLU(slope, inplace=True)

        self.first = nn.Conv2d(channels, width, 4, 2, 1, bias=False)
        self.blocks = nn.Sequential(
            *block(width, width * 2),
            *block(width * 2, width * 4),
            *block(width * 4, width * 8),
        )
        self.last = nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False)
        self.slope = slope
        self.apply(init_weights)

    def forward(self, image):
        h = F.leaky_relu(self.first(image), self.slope)
        h = self.blocks(h)
        return self.last(h).view(-1)


class GAN(nn.Module):
    """Both networks with the losses of one step of training."""

    def __init__(self, latent=100, width=64, channels=3):
        super().__init__()
        self.generator = Generator(latent, width, channels)
        self.discriminator = Discriminator(width, channels)
        self.criterion = nn.BCEWithLogitsLoss()

    def discriminator_loss(self, real):
        batch = real.size(0)
        fake = self.generator.sample(batch).detach()
        real_scores = self.discriminator(real)
        fake_scores = self.discriminator(fake)
        real_loss = self.criterion(real_scores, torch.full_like(real_scores, 0.9))
        fake_loss = self.criterion(fake_scores, torch.zeros(batch, device=real.device))
        return real_loss + fake_loss

    def generator_loss(self, batch):
        scores = self.discriminator(self.generator.sample(batch))
        return self.criterion(scores, torch.ones_like(scores))

    def penalty_points(self, real, fake):
        """Points between real and generated images, where gradients are penalised."""
        alpha = torch.rand(real.size(0), 1, 1, 1, device=real.device)
        mixed = alpha * real + (1 - alpha) * fake
        return self.discriminator(mixed)

    def interpolate(self, start, end, steps):
        """Images along the way from one latent vector to another, as one strip each."""
        weights = torch.linspace(0, 1, steps)
        path = torch.lerp(start[:, None, :], end[:, None, :], weights[None, :, None])
        pairs, steps, latent = path.shape
        images = self.generator(path.reshape(pairs * steps, latent))
        images = images.unflatten(0, (pairs, steps))
        strips = images.permute(0, 2, 3, 1, 4)
        return strips.flatten(3)
