"""Going Deeper with Convolutions (Szegedy et al., 2014), with batch normalisation."""

from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

Outputs = namedtuple("Outputs", ["logits", "aux2", "aux1"])


class BasicConv2d(nn.Module):
    def __init__(self, in_channels, out_channels, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        x = self.conv(x)
        x = self.bn(x)
        return F.relu(x, inplace=True)


class Inception(nn.Module):
    """Four branches side by side: 1x1, 3x3, 5x5 and pooling, joined along the channels."""

    def __init__(self, in_channels, ch1x1, ch3x3red, ch3x3, ch5x5red, ch5x5, pool_proj):
        super().__init__()
        self.branch1 = BasicConv2d(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            BasicConv2d(in_channels, ch3x3red, kernel_size=1),
            BasicConv2d(ch3x3red, ch3x3, kernel_size=3, padding=1),
        )
        self.branch3 = nn.Sequential(
            BasicConv2d(in_channels, ch5x5red, kernel_size=1),
            BasicConv2d(ch5x5red, ch5x5, kernel_size=5, padding=2),
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            BasicConv2d(in_channels, pool_proj, kernel_size=1),
        )
        self.out_channels = ch1x1 + ch3x3 + ch5x5 + pool_proj

    def _branches(self, x):
        return [branch(x) for branch in (self.branch1, self.branch2, self.branch3, self.branch4)]

    def forward(self, x):
        outputs = self._branches(x)
        return torch.cat(outputs, 1)


class AuxiliaryHead(nn.Module):
    def __init__(self, in_channels, num_classes, hidden=1024, dropout=0.7):
        super().__init__()
        self.reduce = BasicConv2d(in_channels, hidden // 8, kernel_size=1)
        self.fc1 = nn.Linear(hidden // 8 * 4 * 4, hidden)
        self.fc2 = nn.Linear(hidden, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(x, (4, 4))
        x = self.reduce(x)
        x = x.flatten(1)
        x = F.relu(self.fc1(x), inplace=True)
        x = self.dropout(x)
        return self.fc2(x)


class GoogLeNet(nn.Module):
    """The whole network; `divisor` divides the number of channels everywhere."""

    def __init__(self, num_classes=1000, *, aux_logits=True, divisor=1, normalise_input=False):
        super().__init__()
        self.aux_logits = aux_logits
        self.normalise_input = normalise_input

        def inception(inputs, *widths):
            return Inception(inputs // divisor, *(width // divisor for width in widths))

        self.conv1 = BasicConv2d(3, 64 // divisor, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = BasicConv2d(64 // divisor, 64 // divisor, kernel_size=1)
        self.conv3 = BasicConv2d(64 // divisor, 192 // divisor, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)

        self.inception3a = inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)

        self.inception4a = inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)

        self.inception5a = inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = inception(832, 384, 192, 384, 48, 128, 128)

        if aux_logits:
            self.aux1 = AuxiliaryHead(self.inception4a.out_channels, num_classes, 1024 // divisor)
            self.aux2 = AuxiliaryHead(self.inception4d.out_channels, num_classes, 1024 // divisor)
        else:
            self.aux1 = None
            self.aux2 = None

        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(1024 // divisor, num_classes)

    def _normalise(self, x):
        if not self.normalise_input:
            return x
        red = torch.unsqueeze(x[:, 0], 1) * (0.229 / 0.5) + (0.485 - 0.5) / 0.5
        green = torch.unsqueeze(x[:, 1], 1) * (0.224 / 0.5) + (0.456 - 0.5) / 0.5
        blue = torch.unsqueeze(x[:, 2], 1) * (0.225 / 0.5) + (0.406 - 0.5) / 0.5
        return torch.cat((red, green, blue), dim=1)

    def forward(self, x):
        x = self._normalise(x)
        x = self.maxpool1(self.conv1(x))
        x = self.conv2(x)
        x = self.conv3(x)
        x = self.maxpool2(x)

        x = self.inception3a(x)
        x = self.inception3b(x)
        x = self.maxpool3(x)
        x = self.inception4a(x)
        aux1 = None
        if self.aux1 is not None and self.training:
            aux1 = self.aux1(x)

        x = self.inception4b(x)
        x = self.inception4c(x)
        x = self.inception4d(x)
        aux2 = None
        if self.aux2 is not None and self.training:
            aux2 = self.aux2(x)

        x = self.inception4e(x)
        x = self.maxpool4(x)
        x = self.inception5a(x)
        x = self.inception5b(x)

        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.dropout(x)
        x = self.fc(x)
        if self.training and self.aux_logits:
            return Outputs(x, aux2, aux1)
        return x
