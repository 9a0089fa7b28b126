"""Very Deep Convolutional Networks (Simonyan and Zisserman, 2014): configurations A to E."""

import torch
from torch import nn

CONFIGURATIONS = {
    "vgg11": [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"],
    "vgg16": [64, 64, "M", 128, 128, "M", *[256] * 3, "M", *[512] * 3, "M", *[512] * 3, "M"],
    "vgg19": [64, 64, "M", 128, 128, "M", *[256] * 4, "M", *[512] * 4, "M", *[512] * 4, "M"],
}


def make_layers(configuration, *, batch_norm=False, divisor=1):
    layers = []
    channels = 3
    for item in configuration:
        if item == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        width = item // divisor
        layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1)]
        if batch_norm:
            layers += [nn.BatchNorm2d(width)]
        layers += [nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers), channels


class VGG(nn.Module):
    def __init__(self, name="vgg16", classes=1000, *, batch_norm=False, divisor=1, hidden=4096):
        super().__init__()
        self.features, channels = make_layers(
            CONFIGURATIONS[name], batch_norm=batch_norm, divisor=divisor
        )
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(channels * 7 * 7, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        x = self.features(x)
        x = self.avgpool(x)
        x = x.view(x.size(0), -1)
        return self.classifier(x)

    def style_grams(self, x, layers=(3, 8, 15)):
        """Gram matrices of the outputs of some layers, as for the transfer of style."""
        grams = {}
        for index, layer in enumerate(self.features):
            x = layer(x)
            if index in layers:
                n, c, h, w = x.shape
                flat = x.reshape(n, c, h * w)
                grams[index] = torch.bmm(flat, flat.transpose(1, 2)) / (c * h * w)
            if index == max(layers):
                break
        return grams
