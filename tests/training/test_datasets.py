from __future__ import annotations

import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.training import datasets
from hagane.training.errors import DatasetError
from hagane.training.iterators import MultiprocessIterator

X = np.arange(24.0).reshape(6, 4)
T = np.arange(6)
LABELS = [0, 1, 2, 3, 4, 5]


def batches(dataset: Any, workers: int = 1) -> list[Any]:
    with MultiprocessIterator(
        dataset, 4, repeat=False, shuffle=False, n_processes=workers
    ) as iterator:
        return [sample for batch in iterator for sample in batch]


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


def write_picture(path: Any, shape: tuple[int, ...], form: str = "PNG") -> None:
    from PIL import Image

    pixels = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    Image.fromarray(pixels).save(path, form)


def test_tuple_and_dict_datasets_give_samples_and_lists_of_them() -> None:
    pairs = datasets.TupleDataset(X, LABELS)
    assert same(pairs[2], (X[2], 2))
    assert same(pairs[1:3], [(X[1], 1), (X[2], 2)])
    x, t = datasets.TupleDataset(X, T)[np.array([3, 0, 5])]
    assert same((x, t.tolist()), (X[[3, 0, 5]], [3, 0, 5]))
    named = datasets.DictDataset(x=X, t=T)
    assert same(named[[4, 1]], {"x": X[[4, 1]], "t": T[[4, 1]]})
    assert same(named[2], {"x": X[2], "t": T[2]})
    assert same(named[4:], [named[4], named[5]])
    for dataset in (pairs, named):
        assert same(batches(dataset), list(dataset[:]))
        with pytest.raises(IndexError):
            dataset[6]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: datasets.TupleDataset(), "at least one dataset"),
        (lambda: datasets.TupleDataset(X, T[:4]), "got 6 for dataset 0 and 4 for dataset 1"),
        (lambda: datasets.DictDataset(x=X, t=T[:4]), "got 6 for 'x' and 4 for 't'"),
        (lambda: datasets.SubDataset(X, 1, 7), "within 0 to 6, got 1 to 7"),
        (lambda: datasets.SubDataset(X, 0, 2, [1, 0]), "an order of the dataset's 6 samples"),
        (lambda: datasets.split_dataset(X, 7), "split_at from 0 to 6, .* got 7"),
        (lambda: datasets.split_dataset_n(X, 0), "positive number of parts"),
        (lambda: datasets.TransformDataset(X, 3), "with a callable transform"),
        (lambda: datasets.ImageDataset("nowhere.txt"), "no file 'nowhere.txt'"),
        (lambda: datasets.LabeledImageDataset.from_directory("nowhere"), "no folder 'nowhere'"),
        (lambda: datasets.TextDataset([]), "at least one path"),
        (lambda: datasets.Table({"a": [1], "b": [1, 2]}), "columns of one length"),
        (lambda: datasets.Table({"a": [1]}).slice[:, "b"], "no column 'b'; the columns are a"),
        (lambda: datasets.TarShardDataset("nowhere-*.tar"), "no archive 'nowhere-"),
        (lambda: datasets.MemmapDataset(), "at least one .npy file"),
        (lambda: MultiprocessIterator(iter([1]), 1), "got list_iterator, which lacks __getitem__"),
        (lambda: MultiprocessIterator(np.float32(3), 1), "got float32: .* has no len"),
    ],
)
def test_what_cannot_be_a_dataset_is_named(make: Any, message: str) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)


def double(sample: Any) -> Any:
    return sample * 2


def test_views_transform_concatenate_and_cut() -> None:
    assert same(batches(datasets.TransformDataset(X, double)), list(X * 2))
    assert datasets.TransformDataset(X, ("x",), double).keys == ("x",)
    joined = datasets.ConcatenatedDataset([1, 2], [], (3, 4, 5))
    assert list(joined[:]) == [1, 2, 3, 4, 5]
    assert joined[-1] == 5
    assert joined[[0, 4]] == [1, 5]
    assert joined[np.array([False, True, False, True, False])] == [2, 4]
    part = datasets.SubDataset(datasets.TupleDataset(X, T), 1, 4, [5, 4, 3, 2, 1, 0])
    assert same(batches(part), [(X[k], T[k]) for k in (4, 3, 2)])
    nested = datasets.SubDataset(part, 1, 3)
    assert same(batches(nested), [(X[k], T[k]) for k in (3, 2)])


@given(st.integers(0, 40), st.integers(1, 8))
def test_cross_validation_covers_every_sample_once(length: int, folds: int) -> None:
    parts = datasets.get_cross_validation_datasets_random(list(range(length)), folds, seed=1)
    assert sorted(i for _, held in parts for i in held[:]) == list(range(length))
    sizes = {len(held) for _, held in parts}
    assert max(sizes) - min(sizes) <= 1
    for training, held in parts:
        assert sorted([*training[:], *held[:]]) == list(range(length))


@given(st.integers(0, 30), st.integers(0, 2**31))
def test_a_random_split_is_a_partition_settled_by_its_seed(length: int, seed: int) -> None:
    one, other = datasets.split_dataset_random(list(range(length)), length // 3, seed)
    assert sorted([*one[:], *other[:]]) == list(range(length))
    again, _ = datasets.split_dataset_random(list(range(length)), length // 3, seed)
    assert one[:] == again[:]


def test_images_come_channels_first_from_files_folders_and_archives(tmp_path: Path) -> None:
    for name, shape in {
        "cat/a.png": (5, 4, 3),
        "cat/b.png": (5, 4),
        "dog/c.png": (6, 4, 4),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        write_picture(path, shape)
    (tmp_path / "list.txt").write_text("cat/a.png\n\ncat/b.png\n")
    plain = datasets.ImageDataset(tmp_path / "list.txt", root=tmp_path)
    assert [image.shape for image in plain[:]] == [(3, 5, 4), (1, 5, 4)]
    assert plain[0].dtype == np.float32
    classes = datasets.LabeledImageDataset.from_directory(tmp_path, dtype=np.uint8)
    assert isinstance(classes[0][1], np.ndarray)
    assert classes[0][1].shape == ()
    assert classes.classes == ("cat", "dog")
    assert [int(label) for _, label in classes[:]] == [0, 0, 1]
    assert same(batches(classes, workers=2), classes[:])
    (tmp_path / "pairs.txt").write_text("cat/a.png 3\ndog/c.png 4\n")
    pairs = datasets.LabeledImageDataset(tmp_path / "pairs.txt", root=tmp_path)
    assert [(image.shape, int(label)) for image, label in pairs[:]] == [
        ((3, 5, 4), 3),
        ((4, 6, 4), 4),
    ]
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.write(tmp_path / "cat/a.png", "cat/a.png")
        archive.write(tmp_path / "dog/c.png", "dog/c.png")
    zipped = datasets.LabeledZippedImageDataset(tmp_path / "images.zip", tmp_path / "pairs.txt")
    assert same(zipped[:], pairs[:])
    assert same(batches(zipped, workers=2), pairs[:])
    both = datasets.MultiZippedImageDataset([tmp_path / "images.zip"] * 2)
    assert len(both) == 4


def test_masks_keep_the_classes_of_their_palette(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    classes = np.arange(6, dtype=np.uint8).reshape(2, 3)
    mask = pillow.fromarray(classes).convert("P")
    mask.putpalette([9, 99, 199] * 256)
    mask.putdata(classes.ravel().tolist())
    mask.save(tmp_path / "mask.png")
    (image,) = datasets.ImageDataset(["mask.png"], tmp_path, dtype=np.int32)[:]
    np.testing.assert_array_equal(image, classes[np.newaxis])


def test_files_that_are_not_there_are_errors_of_files_too(tmp_path: Path) -> None:
    for call in (
        lambda: datasets.LabeledImageDataset(tmp_path / "none.txt"),
        lambda: datasets.ImageDataset(["none.png"], tmp_path)[0],
    ):
        with pytest.raises(FileNotFoundError, match=r"there is no .*none") as raised:
            call()
        assert isinstance(raised.value, DatasetError)


def test_bad_pictures_and_lists_are_named_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("a.png 3\nb.png three\n")
    with pytest.raises(
        DatasetError, match=r"pairs.txt:2: expected a path and a label .* 'b.png three'"
    ):
        datasets.LabeledImageDataset(tmp_path / "pairs.txt")
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(DatasetError, match=r"cannot read the picture '.*a.png'"):
        datasets.ImageDataset(["a.png"], root=tmp_path)[0]
    with pytest.raises(DatasetError, match=r"no picture '.*b.png'"):
        datasets.ImageDataset(["b.png"], root=tmp_path)[0]


def test_pickles_are_written_and_read_in_workers(tmp_path: Path) -> None:
    with datasets.open_pickle_dataset_writer(tmp_path / "samples.pkl") as writer:
        for value in (1, "two", [3.0]):
            writer.write(value)
    with datasets.open_pickle_dataset(tmp_path / "samples.pkl") as dataset:
        assert batches(dataset, workers=2) == [1, "two", [3.0]]
        assert pickle.loads(pickle.dumps(dataset))[1] == "two"
    with pytest.raises(DatasetError, match="was closed"):
        dataset[0]
    (tmp_path / "damaged.pkl").write_bytes(pickle.dumps(1) + b"\xff\xff")
    with pytest.raises(DatasetError, match="sample 1, at byte 5, is no pickle"):
        datasets.PickleDataset(tmp_path / "damaged.pkl")


def test_lines_of_text_files_are_samples(tmp_path: Path) -> None:
    (tmp_path / "en.txt").write_text("one\n\nthree", encoding="utf-8")
    (tmp_path / "ja.txt").write_text("一\n二\n三\n", encoding="euc-jp")
    assert datasets.TextDataset(tmp_path / "en.txt")[:] == ["one\n", "\n", "three"]
    both = datasets.TextDataset(
        [tmp_path / "en.txt", tmp_path / "ja.txt"],
        encoding=["utf-8", "euc-jp"],
        filter_func=lambda english, _: english.strip() != "",
    )
    assert both[:] == [("one\n", "一\n"), ("three", "三\n")]
    assert batches(both, workers=2) == both[:]
    (tmp_path / "short.txt").write_text("one\n")
    with pytest.raises(DatasetError, match=r"one number of lines, got 3 in .* 1 in"):
        datasets.TextDataset([tmp_path / "en.txt", tmp_path / "short.txt"])


def test_views_of_tables_read_the_columns_they_show() -> None:
    table = datasets.Table({"x": X, "t": LABELS, "name": list("abcdef")})
    assert same(table[1], (X[1], 1, "b"))
    part = table.slice[1:5:2, ["name", "t"]]
    assert part[:] == [("b", 1), ("d", 3)]
    assert part.as_dict()[0] == {"name": "b", "t": 1}
    assert table.slice[[True, False] * 3, "name"].fetch() == ["a", "c", "e"]
    assert table.slice[[-1, 0], "t"][:] == [5, 0]
    more = table.with_column("sum", lambda x, t: float(x.sum() + t), "x", "t").as_dict()
    assert more.keys == ("x", "t", "name", "sum")
    assert more[1]["sum"] == X[1].sum() + 1
    assert same(batches(datasets.Table({"x": X, "t": T}, mode="dict"))[3], {"x": X[3], "t": T[3]})


def test_tar_shards_group_files_by_key_and_decode_them(tmp_path: Path) -> None:
    def shard(name: str, files: dict[str, bytes]) -> None:
        with tarfile.open(tmp_path / name, "w") as archive:
            for member, data in files.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))

    picture = io.BytesIO()
    write_picture(picture, (5, 4, 3))
    shard(
        "train-0.tar",
        {
            "a/0001.png": picture.getvalue(),
            "a/0001.cls": b"7",
            "a/0002.seg.txt": b"text",
            "a/0002.json": json.dumps({"k": [1]}).encode(),
        },
    )
    shard("train-1.tar", {"0003.bin": b"\0\1", "0003.cls": b"x"})
    dataset = datasets.TarShardDataset(tmp_path / "train-*.tar")
    assert len(dataset) == 3
    assert dataset[0]["__key__"] == "a/0001"
    assert dataset[0]["png"].shape == (3, 5, 4)
    assert dataset[0]["cls"] == 7
    assert dataset[1] == {"__key__": "a/0002", "seg.txt": "text", "json": {"k": [1]}}
    with pytest.raises(DatasetError, match=r"train-1.tar: cannot decode '0003.cls'"):
        dataset[2]
    some = datasets.TarShardDataset(tmp_path / "train-1.tar", keys=["bin"])
    assert batches(some, workers=2) == [{"__key__": "0003", "bin": b"\0\1"}]
    (tmp_path / "bad.tar").write_bytes(b"x" * 600)
    with pytest.raises(DatasetError, match="no uncompressed tar archive"):
        datasets.TarShardDataset(tmp_path / "bad.tar")


def test_memory_maps_travel_as_paths(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "t.npy", T)
    pairs = datasets.MemmapDataset(tmp_path / "x.npy", tmp_path / "t.npy")
    assert same(batches(pairs, workers=2), [(X[i], np.asarray(T[i])) for i in range(6)])
    assert same(batches(datasets.MemmapDataset(tmp_path / "x.npy")), list(X))
    assert len(pickle.dumps(pairs)) < 1000
    (tmp_path / "no.npy").write_bytes(b"not")
    with pytest.raises(DatasetError, match=r"no.npy' is no .npy file"):
        datasets.MemmapDataset(tmp_path / "no.npy")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_rows_of_parquet_and_arrow_files_are_samples(kind: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra 'data')")
    import pyarrow.parquet as pq

    table = pa.table({"x": [[1.0, 2.0], [3.0], [4.0]], "n": [1, 2, 3], "s": ["a", "b", None]})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
        dataset: Any = datasets.ParquetDataset([path, path])
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
        dataset = datasets.ArrowDataset([path, path])
    assert len(dataset) == 6
    assert dataset[4]["x"].tolist() == [3.0]
    assert dataset[4]["n"] == 2
    assert [sample["s"] for sample in dataset[:]] == ["a", "b", None] * 2
    assert same(batches(dataset, workers=2), dataset[:])
    assert dataset.slice[3:5, ["n", "s"]].as_tuple()[:] == [(1, "a"), (2, "b")]
    with pytest.raises(DatasetError, match="has no column 'y'; its columns are x, n, s"):
        type(dataset)(path, columns=["y"])
    path.write_bytes(b"nothing")
    with pytest.raises(DatasetError, match="cannot read"):
        type(dataset)(path)
