"""Models of images, whose weights come from files of their own."""

from hagane.nn.links.vision.googlenet import GoogLeNet
from hagane.nn.links.vision.resnet import ResNet50Layers, ResNet101Layers, ResNet152Layers
from hagane.nn.links.vision.vgg import VGG16Layers, VGG19Layers

__all__ = [
    "GoogLeNet",
    "ResNet50Layers",
    "ResNet101Layers",
    "ResNet152Layers",
    "VGG16Layers",
    "VGG19Layers",
]
