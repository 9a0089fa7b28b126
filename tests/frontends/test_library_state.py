"""State that the programs of NumPy and Chainer keep: settings, contents of arrays, lazy links."""

from __future__ import annotations

import textwrap
from pathlib import Path

from hagane.checking import Request, check_source
from hagane.frontends.python.report.findings import Report

HEAD = """import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


"""


def checked(text: str, folder: Path, target: str = "called", **inputs: str) -> Report:
    file = folder / "called.py"
    file.write_text(HEAD + textwrap.dedent(text).lstrip("\n"))
    return check_source(Request(file, target, inputs))


def test_a_setting_is_another_only_inside_its_block(tmp_path: Path) -> None:
    report = checked(
        """
        def called():
            before = chainer.config.train
            with chainer.using_config("train", False):
                inside = chainer.config.train
            return before, inside, chainer.config.train
        """,
        tmp_path,
    )
    assert report.result == (True, False, True)


def test_a_setting_that_the_program_sets_stays_set(tmp_path: Path) -> None:
    report = checked(
        """
        def called():
            chainer.config.train = False
            return chainer.config.train
        """,
        tmp_path,
    )
    assert report.result is False


def test_a_lazy_layer_keeps_the_features_of_its_first_input(tmp_path: Path) -> None:
    report = checked(
        """
        class Model(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.fc = L.Linear(None, 4)

            def forward(self, x, y):
                before = self.fc.W.array is None
                h = self.fc(x)
                return self.fc(y)
        """,
        tmp_path,
        "Model",
        x="float32[batch, 3, 5]",
        y="float32[batch, 14]",
    )
    (error,) = report.errors
    assert error.place.line == HEAD.count("\n") + 10
    assert "expected 15 features, got 14" in error.message


def test_what_is_stored_in_a_small_array_is_known_again(tmp_path: Path) -> None:
    report = checked(
        """
        def called(x):
            sizes = np.ones(2, dtype=np.int64)
            sizes[0] = x.shape[1] // 2
            return np.zeros((sizes[0], sizes[1] + 1))
        """,
        tmp_path,
        x="float32[batch, 8]",
    )
    assert report.returned == "numpy.ndarray(dtype=float64, shape=(4, 2))"


def test_a_product_of_sizes_is_a_size(tmp_path: Path) -> None:
    report = checked(
        """
        def called(x):
            flat = x.reshape(x.shape[0], np.prod(x.shape[1:]))
            return flat, np.cumsum([x.shape[0], 2])
        """,
        tmp_path,
        x="float32[batch, 3, width]",
    )
    assert report.errors == []
    assert "shape=(batch, 3*width)" in (report.returned or "")


def test_floats_cannot_be_added_to_integers_in_place(tmp_path: Path) -> None:
    report = checked(
        """
        def called(x):
            x += 0.5
            return x
        """,
        tmp_path,
        x="int32[batch]",
    )
    (error,) = report.errors
    assert error.code == "dtype-mismatch"
    assert "cannot be stored in place" in error.message


def test_a_variable_refuses_items_to_be_set(tmp_path: Path) -> None:
    report = checked(
        """
        def called(x):
            y = F.relu(x)
            y[0] = 0
            return y
        """,
        tmp_path,
        x="float32[batch]",
    )
    (error,) = report.errors
    assert error.remedy == "set the items of x.array"


def test_the_parameters_of_a_chain_are_those_of_its_links(tmp_path: Path) -> None:
    report = checked(
        """
        def called():
            model = chainer.Chain(fc=L.Linear(3, 4), out=L.Linear(4, 5, nobias=True))
            names = [name for name, _ in model.namedparams()]
            return sum(p.size for p in model.params()), sorted(names), len(list(model.links()))
        """,
        tmp_path,
    )
    assert report.errors == []
    assert report.returned == ("(int(36), [str('/fc/W'), str('/fc/b'), str('/out/W')], int(3))")
