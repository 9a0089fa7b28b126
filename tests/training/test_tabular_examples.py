"""Chainer's tables, and files that are kept beside datasets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane import dataset
from hagane.dataset import tabular
from hagane.training.errors import DatasetError


def table(size: int = 7, offset: int = 0, names: str = "ab") -> Any:
    pairs = tuple((name, np.arange(size) * 10 + i + offset) for i, name in enumerate(names))
    return tabular.from_data(pairs)


def test_samples_and_columns_have_the_form_of_the_data() -> None:
    assert table()[2] == (20, 21)
    assert tabular.from_data([3, 1])[1] == 1
    assert tabular.from_data({"a": [1, 2], "b": lambda i: i * i})[1] == {"a": 2, "b": 1}
    made = tabular.from_data((("x", [5, 6]), (("y", "z"), lambda i: (i, -i))))
    assert made.keys == ("x", "y", "z")
    assert list(made) == [(5, 0, 0), (6, 1, -1)]
    assert made.fetch() == ([5, 6], [0, 1], [0, -1])
    for column, wanted in zip(made.convert(made.fetch()), ([5, 6], [0, 1], [0, -1]), strict=True):
        assert isinstance(column, np.ndarray)
        assert column.tolist() == wanted


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
@pytest.mark.parametrize("start", [None, 0, 4, 9, 12])
@pytest.mark.parametrize("stop", [None, 1, 6, 11])
def test_rows_of_concatenated_tables_are_those_of_one_list(
    start: int | None, stop: int | None, step: int
) -> None:
    joint = table(4).concat(table(1, 100), table(6, 200))
    plain = list(joint)
    chosen = slice(start, stop, step)
    assert list(joint.slice[chosen]) == plain[chosen]
    assert list(joint.slice[chosen].slice[::-2]) == plain[chosen][::-2]
    columns = joint.get_examples(chosen, (1, 0))
    assert list(zip(*columns, strict=True)) == [(b, a) for a, b in plain[chosen]]
    numbers = list(range(11))[chosen]
    assert [tuple(row) for row in joint.slice[numbers]] == plain[chosen]


def test_views_choose_columns_by_name_or_number() -> None:
    view = table(3, names="abc").slice[[True, False, True], ("c", 0)]
    assert view.keys == ("c", "a")
    assert list(view.asdict()) == [{"c": 2, "a": 0}, {"c": 22, "a": 20}]
    assert list(table(3).slice[1:, "b"]) == [11, 21]
    assert table(2).join(table(2, 5, "cd")).slice[:, ("d", "a")][1] == (16, 10)
    assert table(2).with_converter(lambda a, b: (b, a)).convert((1, 2)) == (2, 1)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_functions_make_columns(batch: bool, named: bool) -> None:
    def swap(a: Any, b: Any) -> Any:
        return {"x": b, "y": a} if named else (b, a)

    source = table(3).asdict() if named else table(3)
    view = (source.transform_batch if batch else source.transform)(("x", "y"), swap)
    assert view.mode is (dict if named else tuple)
    assert [list(column) for column in view.get_examples([2, 0], (1,))] == [[20, 0]]
    alone = table(3).transform("sum", lambda a, b: a + b)
    assert list(alone) == [1, 21, 41]


def test_mistakes_are_told_of() -> None:
    with pytest.raises(ValueError, match=r"same length, got \[7, 3\]"):
        table().join(table(3, names="c"))
    with pytest.raises(ValueError, match="All keys must be unique"):
        table().join(table())
    with pytest.raises(ValueError, match="All datasets must have the same keys"):
        table().concat(table(names="ba"))
    with pytest.raises(IndexError, match="index 9 is out of bounds for dataset with size 7"):
        table().slice[[9]]
    with pytest.raises(KeyError, match="z does not exist; the columns are a, b"):
        table().slice[:, ("z",)]
    with pytest.raises(ValueError, match="expected 7, got 2"):
        table().slice[[True, False]]
    with pytest.raises(ValueError, match="expected 7 values of 'x', got 1"):
        table().transform_batch("x", lambda a, b: [0]).fetch()
    kinds = iter([1, (1,)])
    with pytest.raises(ValueError, match="transform must not change its return type"):
        table(2).transform("x", lambda a, b: next(kinds)).fetch()
    with pytest.raises(ValueError, match="size must be specified"):
        tabular.from_data(("x", abs))
    with pytest.raises(ValueError, match="key.s. must be specified"):
        tabular.from_data(([1], abs))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    before = dataset.get_dataset_root()
    dataset.set_dataset_root(str(tmp_path / "data"))
    yield tmp_path / "data"
    dataset.set_dataset_root(before)


def test_a_file_is_made_once(root: Path) -> None:
    def make(path: str) -> str:
        Path(path).write_text("made")
        return "made"

    path = root.parent / "kept"
    assert dataset.cache_or_load_file(path, make, lambda path: "") == "made"
    assert dataset.cache_or_load_file(path, make, lambda path: Path(path).read_text() + "!") == (
        "made!"
    )
    assert os.listdir(root) == []


def test_what_was_fetched_before_is_found_and_nothing_is_fetched(root: Path) -> None:
    address = "https://example.com/a.gz"
    with pytest.raises(DatasetError, match=r"hagane fetches no data by itself: put the file of"):
        dataset.cached_download(address)
    kept = root / "_dl_cache" / hashlib.md5(address.encode()).hexdigest()
    kept.write_text("there")
    assert dataset.cached_download(address) == str(kept)
