"""Links, optimizers, snapshots and errors of define-by-run programs."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import HaganeError, InvalidArgument
from hagane.utils.type_check import InvalidType, expect


class Net(chainer.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, 4, 3)
            self.bn = L.BatchNormalization(4)
            self.out = L.Linear(None, 3)

    def forward(self, x: Any) -> Any:
        return self.out(F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2))


def draw(*shape: int) -> np.ndarray:
    return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


X, T = draw(6, 2, 8, 8), np.array([0, 1, 2, 2, 1, 0], np.int32)


def test_a_network_has_the_losses_and_gradients_of_torch() -> None:
    np.random.seed(0)
    model = L.Classifier(Net())
    model(X, T)
    net = model.predictor
    other = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3),
        torch.nn.BatchNorm2d(4, eps=2e-5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 3),
    )
    pairs = [
        (net.conv.W, other[0].weight), (net.conv.b, other[0].bias), (net.bn.gamma, other[1].weight),
        (net.bn.beta, other[1].bias), (net.out.W, other[5].weight), (net.out.b, other[5].bias),
    ]  # fmt: skip
    with torch.no_grad():
        for parameter, wanted in pairs:
            wanted.copy_(torch.from_numpy(parameter.array))
    optimizer = chainer.optimizers.MomentumSGD(lr=0.1).setup(model)
    torch_optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.update(model, X, T)
        torch_optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            other(torch.from_numpy(X)), torch.from_numpy(T).long()
        )
        loss.backward()
        torch_optimizer.step()
        np.testing.assert_allclose(model.loss.array, loss.item(), rtol=1e-4)
    for parameter, wanted in pairs:
        np.testing.assert_allclose(parameter.array, wanted.detach().numpy(), rtol=2e-3, atol=2e-4)


OPTIMIZERS = (
    "SGD MomentumSGD CorrectedMomentumSGD NesterovAG MSVAG AdaGrad AdaDelta RMSprop RMSpropGraves"
    " SMORMS3 Adam AdamW AMSGrad AdaBound AMSBound"
).split()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_lowers_a_loss_and_takes_up_again(name: str, tmp_path: Path) -> None:
    def steps(model: Any, optimizer: Any, count: int) -> float:
        for _ in range(count):
            optimizer.update(lambda: F.mean_squared_error(model(draw(5, 3)), draw(5, 2) * 0.3))
        return float(F.mean_squared_error(model(draw(5, 3)), draw(5, 2) * 0.3).array)

    np.random.seed(0)
    model = L.Linear(3, 2)
    optimizer = getattr(chainer.optimizers, name)().setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-6))
    before = steps(model, optimizer, 0)
    assert steps(model, optimizer, 5) < before
    for part, file in ((model, "model.npz"), (optimizer, "optimizer.npz")):
        chainer.serializers.save_npz(str(tmp_path / file), part)
    again = L.Linear(3, 2)
    resumed = getattr(chainer.optimizers, name)().setup(again)
    resumed.add_hook(chainer.optimizer_hooks.WeightDecay(1e-6))
    for part, file in ((again, "model.npz"), (resumed, "optimizer.npz")):
        chainer.serializers.load_npz(str(tmp_path / file), part)
    if name != "MSVAG":  # its power of beta is not in a snapshot, in Chainer neither
        assert steps(again, resumed, 3) == steps(model, optimizer, 3)


def test_adam_is_that_of_torch() -> None:
    model = L.Linear(3, 2)
    other = torch.nn.Linear(3, 2)
    with torch.no_grad():
        other.weight.copy_(torch.from_numpy(model.W.array))
        other.bias.copy_(torch.from_numpy(model.b.array))
    ours = chainer.optimizers.Adam(alpha=0.01, eps=0.0).setup(model)
    theirs = torch.optim.Adam(other.parameters(), lr=0.01, eps=0.0)
    for _ in range(5):
        ours.update(lambda: F.sum(F.square(model(draw(4, 3)))))
        theirs.zero_grad()
        other(torch.from_numpy(draw(4, 3))).square().sum().backward()
        theirs.step()
    np.testing.assert_allclose(model.W.array, other.weight.detach().numpy(), rtol=1e-4)


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_snapshots_list_what_is_missing(kind: str, tmp_path: Path) -> None:
    save = getattr(chainer.serializers, f"save_{kind}")
    load = getattr(chainer.serializers, f"load_{kind}")
    path = str(tmp_path / f"model.{kind}")
    model = Net()
    model(X)
    save(path, model)
    other = Net()
    other(X)
    load(path, other)
    np.testing.assert_array_equal(other.conv.W.array, model.conv.W.array)
    other.add_param("more", (2,))
    with pytest.raises(HaganeError, match="missing in the snapshot: more"):
        load(path, other)
    other.add_param("many", (2,))
    del other.conv
    with pytest.raises(HaganeError) as caught:
        load(path, other)
    listed = [line.strip() for line in str(caught.value).splitlines() if line.startswith("  ")]
    assert [line for line in listed if "missing" in line] == [
        "missing in the snapshot: many", "missing in the snapshot: more",
    ]  # fmt: skip
    assert "not in the object: conv/W" in listed
    assert "not in the object: conv/b" in listed
    deferred = Net()
    load(path, deferred)
    assert deferred.out.W.shape == (3, 36)


def test_pickled_values_are_not_read_unless_allowed() -> None:
    file = io.BytesIO()
    np.savez(file, W=np.array([{"a": 1}], dtype=object))
    link = chainer.Link()
    link.add_persistent("W", None)
    with pytest.raises(InvalidArgument, match="allow_pickle=True"):
        chainer.serializers.load_npz(io.BytesIO(file.getvalue()), link)
    chainer.serializers.load_npz(io.BytesIO(file.getvalue()), link, allow_pickle=True)
    assert link.W[0] == {"a": 1}


def test_wrong_types_are_named_with_the_place_in_the_program() -> None:
    with pytest.raises(InvalidType, match=r"Expect: x.shape == \(…, 4\)") as caught:
        F.linear(draw(2, 3), draw(5, 4))
    assert "test_training.py" in str(caught.value)
    assert "F.linear(draw(2, 3), draw(5, 4))" in str(caught.value)
    for call in (
        lambda: F.relu(np.arange(3)),
        lambda: F.concat([draw(2, 3), draw(3, 3)], axis=1),
        lambda: chainer.Variable(draw(2)) + chainer.Variable(draw(3)),
        lambda: F.softmax_cross_entropy(draw(2, 3), np.zeros(3, np.int32)),
        lambda: F.convolution_2d(draw(1, 2, 3, 3), draw(1, 3, 2, 2)),
        lambda: F.reshape(draw(2, 3), (4, -1)),
    ):
        with pytest.raises(InvalidType, match="Invalid operation is performed in"):
            call()


def test_functions_of_users_have_first_and_second_derivatives() -> None:
    class Cube(chainer.FunctionNode):
        def check_type_forward(self, in_types: Any) -> None:
            expect(in_types.size() == 1, in_types[0].dtype.kind == "f")

        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            return (inputs[0] ** 3,)

        def backward(self, indexes: Any, grads: Any) -> Any:
            (x,) = self.get_retained_inputs()
            return (3 * x * x * grads[0],)

    x = chainer.Variable(np.array([2.0, -1.0]))
    (y,) = Cube().apply((x,))
    (gx,) = chainer.grad([y], [x], enable_double_backprop=True)
    (ggx,) = chainer.grad([gx], [x])
    assert gx.array.tolist() == [12, 3]
    assert ggx.array.tolist() == [12, -6]
    with pytest.raises(InvalidType, match=r"in_types\[0\].dtype.kind == f"):
        Cube().apply((np.arange(3),))


def test_old_functions_work_once() -> None:
    class Double(chainer.Function):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 2,)

        def backward(self, inputs: Any, grads: Any) -> Any:
            return (grads[0] * 2,)

    x = chainer.Variable(draw(3))
    y = F.sum(Double()(x) * x)
    y.backward()
    np.testing.assert_allclose(x.grad, 4 * x.array, rtol=1e-6)
    x.cleargrad()
    y = F.sum(Double()(x))
    y.backward(enable_double_backprop=True)
    with pytest.raises(RuntimeError, match="cannot twice-differentiate"):
        chainer.grad([x.grad_var], [x])


def test_misuse_says_what_to_do() -> None:
    x = chainer.Variable(draw(3))
    with pytest.raises(RuntimeError, match="expected a scalar or a variable whose grad is set"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="call setup"):
        chainer.optimizers.SGD().update()
    with pytest.raises(InvalidArgument, match="no CUDA device"):
        chainer.get_device("@cupy:0")
    with pytest.raises(RuntimeError, match="Link.__init__"):
        type("Bare", (chainer.Link,), {"__init__": lambda self: None})()(1)
    with chainer.using_config("debug", True), pytest.raises(RuntimeError, match="NaN.*log"):
        F.log(chainer.Variable(-np.ones(2, np.float32)))
    with chainer.no_backprop_mode():
        assert (x * 2).creator is None
    assert (x * 2).creator is not None


def test_recurrent_links_are_those_of_torch() -> None:
    link = L.NStepLSTM(1, 3, 4, 0.0)
    other = torch.nn.LSTM(3, 4)
    order = (0, 1, 2, 3)  # input, forget, cell and output gate in both
    with torch.no_grad():
        ws = link.ws[0]
        other.weight_ih_l0.copy_(torch.from_numpy(np.concatenate([ws[i].array for i in order])))
        other.weight_hh_l0.copy_(torch.from_numpy(np.concatenate([ws[4 + i].array for i in order])))
        other.bias_ih_l0.zero_()
        other.bias_hh_l0.zero_()
    xs = [draw(5, 3), draw(2, 3), draw(3, 3)]
    hy, cy, ys = link(None, None, xs)
    for i, x in enumerate(xs):
        wanted, (h, c) = other(torch.from_numpy(x))
        np.testing.assert_allclose(ys[i].array, wanted.detach().numpy(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(hy.array[0, i], h.detach().numpy()[0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(cy.array[0, i], c.detach().numpy()[0], rtol=1e-4, atol=1e-6)


def test_models_are_copied_repeated_and_summed_up() -> None:
    model = chainer.Sequential(L.Linear(3, 3), F.relu).repeat(2, "init")
    assert len(model) == 2
    assert model.count_params() == 24
    assert "Linear(in_size=3, out_size=3" in str(model)
    shared = model.copy("share")
    assert next(iter(shared.params())).array is next(iter(model.params())).array
    assert [name for name, _ in Net().namedparams()][:2] == ["/bn/beta", "/bn/gamma"]


def test_importing_hagane_stays_light_and_scripts_run_unchanged(tmp_path: Path) -> None:
    code = "import sys, hagane; assert not any('hagane.nn' in m for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport numpy as np\nimport chainer\nimport chainer.functions as F\n"
        "from chainer.functions.activation import relu\nfrom chainer import links as L\n"
        "y = relu.relu(L.Linear(3, 2)(np.ones((1, 3), 'f')))\n"
        "print(y.shape, sys.argv[1:], F.relu is relu.relu)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "hagane", "chainer", str(script), "--gpu", "-1"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "(1, 2) ['--gpu', '-1'] True\n"


def test_numbers_of_a_snapshot_keep_their_kind() -> None:
    held = {"t": np.float32(2.5), "n": np.int64(7)}
    reader = chainer.serializers.NpzDeserializer(held)
    assert reader("n", 0) == 7
    assert reader("t", 0.0) == 2.5
    with pytest.raises(TypeError, match=r"'t': expected a int, the snapshot has float32, which"):
        reader("t", 0)
    with pytest.raises(TypeError, match=r"'n': expected a uint32, the snapshot has int64"):
        reader("n", np.uint32(1))


def test_a_device_is_a_number_also_as_text() -> None:
    assert chainer.get_device("-1") is chainer.get_device(-1)
    with pytest.raises(InvalidArgument, match="hagane computes on the CPU and has no CUDA device"):
        chainer.get_device("0")
    # Programs go on without a GPU where Chainer raises a RuntimeError.
    x = chainer.Variable(np.ones((2, 2), "f"))
    for ask in (
        lambda: chainer.get_device(0),
        lambda: x.to_device("@cupy:0"),
        lambda: L.Linear(2, 2).to_gpu(0),
        lambda: L.Linear(2, 2).to_device("@cupy:0"),
        lambda: F.copy(x, 0),
        lambda: chainer.dataset.concat_examples([x.array], 0),
        lambda: chainer.backend.GpuDevice.from_device_id(0),
        lambda: chainer.get_device("abacus"),
    ):
        with pytest.raises(RuntimeError, match=r"device .*: (hagane computes|expected '@numpy')"):
            ask()


def test_modules_of_datasets_are_found_under_the_names_of_chainer() -> None:
    from hagane.dataset import convert, download

    assert convert.concat_examples is chainer.dataset.concat_examples
    assert download.get_dataset_root is chainer.dataset.get_dataset_root
