"""Run Chainer's own tests of iterators with hagane's iterators under Chainer's name.

Chainer 7.8.1 needs an environment of its own: Python 3.11 with ``numpy==1.26.4``,
``setuptools<70``, ``pytest<8``, then ``pip install --no-build-isolation chainer==7.8.1``. With its
Python::

    python tests/outside/run_chainer_tests.py FOLDER [pytest arguments]

``FOLDER`` holds a source tree of Chainer 7.8.1 (its tests are not in the wheel). Left out by
default is what Chainer marks as slow or as in need of a GPU, and ``INTERNAL``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
TESTS = (
    "iterators_tests",
    "datasets_tests/test_concatenated_dataset.py",
    "datasets_tests/test_dict_dataset.py",
    "datasets_tests/test_image_dataset.py",
    "datasets_tests/test_pickle_dataset.py",
    "datasets_tests/test_sub_dataset.py",
    "datasets_tests/test_text_dataset.py",
    "datasets_tests/test_transform_dataset.py",
    "datasets_tests/test_tuple_dataset.py",
)

# Tests of what has no part in the interface of Chainer's datasets.
INTERNAL = (
    "datasets_tests/test_pickle_dataset.py::TestPickleDataset::test_after_fork",  # of a reader
    "datasets_tests/test_pickle_dataset.py::TestPickleDatasetHelper::test_file_reader_after_fork",
    "datasets_tests/test_pickle_dataset.py::TestPickleDatasetHelper::test_file_reader_picklable",
    "datasets_tests/test_text_dataset.py::TestTextDataset::test_close_exception",  # ``_fps``
)


def substitute() -> None:
    """Put hagane's iterators and datasets where Chainer's tests look for Chainer's."""
    import chainer

    from hagane.training import datasets, iterators
    from hagane.training.datasets import images, records

    for name, module in (("iterators", iterators), ("datasets", datasets)):
        sys.modules[f"chainer.{name}"] = module
        setattr(chainer, name, module)
    images.available = True
    datasets.image_dataset = images
    datasets.pickle_dataset = records


def main(arguments: list[str]) -> int:
    """Run the tests of the folder that the arguments name; return pytest's exit status."""
    if not arguments or not (Path(arguments[0]) / "tests" / "chainer_tests").is_dir():
        print(f"usage: {sys.argv[0]} FOLDER_OF_CHAINER [pytest arguments]", file=sys.stderr)
        return 2
    import pytest

    folder, *rest = arguments
    sys.path.insert(0, str(SOURCE))
    sys.path.insert(0, str(Path(folder).resolve() / "tests"))
    substitute()
    os.chdir(folder)
    chosen = rest or [
        "-q",
        "-k",
        "not Slow and not Interruption and not gpu",
        *(f"--deselect=tests/chainer_tests/{name}" for name in INTERNAL),
        *(f"tests/chainer_tests/{name}" for name in TESTS),
    ]
    return int(pytest.main(["-p", "no:cacheprovider", "-o", "addopts=", *chosen]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
