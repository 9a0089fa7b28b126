"""Mistakes of newcomers' programs are told with the argument, the expectation and a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import serializers
from hagane.errors import InvalidArgument
from hagane.nn.serializers.archive import SnapshotError


def _ones(*shape: int) -> Any:
    return np.ones(shape, "f")


def _updated(loss: Callable[..., Any]) -> None:
    link = L.Linear(3, 2)
    chainer.optimizers.SGD().setup(link).update(lambda: loss(link))


def _never_called() -> Any:
    return L.Linear(None, 2)


CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a sample that is shorter than the first": (
        lambda: chainer.dataset.concat_examples([(1, 2), (1, 3), (4,)]),
        IndexError,
        "concat_examples: expected 2 elements in each sample, as in the first, got 1 in sample 2",
    ),
    "classes of CTC that are no integers": (
        lambda: _aligned([[1.0, 2.0], [1.0, 2.0]]),
        TypeError,
        "Expect: t.dtype.kind == 'i'",
    ),
    "lengths of another batch": (
        lambda: _aligned(input_length=[3]),
        TypeError,
        "Expect: input_length: 2 integers",
    ),
    "a padding that is a word": (
        lambda: L.Convolution2D(3, 2, 3, pad="same")(_ones(1, 3, 5, 5)),
        TypeError,
        "expected an integer or 2 of them, got 'same'\nAt: ",
    ),
    "a device that is a pair": (
        lambda: chainer.get_device(("cuda", 0)),
        TypeError,
        "device: expected a Device, a name or a number, got ('cuda', 0)",
    ),
    "a drawing of an array": (
        lambda: chainer.computational_graph.build_computational_graph([_ones(2)]),
        TypeError,
        "build_computational_graph: expected outputs[0] to be a Variable or a node, got ndarray",
    ),
    "a gradient by an array": (
        lambda: chainer.grad([F.sum(chainer.Variable(_ones(2)))], [_ones(2)]),
        TypeError,
        "grad: expected inputs[0] to be a Variable, got ndarray",
    ),
    "an initializer that is a text": (
        lambda: L.Linear(2, 2, initialW="he"),
        TypeError,
        "expected None, a number, an array or an initializer, as initializers.HeNormal(), got 'he'",
    ),
    "initial weights of other sizes": (
        lambda: L.Linear(2, 3, initialW=_ones(2, 3)),
        ValueError,
        "initializer: expected an array that fills (3, 2), got (2, 3)",
    ),
    "a loss that is an array": (
        lambda: _updated(lambda link: link(_ones(1, 3)).array),
        TypeError,
        "SGD.update: expected the loss function to return a Variable, got ndarray; return the loss "
        f"itself, not its array\nAt: {__file__}:",
    ),
    "a loss function that returns nothing": (
        lambda: _updated(lambda link: None),
        TypeError,
        "expected the loss function to return a Variable, got NoneType",
    ),
    "a loss for each sample": (
        lambda: _updated(lambda link: F.sum(link(_ones(4, 3)), axis=1)),
        RuntimeError,
        "return a scalar or a variable whose grad is set, got one of shape (4,); take "
        f"functions.mean of it\nAt: {__file__}:",
    ),
    "a loss of integers": (
        lambda: _updated(lambda link: F.argmax(link(_ones(1, 3)))),
        TypeError,
        "return a floating-point number, got int32; no gradient goes through it, return what",
    ),
    "sizes of a link that was never called": (
        lambda: _never_called().W.shape,
        AttributeError,
        "W has no shape yet: a parameter whose sizes come with the first input has none before its "
        "link was called, or initialize(shape)",
    ),
    "an update of a link that was never called": (
        lambda: chainer.optimizers.SGD().setup(_never_called()).update(),
        RuntimeError,
        "the parameter W has no array yet: call its link once, or initialize(shape)",
    ),
    "a link of a negative size": (
        lambda: L.Linear(-3, 2),
        ValueError,
        "expected sizes of 0 or more for a parameter, got (2, -3)",
    ),
    "examples of two shapes": (
        lambda: chainer.dataset.concat_examples([(_ones(2), 1), (_ones(3), 1)]),
        ValueError,
        "concat_examples: expected arrays of one shape, got (2,) and (3,); padding=0 fills the "
        "shorter ones up",
    ),
    "a sequence of another width": (
        lambda: L.NStepLSTM(1, 3, 4, 0.0)(None, None, [_ones(5, 3), _ones(4, 2)]),
        chainer.utils.type_check.InvalidType,
        "n_step_lstm (Forward)\n\nExpect: xs[1].shape == (…, 3)\nActual: xs[1].shape == (4, 2)",
    ),
    "an index beyond the rows": (
        lambda: L.EmbedID(10, 3)(np.array([1, 12], "i")),
        ValueError,
        "embed_id: Each not ignored `x` value need to satisfy `0 <= x < len(W)`, here 10, got 12"
        f"\nAt: {__file__}",
    ),
    "a label beyond the classes": (
        lambda: F.softmax_cross_entropy(_ones(2, 3), np.array([0, 3], "i")),
        ValueError,
        "softmax_cross_entropy: Each label `t` need to satisfy `0 <= t < x.shape[1]` (= 3) or to "
        f"be ignore_label (-1), got 3\nAt: {__file__}",
    ),
    "a batch that grows": (
        lambda: (rows := L.LSTM(3, 4), rows(_ones(2, 3)), rows(_ones(3, 3))),
        TypeError,
        "LSTM: The batch size of x must be equal to or less than the size of the previous state "
        f"h: 3 and 2\nAt: {__file__}",
    ),
    "states of too few layers": (
        lambda: L.NStepGRU(2, 3, 4, 0.0)(_ones(1, 2, 4), [_ones(5, 3), _ones(4, 3)]),
        ValueError,
        "hx: expected initial states of 2 layers, (layers × directions, batch, units), got 1",
    ),
    "a shape of one axis": (
        lambda: L.BatchNormalization(4)(_ones(2, 3, 5)),
        chainer.utils.type_check.InvalidType,
        "Expect: gamma.shape == (3,)\nActual: gamma.shape == (4,)",
    ),
    "two element types": (
        lambda: L.Linear(3, 2)(np.ones((1, 3))),
        chainer.utils.type_check.InvalidType,
        "Actual: float32 != float64; convert one of them by astype or hagane.functions.cast",
    ),
}


def _aligned(labels: Any = None, **lengths: Any) -> Any:
    scores = [_ones(2, 4)] * 3
    given = np.ones((2, 2), "i") if labels is None else np.array(labels)
    sizes = {name: np.array(one) for name, one in lengths.items()}
    return F.connectionist_temporal_classification(scores, given, 0, **sizes)


def _hierarchy(*labels: int) -> Any:
    return L.BinaryHierarchicalSoftmax(3, ((0, 1), 2))(_ones(len(labels), 3), np.array(labels))


# Calls with a label or an index beyond those there are.
OUTSIDE: dict[str, tuple[Callable[[], Any], str]] = {
    "softmax_cross_entropy": (
        lambda: F.softmax_cross_entropy(_ones(2, 3), np.array([0, 3])),
        "`0 <= t < x.shape[1]` (= 3) or to be ignore_label (-1), got 3",
    ),
    "hinge": (lambda: F.hinge(_ones(2, 3), np.array([0, -1])), "0 <= t < 3, got -1"),
    "select_item": (lambda: F.select_item(_ones(2, 3), np.array([5, 0])), "0 <= t < 3, got 5"),
    "permutate": (lambda: F.permutate(_ones(2, 3), np.array([0, 2])), "each index of 2 once"),
    "embed_id": (lambda: F.embed_id(np.array([0, 9]), _ones(4, 3)), "got 9"),
    "hierarchy": (lambda: _hierarchy(0, 5), "the tree has no class 5"),
    "labels of CTC": (lambda: _aligned([[1, 4], [1, 2]]), "0 <= t < 4, got 4"),
    "times of CTC": (lambda: _aligned(input_length=[3, 4]), "0 <= input_length < 4, got 4"),
    "counts of CTC": (lambda: _aligned(label_length=[-1, 2]), "0 <= label_length < 3, got -1"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_labels_and_indices_that_are_not_there_are_refused(name: str) -> None:
    call, text = OUTSIDE[name]
    for kind in (IndexError, ValueError):
        with pytest.raises(kind, match=re.escape(text) + r".*\nAt: .*test_wrong_use.py:\d+"):
            call()


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_its_remedy(name: str) -> None:
    call, kind, text = CASES[name]
    with pytest.raises(kind, match=re.escape(text)):
        call()


def _recurrent(layers: int = 1) -> tuple[Any, ...]:
    state, weight, bias = _ones(1, 1, 2), _ones(2, 2), _ones(2)
    return layers, 0.0, state, state, [[weight] * 8], [[bias] * 8], [weight]


# What is called with an argument of each name that it once had, and with an unknown one.
ONCE: dict[str, tuple[Callable[..., Any], str]] = {
    "dropout": (lambda **k: F.dropout(_ones(2), **k), "train"),
    "zoneout": (lambda **k: F.zoneout(_ones(2), _ones(2), **k), "train"),
    "convolution_2d": (
        lambda **k: F.convolution_2d(_ones(1, 1, 3, 3), _ones(1, 1, 2, 2), **k),
        "deterministic",
    ),
    "deconvolution_2d": (
        lambda **k: F.deconvolution_2d(_ones(1, 1, 3, 3), _ones(1, 1, 2, 2), **k),
        "deterministic",
    ),
    "spatial_transformer_grid": (
        lambda **k: F.spatial_transformer_grid(_ones(1, 2, 3), (2, 2), **k),
        "use_cudnn",
    ),
    "n_step_lstm": (lambda **k: F.n_step_lstm(*_recurrent(), **k), "train use_cudnn"),
    "Convolution2D": (lambda **k: L.Convolution2D(1, 1, 2, **k), "deterministic"),
    "Deconvolution2D": (lambda **k: L.Deconvolution2D(1, 1, 2, **k), "deterministic"),
    "MLPConvolution2D": (lambda **k: L.MLPConvolution2D(1, (1, 1), 2, **k), "wscale"),
    "BatchNormalization": (lambda **k: L.BatchNormalization(2)(_ones(3, 2), **k), "test"),
    "StatefulZoneoutLSTM": (lambda **k: L.StatefulZoneoutLSTM(2, 2, **k), "train"),
    "NStepBiLSTM": (
        lambda **k: L.NStepBiLSTM(1, 2, 2, 0.0, **k),
        "use_cudnn use_bi_direction activation",
    ),
    "NStepLSTM": (lambda **k: L.NStepLSTM(1, 2, 2, 0.0)(None, None, [_ones(3, 2)], **k), "train"),
    "NStepGRU": (lambda **k: L.NStepGRU(1, 2, 2, 0.0)(None, [_ones(3, 2)], **k), "train"),
}


@pytest.mark.parametrize("name", ONCE)
def test_arguments_of_earlier_versions_and_unknown_ones_are_refused(name: str) -> None:
    call, removed = ONCE[name]
    for argument in removed.split():
        with pytest.raises(
            ValueError, match=f"{name}: {argument} argument is not supported anymore; .* instead"
        ):
            call(**{argument: True})
    with pytest.raises(TypeError, match=rf"{name}\(\) got unexpected keyword argument.*'ratios'"):
        call(ratios=1)


def test_a_drawing_with_split_nodes_is_refused() -> None:
    y = F.relu(chainer.Variable(_ones(2)))
    with pytest.raises(ValueError, match="remove_split=False is not supported anymore"):
        chainer.computational_graph.build_computational_graph([y], remove_split=False)


def test_parameters_are_listed_that_a_backward_before_the_update_did_not_reach() -> None:
    model = chainer.Sequential(L.Linear(2, 3), L.Linear(3, 1))
    optimizer = chainer.optimizers.SGD().setup(model)
    with chainer.using_config("debug", True):
        model.cleargrads()
        F.sum(model[0](_ones(1, 2))).backward()
        with pytest.raises(
            RuntimeError, match=r"(?s)not depend on these parameters.*\n  /1/W: \(1, 3\)"
        ):
            optimizer.update()
    optimizer.update()


def test_a_classifier_without_labels_says_that_the_input_was_taken_for_them() -> None:
    with pytest.raises(TypeError) as caught:
        L.Classifier(L.Linear(3, 2))(_ones(1, 3))
    assert caught.value.__notes__ == [
        "Classifier: its one argument was taken for the labels (label_key=-1); without labels "
        "call its predictor"
    ]


class _Two(chainer.Chain):
    def __init__(self, outputs: int, **others: Any):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, outputs)
            for name, link in others.items():
                setattr(self, name, link)


@pytest.mark.parametrize("form", ["npz", "hdf5"])
def test_sizes_and_names_of_a_snapshot_that_do_not_fit_are_all_listed(
    form: str, tmp_path: Path
) -> None:
    if form == "hdf5":
        pytest.importorskip("h5py", reason="HDF5 files need the extra")
    save, load = (getattr(serializers, f"{verb}_{form}") for verb in ("save", "load"))
    path = tmp_path / "snapshot"
    save(path, _Two(2, b=L.Linear(2, 2)))
    with pytest.raises(ValueError, match="the snapshot has") as sizes:
        load(path, _Two(4, b=L.Linear(9, 2)))
    assert str(sizes.value) == (
        "the snapshot is not one of this object:\n"
        "  a/W: expected shape (4, 3), the snapshot has (2, 3)\n"
        "  a/b: expected shape (4,), the snapshot has (2,)\n"
        "  b/W: expected shape (2, 9), the snapshot has (2, 2)"
    )
    with pytest.raises(SnapshotError) as names:
        load(path, _Two(4, c=L.Linear(1, 1)))
    for line in ("missing in the snapshot: c/W", "not in the object: b/W", "a/b: expected shape"):
        assert line in str(names.value)
    with pytest.raises(SnapshotError) as more:
        load(path, _Two(4))
    assert str(more.value) == (
        "the snapshot is not one of this object:\n"
        "  not in the object: b/W\n"
        "  not in the object: b/b\n"
        "  a/W: expected shape (4, 3), the snapshot has (2, 3)\n"
        "  a/b: expected shape (4,), the snapshot has (2,)"
    )
    load(path, _Two(2))  # a part of what was saved


@pytest.mark.parametrize("content", ["text", "nothing", "half", "array"])
def test_files_that_are_no_whole_snapshots_are_named(content: str, tmp_path: Path) -> None:
    path, model = tmp_path / "snapshot.npz", _Two(2)
    serializers.save_npz(path, model)
    whole = path.read_bytes()
    if content == "array":
        np.save(path.with_suffix(".npy"), _ones(3))
        path = path.with_suffix(".npy")
    else:
        half = whole[: len(whole) // 2]
        path.write_bytes({"text": b"hello", "nothing": b"", "half": half}[content])
    with pytest.raises(InvalidArgument, match=f"{path.name}: expected a whole npz file, such as"):
        serializers.load_npz(path, model)


def test_a_file_that_is_no_hdf5_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="HDF5 files need the extra")
    path = tmp_path / "snapshot.h5"
    path.write_bytes(b"hello")
    with pytest.raises(InvalidArgument, match=r"snapshot.h5: expected a whole HDF5 file"):
        serializers.load_hdf5(path, _Two(2))


def test_copied_parameters_of_other_sizes_are_named() -> None:
    message = r"copydata: expected an array that fits W: \(2, 3\), float32, got \(2, 4\), float32"
    with pytest.raises(ValueError, match=message):
        L.Linear(3, 2).copyparams(L.Linear(4, 2))
