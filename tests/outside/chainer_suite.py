"""Run Chainer's own tests with hagane under Chainer's name.

    python tests/outside/chainer_suite.py FOLDER [pytest arguments]

``FOLDER`` holds a source tree of Chainer 7.8.1; only its tests and its ``chainer/testing``, which
these use, are taken from there. With ``--chainer`` first, Chainer itself is tested. The Python that
runs it needs NumPy 1.26 and ``pytest<8``, which these tests were written for, and what hagane
needs.
Left out is what Chainer marks as slow or as in need of a GPU.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "src"
OPTIONS = [
    "-p",
    "no:cacheprovider",
    "-q",
    "-m",
    "not gpu and not cudnn and not slow and not ideep and not multi_gpu and not chainerx",
    "-W",
    "ignore",
    "-c",
    os.devnull,
    "--continue-on-collection-errors",
]


class _Testing:
    """Finds ``chainer.testing`` in Chainer's source tree."""

    def __init__(self, folder: Path):
        self._root = folder / "chainer"

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(("chainer.testing", "chainer.types")):
            return None
        place = self._root.joinpath(*name.split(".")[1:])
        if place.is_dir():
            return importlib.util.spec_from_file_location(
                name, place / "__init__.py", submodule_search_locations=[str(place)]
            )
        return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))


def substitute(folder: Path) -> None:
    """Put hagane under Chainer's name."""
    sys.path.insert(0, str(SOURCE))
    from hagane.nn.aliasing import install

    install()
    sys.meta_path.insert(0, _Testing(folder))
    import chainer

    # What ``chainer.testing`` takes from the inside of Chainer.
    chainer.utils._raise_from = _raise_from
    chainer.utils._format_array_props = lambda arrays: ", ".join(
        f"{getattr(one, 'dtype', None)}:{getattr(one, 'shape', None)}" for one in arrays
    )
    chainer.initializers._check_is_initializer_like = _check_is_initializer_like
    chainer.gradient_check._check_backward_with_params = _check_backward_with_params
    # Arrays lie in this machine's memory already; h5py is there or its tests fail.
    cpu = types.ModuleType("chainer.backends._cpu")
    cpu._to_cpu = lambda array: array  # type: ignore[attr-defined]
    cpu.CpuDevice = chainer.backend.CpuDevice  # type: ignore[attr-defined]
    sys.modules[cpu.__name__] = chainer.backends._cpu = cpu
    chainer.serializers.hdf5._available = True
    # Layouts of cuDNN, which hagane has none of; files of tests import their names.
    layouts = types.ModuleType("chainer.memory_layouts")
    for place in "XW":
        setattr(layouts, f"CUDNN_CHANNEL_FIRST_{place}", None)
        setattr(layouts, f"CUDNN_CHANNEL_LAST_{place}", f"CUDNN_CHANNEL_LAST_{place}")
    sys.modules[layouts.__name__] = chainer.memory_layouts = layouts
    _put_snapshots(chainer)
    chainer.testing = importlib.import_module("chainer.testing")
    importlib.import_module("chainer_internals").install()


def _check_backward_with_params(
    func: Any, x_data: Any, y_grad: Any, params: Any = (), **options: Any
) -> None:
    from hagane.gradient_check import check_backward

    count = len(x_data)
    check_backward(
        lambda *given: func(given[:count], given[count:]), (*x_data, *params), y_grad, **options
    )


def _put_snapshots(chainer: Any) -> None:
    """Give the tests of snapshots Chainer's inner functions, made of hagane's search for files."""
    from hagane.training.extensions.snapshots import find_snapshots

    module = types.ModuleType("chainer.training.extensions._snapshot")

    def stale(pattern: str, folder: str, kept: int) -> list[str]:
        return find_snapshots(pattern, folder)[:-kept]

    found: dict[str, Any] = {
        "_find_snapshot_files": lambda *given: list(enumerate(find_snapshots(*given))),
        "_find_latest_snapshot": lambda *given: find_snapshots(*given)[-1],
        "_find_stale_snapshots": stale,
    }
    vars(module).update(found)
    sys.modules[module.__name__] = chainer.training.extensions._snapshot = module


def _check_is_initializer_like(initializer: Any) -> None:
    from hagane.initializers import get_initializer

    get_initializer(initializer)


def _raise_from(kind: type[Exception], message: str, cause: Exception) -> None:
    raise kind(message) from cause


def main(arguments: list[str]) -> int:
    """Run the tests of the folder that the arguments name; return pytest's exit status."""
    original = arguments[:1] == ["--chainer"]
    arguments = arguments[1:] if original else arguments
    if not arguments or not (Path(arguments[0]) / "tests" / "chainer_tests").is_dir():
        print(f"usage: {sys.argv[0]} [--chainer] FOLDER [pytest arguments]", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve()
    os.environ.setdefault("CHAINER_TEST_GPU_LIMIT", "0")
    if not original:
        substitute(folder)
    import pytest

    os.chdir(folder / "tests" / "chainer_tests")
    return int(pytest.main([*OPTIONS, "--rootdir", ".", *arguments[1:]]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
