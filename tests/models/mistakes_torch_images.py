"""Mistakes in the networks for images."""

from __future__ import annotations

from .mistake import Kind, Mistake

_RESNET = {"batch": 2, "height": 64, "width": 56}
_TRAIN = {"batch": 2, "height": 33, "width": 34}
_BATCH = {"batch": 2}
_UNET = {"batch": 2, "height": 17, "width": 17}  # 32 x 32: even at every level
_MASKS = {"batch": 2, "h": 2, "w": 4}
_VGG = {"batch": 2, "height": 33, "width": 34}
_GRAMS = {"batch": 2, "height": 30, "width": 31}
_DENSE = {"batch": 2, "height": 36, "width": 37}

RESNET = (
    Mistake(
        "resnet50",
        "nn.Linear(width * 8 * Bottleneck.expansion, classes)",
        "nn.Linear(width * 8, classes)",
        "return self.fc(x)",
        Kind.FEATURES,
        _RESNET,
    ),
    Mistake(
        "resnet50",
        "        x = torch.flatten(x, 1)\n",
        "",
        "return self.fc(x)",
        Kind.FLATTEN,
        _RESNET,
    ),
    Mistake(
        "resnet50",
        "stride=stride, padding=1, bias=False)",
        "stride=stride, padding=0, bias=False)",
        "out += identity",
        Kind.STRIDE,
        _RESNET,
    ),
    Mistake(
        "resnet50",
        "conv1x1(self.inputs, outputs, stride),",
        "conv1x1(self.inputs, outputs),",
        "out += identity",
        Kind.STRIDE,
        _RESNET,
        passes={"batch": 2, "height": 1, "width": 1},
    ),
    Mistake(
        "resnet50",
        "x = self.features(x)[-1]",
        "x = self.features(x)",
        "x = self.avgpool(x)",
        Kind.LIST,
        _RESNET,
    ),
    Mistake(
        "resnet50-features",
        "self.bn2 = nn.BatchNorm2d(width)",
        "self.bn2 = nn.BatchNorm2d(width * self.expansion)",
        "out = self.relu(self.bn2(self.conv2(out)))",
        Kind.FEATURES,
        _RESNET,
    ),
)

GOOGLENET = (
    Mistake(
        "googlenet-train",
        "inception(528, 256, 160",
        "inception(512, 256, 160",
        "x = self.conv(x)",
        Kind.FEATURES,
        _TRAIN,
    ),
    Mistake(
        "googlenet-train",
        "nn.Linear(hidden // 8 * 4 * 4, hidden)",
        "nn.Linear(hidden // 8 * 5 * 5, hidden)",
        "x = F.relu(self.fc1(x), inplace=True)",
        Kind.FEATURES,
        _TRAIN,
    ),
    Mistake(
        "googlenet-train",
        "torch.cat(outputs, 1)",
        "torch.cat(outputs, 2)",
        "return torch.cat(outputs, 2)",
        Kind.CONCAT,
        _TRAIN,
    ),
    Mistake(
        "googlenet-eval",
        "kernel_size=5, padding=2",
        "kernel_size=5, padding=1",
        "return torch.cat(outputs, 1)",
        Kind.STRIDE,
        _BATCH,
    ),
    Mistake(
        "googlenet-train",
        "x = x.flatten(1)",
        "x = x.flatten(2)",
        "x = F.relu(self.fc1(x), inplace=True)",
        Kind.FLATTEN,
        _TRAIN,
    ),
    Mistake(
        "googlenet-eval",
        "torch.unsqueeze(x[:, 1], 1)",
        "x[:, 1]",
        "return torch.cat((red, green, blue), dim=1)",
        Kind.KEEPDIM,
        _BATCH,
    ),
    Mistake(
        "googlenet-eval",
        "nn.MaxPool2d(kernel_size=3, stride=1, padding=1",
        "nn.MaxPool2d(kernel_size=3, stride=2, padding=1",
        "return torch.cat(outputs, 1)",
        Kind.STRIDE,
        _BATCH,
    ),
)

UNET = (
    Mistake(
        "unet-bilinear",
        "if dy > 0 or dx > 0:",
        "if dy > 0 and dx > 0:",
        "joined = torch.cat([skip, x], dim=1)",
        Kind.ODD,
        {"batch": 2, "height": 2, "width": 17},
        passes=_UNET,
    ),
    Mistake(
        "unet-bilinear",
        "[dx // 2, dx - dx // 2, dy // 2, dy - dy // 2]",
        "[dx // 2, dx // 2, dy // 2, dy // 2]",
        "joined = torch.cat([skip, x], dim=1)",
        Kind.ODD,
        {"batch": 2, "height": 2, "width": 17},
        passes=_UNET,
    ),
    Mistake(
        "unet-transposed",
        "[dx // 2, dx - dx // 2, dy // 2, dy - dy // 2]",
        "[dy // 2, dy - dy // 2, dx // 2, dx - dx // 2]",
        "joined = torch.cat([skip, x], dim=1)",
        Kind.SWAPPED,
        {"batch": 2, "height": 8, "w": 2},
        passes={"batch": 2, "height": 1, "w": 2},
    ),
    Mistake(
        "unet-bilinear",
        "torch.cat([skip, x], dim=1)",
        "torch.cat([skip, x], dim=2)",
        "return self.conv(joined)",
        Kind.CONCAT,
        _UNET,
    ),
    Mistake(
        "unet-bilinear",
        "x = up(x, skips.pop())",
        "x = up(x, skips.pop(0))",
        "return self.conv(joined)",
        Kind.LIST,
        _UNET,
    ),
    Mistake(
        "unet-loss",
        ".permute(0, 3, 1, 2).float()",
        ".permute(0, 3, 1).float()",
        "truth = F.one_hot(target",
        Kind.PERMUTE,
        _MASKS,
    ),
    Mistake(
        "unet-loss",
        ".permute(0, 3, 1, 2).float()",
        ".float()",
        "overlap = (probabilities * truth).sum(axes)",
        Kind.SWAPPED,
        _MASKS,
    ),
    Mistake(
        "unet-loss",
        "axes = (0, 2, 3)",
        "axes = (0, 2, 3, 4)",
        "overlap = (probabilities * truth).sum(axes)",
        Kind.AXIS,
        _MASKS,
    ),
    Mistake(
        "unet-loss",
        "F.cross_entropy(logits, target)",
        "F.cross_entropy(logits, target.float())",
        "entropy = F.cross_entropy(",
        Kind.DTYPE,
        _MASKS,
    ),
    Mistake(
        "unet-bilinear",
        "scale_factor=2,",
        "scale_factor=3,",
        "joined = torch.cat([skip, x], dim=1)",
        Kind.STRIDE,
        _UNET,
    ),
)

VGG = (
    Mistake(
        "vgg16",
        "channels * 7 * 7",
        "channels * 6 * 6",
        "return self.classifier(x)",
        Kind.FEATURES,
        _VGG,
    ),
    Mistake(
        "vgg16",
        "        x = x.view(x.size(0), -1)\n",
        "",
        "return self.classifier(x)",
        Kind.FLATTEN,
        _VGG,
    ),
    Mistake(
        "vgg16-normalised",
        "        channels = width\n",
        "",
        "x = self.features(x)",
        Kind.FEATURES,
        {"batch": 2, "h": 1, "w": 3},
    ),
    Mistake(
        "vgg16",
        "nn.MaxPool2d(kernel_size=2, stride=2)",
        "nn.MaxPool2d(kernel_size=3, stride=2)",
        "x = self.features(x)",
        Kind.STRIDE,
        {"batch": 2, "height": 1, "width": 34},
        passes=_VGG,
    ),
    Mistake(
        "vgg16-grams",
        "x.reshape(n, c, h * w)",
        "x.reshape(n, c, h, w)",
        "grams[index] = torch.bmm(",
        Kind.FLATTEN,
        _GRAMS,
    ),
    Mistake(
        "vgg16-grams",
        "flat.transpose(1, 2)",
        "flat.transpose(0, 1)",
        "grams[index] = torch.bmm(",
        Kind.SWAPPED,
        _GRAMS,
    ),
    Mistake(
        "vgg16-grams",
        "n, c, h, w = x.shape",
        "n, c, h = x.shape",
        "n, c, h = x.shape",
        Kind.UNPACK,
        _GRAMS,
    ),
)

DENSENET = (
    Mistake(
        "densenet121",
        "inputs + i * growth",
        "inputs + (i + 1) * growth",
        "return self.conv1(F.relu(self.norm1(joined)))",
        Kind.FEATURES,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "        return torch.cat(features, 1)",
        "        return features",
        "features = self.features(x)",
        Kind.LIST,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "features.append(layer(features))",
        "features = [layer(features)]",
        "return self.conv1(F.relu(self.norm1(joined)))",
        Kind.LIST,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "features.append(layer(features))",
        "features.extend(layer(features))",
        "joined = torch.cat(features, 1)",
        Kind.LIST,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "joined = torch.cat(features, 1)",
        "joined = torch.cat(features, -1)",
        "joined = torch.cat(features, -1)",
        Kind.CONCAT,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "Transition(channels, channels // 2)",
        "Transition(channels, channels // 4)",
        "return self.conv1(F.relu(self.norm1(joined)))",
        Kind.FEATURES,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "        out = torch.flatten(out, 1)\n",
        "",
        "return self.classifier(out)",
        Kind.FLATTEN,
        _DENSE,
    ),
    Mistake(
        "densenet121",
        "kernel_size=3, padding=1, bias=False)",
        "kernel_size=3, padding=0, bias=False)",
        "joined = torch.cat(features, 1)",
        Kind.STRIDE,
        _DENSE,
    ),
)

IMAGES = (*RESNET, *GOOGLENET, *UNET, *VGG, *DENSENET)
