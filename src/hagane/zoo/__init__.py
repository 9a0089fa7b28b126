"""Reference definitions of models, as hagane's links, with random weights.

Each class takes the sizes that a smaller or larger form of the model needs; calls take and return
variables in ``(batch, channels, ...)``, or ``(batch, time)`` for tokens.
"""

from hagane.zoo.bert import BERT, BERTClassifier, BERTWords
from hagane.zoo.classifiers import MLP, VGG16, GoogLeNet, LeNet
from hagane.zoo.dense import FCN, DilatedResNet, UNet
from hagane.zoo.detection import SSD300, default_boxes, matched_boxes, placed_boxes
from hagane.zoo.generative import VAE, Discriminator, Generator
from hagane.zoo.language import GPT, LSTMLanguageModel
from hagane.zoo.resnet import ResNet18, ResNet50, ResNet152
from hagane.zoo.translation import Seq2Seq

__all__ = [
    "BERT",
    "FCN",
    "GPT",
    "MLP",
    "SSD300",
    "VAE",
    "VGG16",
    "BERTClassifier",
    "BERTWords",
    "DilatedResNet",
    "Discriminator",
    "Generator",
    "GoogLeNet",
    "LSTMLanguageModel",
    "LeNet",
    "ResNet18",
    "ResNet50",
    "ResNet152",
    "Seq2Seq",
    "UNet",
    "default_boxes",
    "matched_boxes",
    "placed_boxes",
]
