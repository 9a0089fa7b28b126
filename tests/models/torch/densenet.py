"""Densely Connected Convolutional Networks (Huang et al., 2016)."""

from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth, bottleneck=4, drop_rate=0.0):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, bottleneck * growth, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bottleneck * growth)
        self.conv2 = nn.Conv2d(bottleneck * growth, growth, kernel_size=3, padding=1, bias=False)
        self.drop_rate = float(drop_rate)

    def bottleneck(self, features):
        joined = torch.cat(features, 1)
        return self.conv1(F.relu(self.norm1(joined)))

    def forward(self, features):
        if isinstance(features, torch.Tensor):
            features = [features]
        new = self.bottleneck(features)
        new = self.conv2(F.relu(self.norm2(new)))
        if self.drop_rate > 0:
            new = F.dropout(new, p=self.drop_rate, training=self.training)
        return new


class DenseBlock(nn.ModuleDict):
    def __init__(self, count, inputs, growth, **options):
        super().__init__()
        for i in range(count):
            self.add_module(f"layer{i + 1}", DenseLayer(inputs + i * growth, growth, **options))

    def forward(self, x):
        features = [x]
        for _, layer in self.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    def __init__(self, growth=32, blocks=(6, 12, 24, 16), initial=64, classes=1000, **options):
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                [
                    ("conv0", nn.Conv2d(3, initial, 7, stride=2, padding=3, bias=False)),
                    ("norm0", nn.BatchNorm2d(initial)),
                    ("relu0", nn.ReLU(inplace=True)),
                    ("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1)),
                ]
            )
        )
        channels = initial
        for i, count in enumerate(blocks, start=1):
            block = DenseBlock(count, channels, growth, **options)
            self.features.add_module(f"denseblock{i}", block)
            channels += count * growth
            if i != len(blocks):
                self.features.add_module(f"transition{i}", Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x):
        features = self.features(x)
        out = F.relu(features, inplace=True)
        out = F.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        return self.classifier(out)
