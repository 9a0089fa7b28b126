"""Images of Pillow, data sets and transforms of torchvision: sizes and element types."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source
from hagane.frontends.python.report.findings import Report

_HEADER = """\
import numpy as np
import torch
from PIL import Image
import torchvision
from torchvision import datasets, transforms as T
from torch.utils.data import DataLoader
RGB = Image.new('RGB', (64, 48))
GREY = Image.new('L', (28, 28))
TO = T.ToTensor()
"""


def scripted(folder: Path, text: str) -> Report:
    path = folder / "program.py"
    path.write_text(_HEADER + text, encoding="utf-8")
    return check_source(Request(path, SCRIPT))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("TO(RGB)", "torch.Tensor(dtype=float32, shape=(3, 48, 64))"),
        ("TO(GREY)", "torch.Tensor(dtype=float32, shape=(1, 28, 28))"),
        ("TO(np.zeros((5, 6, 3)))", "torch.Tensor(dtype=float64, shape=(3, 5, 6))"),
        ("T.PILToTensor()(RGB)", "torch.Tensor(dtype=uint8, shape=(3, 48, 64))"),
        ("np.array(RGB)", "numpy.ndarray(dtype=uint8, shape=(48, 64, 3))"),
        ("np.asarray(GREY)", "numpy.ndarray(dtype=uint8, shape=(28, 28))"),
        ("TO(T.Resize(24)(RGB))", "torch.Tensor(dtype=float32, shape=(3, 24, 32))"),
        ("TO(T.Resize((24, 20))(RGB))", "torch.Tensor(dtype=float32, shape=(3, 24, 20))"),
        ("T.functional.resize(TO(RGB), 96)", "torch.Tensor(dtype=float32, shape=(3, 96, 128))"),
        ("TO(T.RandomCrop(32, padding=4)(RGB))", "torch.Tensor(dtype=float32, shape=(3, 32, 32))"),
        ("TO(T.Pad((1, 2))(GREY))", "torch.Tensor(dtype=float32, shape=(1, 32, 30))"),
        ("TO(T.Pad((1, 2, 3, 4))(GREY))", "torch.Tensor(dtype=float32, shape=(1, 34, 32))"),
        ("TO(T.Grayscale(3)(GREY))", "torch.Tensor(dtype=float32, shape=(3, 28, 28))"),
        ("TO(RGB.transpose(Image.ROTATE_90))", "torch.Tensor(dtype=float32, shape=(3, 64, 48))"),
        ("TO(RGB.crop((1, 2, 11, 22)))", "torch.Tensor(dtype=float32, shape=(3, 20, 10))"),
        ("TO(T.ToPILImage()(TO(RGB)))", "torch.Tensor(dtype=float32, shape=(3, 48, 64))"),
        ("T.Normalize((0.5,), (0.5,))(TO(RGB))", "torch.Tensor(dtype=float32, shape=(3, 48, 64))"),
        (
            "torchvision.utils.make_grid(torch.zeros(20, 1, 28, 28))",
            "torch.Tensor(dtype=float32, shape=(3, 92, 242))",
        ),
        (
            "datasets.CIFAR10('.', transform=TO)[0][0]",
            "torch.Tensor(dtype=float32, shape=(3, 32, 32))",
        ),
        ("datasets.MNIST('.').data", "torch.Tensor(dtype=uint8, shape=(60000, 28, 28))"),
        (
            "next(iter(DataLoader(datasets.MNIST('.', False, TO), 50)))[1]",
            "torch.Tensor(dtype=int64, shape=(50,))",
        ),
        (
            "TO(T.CenterCrop(20)(datasets.ImageFolder('.')[0][0]))",
            "torch.Tensor(dtype=float32, shape=(3, 20, 20))",
        ),
    ],
)
def test_images_and_their_tensors_have_sizes(text: str, shape: str, tmp_path: Path) -> None:
    report = scripted(tmp_path, f"result = {text}")
    assert (report.errors, report.unknown) == ([], [])
    (found,) = [one.type for one in report.types if one.expression == "result"]
    assert found == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "T.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))(TO(GREY))",
            "Normalize: expected a number of 'mean' for each of 1 channels, got 3 for",
        ),
        ("T.Normalize((0.5,), (0.5,))(RGB)", "Normalize takes a tensor, got PIL.Image.Image"),
        ("T.Normalize((0.5,), (0.5,))(T.PILToTensor()(RGB))", "expected a tensor of floats, got"),
        ("TO(TO(RGB))", "ToTensor takes a PIL image or an array, got torch.Tensor"),
        ("T.RandomCrop(32)(GREY)", "RandomCrop of (32, 32) of an image of (28, 28)"),
        (
            "T.Resize(32, sizes=3)",
            "Resize() got an unexpected argument 'sizes'; its arguments: size",
        ),
        ("datasets.EMNIST('.', 'lettres')", "expected one of byclass, bymerge, balanced"),
    ],
)
def test_transforms_that_do_not_fit_are_errors(text: str, message: str, tmp_path: Path) -> None:
    (error,) = scripted(tmp_path, text).errors
    assert message in error.message


def test_images_of_unknown_sizes_are_no_batch_of_known_ones(tmp_path: Path) -> None:
    report = scripted(
        tmp_path,
        "x = TO(Image.open('cat.png').convert('RGB'))\ntorch.nn.Conv2d(3, 8, 3)(x)\n"
        "torch.nn.Linear(7, 2)(x)",
    )
    assert report.errors == []
