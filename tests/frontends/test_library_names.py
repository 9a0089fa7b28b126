"""The names that tables know exist, are many, and stand in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.frontends.libraries.document import known_names, libraries_document
from hagane.frontends.libraries.everything import TABLES

_PAGE = Path(__file__).parents[2] / "docs" / "check-libraries.md"


def test_the_page_of_known_names_is_current() -> None:
    assert _PAGE.read_text() == libraries_document(), (
        "run: python -m hagane.frontends.libraries.document > docs/check-libraries.md"
    )


def test_at_least_500_names_of_pytorch_are_known() -> None:
    assert len(known_names(TABLES["torch"])) >= 500


def resolved(root: Any, name: str) -> Any:
    """Return what a dotted name below ``root`` is, None if nothing."""
    for part in name.split(".")[1:]:
        root = getattr(root, part, None)
    return root


@pytest.mark.filterwarnings("ignore")  # PyTorch warns of names that are going away
def test_names_of_pytorchs_table_exist_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    __import__("torch.utils.checkpoint")
    __import__("torch.onnx")
    for name in ("distributed", "func", "optim.swa_utils", "nn.utils.stateless",
                 "utils.data.distributed"):  # fmt: skip
        __import__(f"torch.{name}")
    names = {*TABLES["torch"].functions, *TABLES["torch"].layers, *TABLES["torch"].constants}
    # TensorBoard is a package of its own, without which PyTorch's writer cannot be imported.
    names = {name for name in names if not name.startswith("torch.utils.tensorboard.")}
    names = {name for name in names if "<" not in name}  # results of functions, without a name
    made = {name for name in names if resolved(torch, name) is None} - {"torch.newaxis"}
    made = {name for name in made if not name.startswith("torch.ops.torchvision.")}  # torchvision's
    # Modules that a name of the package hides, and None.
    hidden = [f"torch._higher_order_ops.{name}.{name}" for name in ("cond", "map", "while_loop")]
    assert sorted(made) == [*hidden, "torch.optim.optimizer.Optimizer", "torch.version.cuda"]


def test_methods_of_pytorchs_table_exist_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    table = TABLES["torch"]
    names = {*table.methods["torch.Tensor"], *table.attributes["torch.Tensor"]}
    assert sorted(name for name in names if not hasattr(torch.Tensor, name)) == []


def test_names_that_a_library_lacks_are_missing() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            classes = (type(self), torch.nn.Linear, torch.Tensor)
            there = [hasattr(one, "no_such_name") for one in (*classes, torch, np)]
            flags = [getattr(one, "no_such_name", None) for one in (*classes, torch.nn.functional)]
            try:
                return torch.no_such_name(x)
            except AttributeError:
                return x * 2 if any(there) or any(flags) else x * 3

    graph = hagane.capture(Net(), x="float32[n]")
    found = hagane.InferenceSession(graph).run(None, {"x": np.ones(2, np.float32)})[0]
    np.testing.assert_array_equal(found, [3, 3])
    report = hagane.check(Net(), x="float32[n]")
    assert (report.errors, report.unknown) == ([], [])
    assert report.returned == "torch.Tensor(dtype=float32, shape=(n,))"


def test_names_that_only_a_class_has_are_missing_in_its_instances() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            values = ("text", 2, 2.5, [1], {"a": 1}, (1, 2), {3}, True, range(3))
            names = ("__name__", "__qualname__", "mro", "__bases__", "__dict__", "__module__")
            there = [name for one in values for name in names if hasattr(one, name)]
            own = hasattr("text", "upper") and hasattr([1], "append") and hasattr(2, "real")
            return x * (2 if there else 3) if own else x

    graph = hagane.capture(Net(), x="float32[n]")
    found = hagane.InferenceSession(graph).run(None, {"x": np.ones(2, np.float32)})[0]
    np.testing.assert_array_equal(found, [3, 3])
