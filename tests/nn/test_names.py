"""The public names of Chainer 7.8.1, and their parameters."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from pathlib import Path
from typing import Any

import pytest

import hagane
import hagane.training

ROOT = Path(__file__).resolve().parents[2]

LINES = (Path(__file__).parent / "chainer_names.txt").read_text().split("\n")
TABLE = {line.split()[0]: line.split()[1:] for line in LINES if line}

# What is not there yet, by reason.
ABSENT: dict[str, str] = {}
MISSING = {name for names in ABSENT.values() for name in names.split()}


@pytest.mark.parametrize("family", sorted({name.split(".")[0] for name in TABLE}))
def test_names_and_parameters_are_those_of_chainer(family: str) -> None:
    module = importlib.import_module(f"hagane.{family}")
    wrong = []
    for path, parameters in TABLE.items():
        if path.split(".")[0] != family:
            continue
        name = path.split(".")[1]
        if (name in MISSING) == hasattr(module, name):
            wrong.append(f"{path}: absent names and those listed as absent differ")
        if name in MISSING or not hasattr(module, name):
            continue
        found = list(inspect.signature(getattr(module, name)).parameters.values())
        plain = [p.name for p in found if p.kind is not p.KEYWORD_ONLY]
        wanted = [one.lstrip("*") for one in parameters]
        if "*" in parameters:
            wanted = parameters[: parameters.index("*")]
        if plain[: len(wanted)] != wanted:
            wrong.append(f"{path}: expected {wanted}, got {plain}")
    assert not wrong, "\n".join(wrong)


def test_the_table_is_whole() -> None:
    assert len(TABLE) > 330
    assert {name.split(".")[1] for name in TABLE} >= MISSING


# Under these names programs import the parts of Chainer, whatever the place of their code.
FIXED = """
functions links optimizers optimizer_hooks serializers iterators datasets training distributions
utils.type_check function function_node link_hooks reporter
"""


def test_the_fixed_names_of_modules_are_importable() -> None:
    for name in FIXED.split():
        module = importlib.import_module(f"hagane.{name}")
        assert [one for one in dir(module) if not one.startswith("_")], name
    assert hagane.training.Trainer.__module__.startswith("hagane.training")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert any(one.startswith("h5py") for one in extras["chainer"])
    assert any("chainer" in one.partition("[")[2] for one in extras["all"])


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (hagane.ChainList, "append", "value"),
        (hagane.ChainList, "extend", "values"),
        (hagane.ChainList, "index", "value start stop"),
        (hagane.ChainList, "count", "value"),
        (hagane.ChainList, "remove", "value"),
        (hagane.Sequential, "insert", "i layer"),
        (hagane.Sequential, "pop", "i"),
        (hagane.Variable, "set_creator", "gen_func"),
        (hagane.Variable, "set_creator_node", "fnode"),
        (hagane, "get_device", "device_spec"),
        (hagane, "using_device", "device_spec"),
    ],
)
def test_parameters_of_methods_have_chainers_names(owner: Any, name: str, parameters: str) -> None:
    found = [p for p in inspect.signature(getattr(owner, name)).parameters if p != "self"]
    assert found == parameters.split()


def test_inputs_without_second_gradients_are_named_as_in_chainer() -> None:
    from hagane import gradient_check

    assert "no_grads" in inspect.signature(gradient_check.check_double_backward).parameters
