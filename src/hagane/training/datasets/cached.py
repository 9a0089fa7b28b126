"""Files that are made once and kept beside published datasets."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hagane.training.datasets.root import get_dataset_root
from hagane.training.errors import DatasetError


def cached_download(url: str) -> str:
    """Return the file that was fetched from an address before; nothing is fetched here.

    Args:
        url: The address.

    Raises:
        DatasetError: It is not in the cache; the message says where to put it.
        OSError: The folder of the cache cannot be made.
    """
    folder = Path(get_dataset_root()) / "_dl_cache"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    if not kept.exists():
        raise DatasetError(
            f"there is no {kept}, and hagane fetches no data by itself: put the file of {url} there"
        )
    return str(kept)


def cache_or_load_file(
    path: str | os.PathLike[str], creator: Callable[[str], Any], loader: Callable[[str], Any]
) -> Any:
    """Return the content of a file, which is made first if it is not there.

    It is made in a place of its own and moved when it is whole, so that several processes may ask
    at once.

    Args:
        path: The file.
        creator: Called with a path where there is no file yet; makes it and returns its content.
        loader: Called with the path of the file; returns its content.

    Raises:
        RuntimeError: The folder of datasets cannot be made.
    """
    if os.path.exists(path):
        return loader(os.fspath(path))
    try:
        os.makedirs(get_dataset_root(), exist_ok=True)
    except OSError:
        raise RuntimeError("cannot create dataset directory") from None
    with tempfile.TemporaryDirectory(dir=get_dataset_root()) as folder:
        made = os.path.join(folder, os.path.basename(path))
        content = creator(made)
        if not os.path.exists(path):
            shutil.move(made, path)
    return content
