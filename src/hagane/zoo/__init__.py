"""Reference definitions of models, as hagane's links, with random weights.

Each class takes the sizes that a smaller or larger form of the model needs; calls take and return
variables in ``(batch, channels, ...)``, or ``(batch, time)`` for tokens.
"""

from hagane.zoo.classifiers import MLP, VGG16, LeNet
from hagane.zoo.dense import DilatedResNet, UNet
from hagane.zoo.generative import VAE, Discriminator, Generator
from hagane.zoo.language import GPT, LSTMLanguageModel
from hagane.zoo.resnet import ResNet18, ResNet50, ResNet152

__all__ = [
    "GPT",
    "MLP",
    "VAE",
    "VGG16",
    "DilatedResNet",
    "Discriminator",
    "Generator",
    "LSTMLanguageModel",
    "LeNet",
    "ResNet18",
    "ResNet50",
    "ResNet152",
    "UNet",
]
