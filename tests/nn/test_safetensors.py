"""Snapshots as safetensors files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import InvalidArgument
from hagane.nn.serializers.archive import SnapshotError
from hagane.serializers import load_safetensors, save_safetensors

safetensors = pytest.importorskip("safetensors.numpy")


class Net(chainer.Chain):
    def __init__(self, units: int = 5) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, 3, 3)
            self.bn = L.BatchNormalization(3)
            self.out = L.Linear(None, units)

    def forward(self, x: Any) -> Any:
        return self.out(F.relu(self.bn(self.conv(x))))


def trained(seed: int, optimizer: Any) -> Any:
    np.random.seed(seed)
    model = L.Classifier(Net())
    optimizer.setup(model)
    for _ in range(3):
        optimizer.update(model, *batch(seed))
    return model


def batch(seed: int) -> tuple[Any, Any]:
    random = np.random.RandomState(seed)
    return random.randn(3, 2, 7, 5).astype("f"), random.randint(0, 5, 3).astype("i")


def test_a_link_and_its_optimizer_go_on_as_if_never_saved(tmp_path: Path) -> None:
    optimizer = chainer.optimizers.Adam()
    model = trained(0, optimizer)
    save_safetensors(tmp_path / "model.safetensors", model, metadata={"epoch": "3"})
    save_safetensors(str(tmp_path / "adam.safetensors"), optimizer)
    other = chainer.optimizers.Adam()
    again = trained(1, other)
    load_safetensors(tmp_path / "model.safetensors", again)
    load_safetensors(tmp_path / "adam.safetensors", other)
    assert other.t == 3
    for one, which in ((optimizer, model), (other, again)):
        one.update(which, *batch(7))
    for (path, a), (_, b) in zip(model.namedparams(), again.namedparams(), strict=True):
        np.testing.assert_array_equal(a.array, b.array, err_msg=path)
    np.testing.assert_array_equal(model.predictor.bn.avg_var, again.predictor.bn.avg_var)


def test_the_file_is_one_that_the_library_reads(tmp_path: Path) -> None:
    model = trained(0, chainer.optimizers.SGD())
    save_safetensors(tmp_path / "a.safetensors", model)
    arrays = safetensors.load_file(tmp_path / "a.safetensors")
    assert sorted(arrays) == [
        "predictor/bn/N", "predictor/bn/avg_mean", "predictor/bn/avg_var", "predictor/bn/beta",
        "predictor/bn/gamma", "predictor/conv/W", "predictor/conv/b", "predictor/out/W",
        "predictor/out/b",
    ]  # fmt: skip
    np.testing.assert_array_equal(arrays["predictor/out/W"], model.predictor.out.W.array)


def test_parameters_without_arrays_stay_so_and_views_are_whole(tmp_path: Path) -> None:
    net = Net()
    net.bn.gamma.array = np.arange(6, dtype="f")[::2]
    save_safetensors(tmp_path / "a.safetensors", net)
    other = Net()
    load_safetensors(tmp_path / "a.safetensors", other)
    assert other.conv.W.array is None
    np.testing.assert_array_equal(other.bn.gamma.array, [0, 2, 4])


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16, "int8", "bool"])
def test_element_types_come_back(tmp_path: Path, dtype: Any) -> None:
    link = chainer.Link()
    link.add_persistent("table", np.arange(6).reshape(2, 3).astype(dtype))
    link.add_persistent("scalar", np.array(1).astype(dtype))
    link.add_persistent("text", "épées")
    link.add_persistent("empty", np.zeros((0, 3), dtype))
    save_safetensors(tmp_path / "a.safetensors", link)
    other = chainer.Link()
    for name in ("table", "scalar", "empty"):
        other.add_persistent(name, np.zeros_like(getattr(link, name)))
    other.add_persistent("text", "")
    load_safetensors(tmp_path / "a.safetensors", other)
    for name in ("table", "scalar", "empty"):
        found, wanted = getattr(other, name), getattr(link, name)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    assert other.text == "épées"


def test_all_differences_are_listed_and_nothing_is_loaded(tmp_path: Path) -> None:
    saved = chainer.Chain(l1=L.Linear(3, 4), l2=L.Linear(4, 2), same=L.Linear(1, 1))
    save_safetensors(tmp_path / "a.safetensors", saved)
    other = chainer.Chain(l1=L.Linear(3, 5), l3=L.Linear(4, 2), same=L.Linear(1, 1))
    before = other.same.W.array.copy()
    with pytest.raises(SnapshotError) as caught:
        load_safetensors(tmp_path / "a.safetensors", other)
    assert str(caught.value).split("\n") == [
        "the snapshot is not one of this object:",
        "  missing in the snapshot: l3/W",
        "  missing in the snapshot: l3/b",
        "  not in the object: l2/W",
        "  not in the object: l2/b",
        "  l1/W: expected shape (5, 3), the snapshot has (4, 3)",
        "  l1/b: expected shape (5,), the snapshot has (4,)",
        "strict=False loads what is there",
    ]
    np.testing.assert_array_equal(other.same.W.array, before)
    with pytest.raises(SnapshotError, match=r"l1/W: expected shape"):
        load_safetensors(tmp_path / "a.safetensors", other, strict=False)
    load_safetensors(
        tmp_path / "a.safetensors", other, strict=False, ignore_names=lambda name: "l1" in name
    )
    np.testing.assert_array_equal(other.same.W.array, saved.same.W.array)


def test_an_extra_value_alone_is_an_error_unless_it_is_ignored(tmp_path: Path) -> None:
    save_safetensors(tmp_path / "a.safetensors", chainer.Chain(a=L.Linear(1, 1), b=L.Bias(0, (1,))))
    other = chainer.Chain(a=L.Linear(1, 1))
    with pytest.raises(SnapshotError, match="  not in the object: b/b\nstrict=False"):
        load_safetensors(tmp_path / "a.safetensors", other)
    load_safetensors(tmp_path / "a.safetensors", other, ignore_names="b/b")
    load_safetensors(tmp_path / "a.safetensors", L.Linear(1, 1), path="a/")


def test_an_optimizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    optimizer = chainer.optimizers.MomentumSGD()
    trained(0, optimizer)
    save_safetensors(tmp_path / "a.safetensors", optimizer)
    other = chainer.optimizers.Adam().setup(L.Classifier(Net()))
    with pytest.raises(SnapshotError) as caught:
        load_safetensors(tmp_path / "a.safetensors", other)
    text = str(caught.value)
    assert "  missing in the snapshot: predictor/conv/W/m\n" in text
    assert "  missing in the snapshot: predictor/conv/W/v\n" not in text  # both have a 'v'
    assert "  missing in the snapshot: predictor/out/b/m\n" in text


def test_objects_and_other_files_are_refused(tmp_path: Path) -> None:
    link = chainer.Link()
    link.add_persistent("table", {"a": 1})
    with pytest.raises(InvalidArgument, match=r"use save_npz for an object with\n  table: object"):
        save_safetensors(tmp_path / "a.safetensors", link)
    (tmp_path / "b.safetensors").write_bytes(b"\x80\x04pickled")
    with pytest.raises(InvalidArgument, match="expected a safetensors file"):
        load_safetensors(tmp_path / "b.safetensors", link)
