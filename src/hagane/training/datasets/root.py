"""Where published datasets lie on this machine: the folder that Chainer used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hagane.training.errors import DatasetError

_chosen: str | None = None


def get_dataset_root(environment: Mapping[str, str] | None = None) -> str:
    """Return the folder of published datasets.

    It is the argument of ``set_dataset_root``, else the environment's ``CHAINER_DATASET_ROOT``,
    else ``~/.chainer/dataset``, so that Chainer's downloads are found.
    """
    if _chosen is not None:
        return _chosen
    named = (os.environ if environment is None else environment).get("CHAINER_DATASET_ROOT")
    return named or str(Path.home() / ".chainer" / "dataset")


def set_dataset_root(path: str | os.PathLike[str]) -> None:
    """Set the folder of published datasets."""
    global _chosen
    _chosen = os.fspath(path)


def get_dataset_directory(dataset_name: str, create_directory: bool = True) -> str:
    """Return the folder of a dataset, such as ``pfnet/chainer/mnist``, made if it is not there."""
    folder = Path(get_dataset_root()) / dataset_name
    if create_directory:
        folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def local_file(dataset_name: str, names: Sequence[str], source: str) -> Path:
    """Return the first file of some names in a dataset's folder.

    Args:
        dataset_name: Folder under the root.
        names: File names that serve, the best first.
        source: Address where the files come from, for the message.

    Raises:
        DatasetError: None of them is there. Nothing is fetched from a network.
    """
    folder = Path(get_dataset_directory(dataset_name, create_directory=False))
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DatasetError(
        f"there is no {' or '.join(names)} in {folder}, and hagane fetches no data by itself: put "
        f"the file of {source} there, or set CHAINER_DATASET_ROOT to the folder that has "
        f"{dataset_name}"
    )
