"""The folder of published data, and files that are kept in it."""

from hagane.training.datasets.cached import cache_or_load_file, cached_download
from hagane.training.datasets.root import (
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)

__all__ = [
    "cache_or_load_file",
    "cached_download",
    "get_dataset_directory",
    "get_dataset_root",
    "set_dataset_root",
]
