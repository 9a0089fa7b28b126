"""U-Net (Ronneberger et al., 2015) that accepts images of any size."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Sequential):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        mid_channels = mid_channels or out_channels
        super().__init__(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x):
        return self.conv(self.pool(x))


class Up(nn.Module):
    """Doubles the size, pads to the size of the skip connection, joins and convolves."""

    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        self.bilinear = bilinear
        if bilinear:
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x, skip):
        if self.bilinear:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        else:
            x = self.up(x)
        dy = skip.size(2) - x.size(2)
        dx = skip.size(3) - x.size(3)
        if dy > 0 or dx > 0:
            x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        joined = torch.cat([skip, x], dim=1)
        return self.conv(joined)


class UNet(nn.Module):
    def __init__(self, channels=3, classes=2, width=64, depth=4, bilinear=True):
        super().__init__()
        factor = 2 if bilinear else 1
        widths = [width * 2**level for level in range(depth + 1)]
        widths[-1] //= factor

        self.inc = DoubleConv(channels, widths[0])
        self.downs = nn.ModuleList(
            Down(fewer, more) for fewer, more in zip(widths[:-1], widths[1:], strict=True)
        )
        self.ups = nn.ModuleList()
        for level in reversed(range(depth)):
            inputs = width * 2 ** (level + 1)
            outputs = width * 2**level // (factor if level else 1)
            self.ups.append(Up(inputs, outputs, bilinear))
        self.outc = nn.Conv2d(width, classes, kernel_size=1)

    def forward(self, image):
        x = self.inc(image)
        skips = [x]
        for down in self.downs:
            x = down(x)
            skips.append(x)
        x = skips.pop()
        for up in self.ups:
            x = up(x, skips.pop())
        assert not skips
        return self.outc(x)

    def loss(self, image, target):
        """Cross entropy plus one minus the Dice coefficient."""
        logits = self(image)
        entropy = F.cross_entropy(logits, target)
        probabilities = logits.softmax(dim=1)
        truth = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).float()
        axes = (0, 2, 3)
        overlap = (probabilities * truth).sum(axes)
        total = probabilities.sum(axes) + truth.sum(axes)
        dice = (2 * overlap + 1e-6) / (total + 1e-6)
        return entropy + 1 - dice.mean()

    @torch.no_grad()
    def segment(self, image):
        self.eval()
        return self(image).argmax(dim=1)
