"""Programs whose results Chainer 7.8.1 settles: random draws in its order, its promotions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import NoDevice
from hagane.utils.type_check import InvalidType


def test_serial_iterators_shuffle_with_numpys_stream_as_chainers_do() -> None:
    np.random.seed(0)
    iterator = chainer.iterators.SerialIterator(np.arange(5), 5)
    chainer.iterators.SerialIterator(np.arange(5), 5, repeat=False, shuffle=False)
    assert next(iterator) == [2, 0, 1, 3, 4]
    np.random.seed(0)
    np.random.permutation(5), np.random.permutation(5)
    expected = np.random.rand()
    np.random.seed(0)
    next(chainer.iterators.SerialIterator(np.arange(5), 5))
    assert np.random.rand() == expected


def test_each_direction_of_a_recurrent_layer_drops_values_of_its_own() -> None:
    np.random.seed(0)
    link = L.NStepBiLSTM(2, 6, 5, 0.5)
    np.random.seed(1)
    link(None, None, [np.ones((n, 6), "f") for n in (3, 2)])
    found = np.random.rand()
    np.random.seed(1)
    np.random.rand(2 * (3 + 2) * 10)  # the second layer's inputs, for both directions
    assert found == np.random.rand()


@pytest.mark.parametrize("other", [np.ones(3), np.ones(3, "i"), np.ones((2, 3), np.float16)])
def test_arrays_beside_a_variable_take_its_element_type(other: np.ndarray) -> None:
    x = chainer.Variable(np.full(3, 2, "f"))
    for y in (x + other, other - x, x * other, other / x, x**other):
        assert y.dtype == np.float32
    np.testing.assert_array_equal((other - x).array, np.full(other.shape, -1))


def test_a_bias_of_another_element_type_is_refused() -> None:
    with pytest.raises(InvalidType, match=r"Expect: b.dtype == x.dtype\nActual: float32 != float"):
        L.Linear(3, 2)(np.ones((2, 3)))
    with pytest.raises(InvalidType, match=r"Expect: b.dtype == x.dtype"):
        L.Convolution2D(3, 2, 1)(np.ones((2, 3, 2, 2)))


def test_batch_normalization_of_one_sample_warns_and_names_the_place() -> None:
    with pytest.warns(UserWarning, match=r"result is beta; .* At: .*test_like_chainer.py:\d+"):
        L.BatchNormalization(3)(np.ones((1, 3), "f"))


def test_labels_of_ctc_are_checked() -> None:
    x = [chainer.Variable(np.ones((2, 3), "f"))] * 2
    with pytest.raises(InvalidType, match=r"Expect: t of shape \(2, labels\)"):
        F.connectionist_temporal_classification(x, np.array([[1]], "i"), 0)
    with pytest.raises(ValueError, match="expected 0 <= t < 3, got"):
        F.connectionist_temporal_classification(x, np.array([[1], [9]], "i"), 0)


def test_ignored_classes_count_nowhere_in_a_summary() -> None:
    y = np.eye(3, dtype="f")[[0, 1, 2, 1, 0]]
    t = np.array([0, 1, 2, 0, 1], "i")
    precision, recall, _, support = F.classification_summary(y, t, label_num=3, ignore_label=0)
    np.testing.assert_array_equal(precision.array, [0, 1, 1])
    np.testing.assert_array_equal(recall.array, [np.nan, 0.5, 1])
    np.testing.assert_array_equal(support.array, [0, 2, 1])


def test_a_number_alone_is_a_category_alone() -> None:
    y = F.gumbel_softmax(np.array(0.3, "f"))
    assert y.shape == ()
    assert y.array == 1


def test_statistics_of_decorrelation_may_have_another_element_type() -> None:
    x = np.random.RandomState(0).randn(4, 2)
    mean, projection = np.ones((1, 2), "f"), np.eye(2, dtype="f")[None]
    y = F.fixed_decorrelated_batch_normalization(x, mean, projection, groups=1)
    np.testing.assert_allclose(y.array, x - 1, atol=1e-6)
    assert y.dtype == np.float64


def test_names_of_devices_serve_checks_of_programs() -> None:
    device = chainer.get_device(-1)
    assert isinstance(device, chainer.backend.CpuDevice)
    assert not isinstance(device, chainer.backend.ChainerxDevice | chainer.backend.Intel64Device)
    with pytest.raises(ValueError, match="to_chx: hagane has no arrays of ChainerX"):
        chainer.backend.to_chx(np.ones(2))


def test_tools_of_chainers_utils() -> None:
    class Twice:
        calls = 0

        @chainer.utils.cache.cached_property
        def y(self) -> int:
            self.calls += 1
            return self.calls

    one = Twice()
    assert (one.y, one.y) == (1, 1)
    with chainer.no_backprop_mode():
        assert one.y == 2
    with pytest.raises(AttributeError, match="attribute 'y' of Twice is readonly"):
        one.y = 3
    found = chainer.utils.sum_to(np.ones((2, 3, 4)), (3, 1))
    np.testing.assert_array_equal(found, np.full((3, 1), 8))
    with pytest.raises(TypeError, match="expected a numpy.ndarray, got Variable"):
        chainer.utils.sum_to(chainer.Variable(np.ones(2)), (1,))
    with pytest.warns(FutureWarning, match="f is experimental"):
        chainer.utils.experimental("f")


def test_a_weight_without_elements_has_no_spectral_norm() -> None:
    with pytest.raises(ValueError, match=r"Linear: expected a weight with elements, got \(0, 10\)"):
        L.Linear(10, 0).add_hook(chainer.link_hooks.SpectralNormalization())


def test_tile_of_a_number_has_a_second_derivative() -> None:
    x = chainer.Variable(np.array(3, "f"))
    y = F.tile(x, 2) ** 3
    (gx,) = chainer.grad([F.sum(y)], [x], enable_double_backprop=True)
    gx.backward()
    assert x.grad == 36


@pytest.mark.parametrize("name", ["elu", "selu", "leaky_relu", "hard_sigmoid", "softplus"])
def test_activations_of_a_number_keep_its_element_type(name: str) -> None:
    x = chainer.Variable(np.array(-0.5, "f"))
    y = getattr(F, name)(x)
    y.backward()
    assert (y.dtype, x.grad.dtype) == (np.float32, np.float32)


def test_walkers_alias_draws_what_chainer_draws_from_a_seed() -> None:
    np.random.seed(0)
    sampler = chainer.utils.WalkerAlias([5, 1, 2, 8])
    assert sampler.sample((10,)).tolist() == [0, 3, 0, 0, 3, 3, 3, 3, 3, 3]
    many = np.bincount(sampler.sample((40_000,)), minlength=4) / 40_000
    np.testing.assert_allclose(many, np.array([5, 1, 2, 8]) / 16, atol=0.01)


def test_an_update_of_the_programs_own_names_its_optimizers() -> None:
    class Updater(chainer.training.StandardUpdater):
        def update_core(self) -> None:
            x = self.converter(self.get_iterator("main").next(), self.device)
            for name in ("gen", "dis"):
                optimizer = self.get_optimizer(name)
                optimizer.update(lambda link=optimizer.target: F.sum(link(x)))

    data = np.ones((4, 2), "f")
    optimizers = {
        name: chainer.optimizers.SGD().setup(L.Linear(2, 1, initialW=1)) for name in ("gen", "dis")
    }
    iterator = chainer.iterators.SerialIterator(data, 4)
    Updater(iterator, optimizers).update()
    assert optimizers["dis"].target.W.array[0, 0] == np.float32(1 - 0.04)
    with pytest.raises(ValueError, match=r"optimizer: expected one named 'main', got \['dis', 'g"):
        chainer.training.StandardUpdater(iterator, optimizers)


def test_hooks_see_arithmetic_under_chainers_names_and_each_operator_of_a_gradient() -> None:
    x = chainer.Variable(np.ones((3, 5), "f"))
    w = chainer.Parameter(np.ones((3, 5), "f"))
    hook = chainer.function_hooks.TimerHook()
    with hook:
        y = w * x
    assert [name for name, _ in hook.call_history] == ["Mul"]
    assert y.creator.label == "_ * _"
    y.grad = np.ones((3, 5), "f")
    with hook:
        y.backward()
    assert [name for name, _ in hook.call_history[1:]] == ["Mul"] * 3
    np.testing.assert_array_equal(w.grad, x.array)


def test_windows_over_other_numbers_of_axes_are_refused_as_chainers() -> None:
    image = np.zeros((1, 1, 4, 4), "f")
    for given in (((2,), (1, 1), (0, 0)), ((2, 2), (1,), (0, 0)), ((2, 2), (1, 1), (0,))):
        with pytest.raises(AssertionError, match=r"expected 2 numbers, got \(\d,\)"):
            chainer.utils.conv_nd.im2col_nd(image, *given)


def test_the_helper_of_mixed_precision_computes_halves_in_single_precision() -> None:
    class Doubled(chainer.FunctionNode):
        @chainer.utils.precision._fp16_mixed_precision_helper
        def forward(self, inputs: Any) -> Any:
            self.seen = inputs[0].dtype
            return (inputs[0] * 2, None)

    for given, seen in ((np.float16, np.float32), (np.float64, np.float64)):
        node = Doubled()
        y, nothing = node.apply((np.ones(2, given),))
        assert (node.seen, y.dtype, nothing.array) == (seen, given, None)


def test_an_array_that_is_yet_to_come_is_shared_with_copies() -> None:
    link = L.Linear(None, 2)
    twin = link.copy()
    link(np.ones((1, 3), "f"))
    assert twin.W.array is link.W.array
    assert twin.W.shape == (2, 3)
    assert link.copy("copy").W.array is not link.W.array


def test_methods_that_move_a_link_are_called_with_what_holds_it() -> None:
    with pytest.warns(DeprecationWarning, match="Own: to define to_cpu is deprecated"):

        class Own(chainer.Link):
            moved = 0

            def to_cpu(self) -> Any:
                self.moved += 1
                return self

    with pytest.raises(TypeError, match="Other: to_device is not to be defined"):

        class Other(chainer.Link):
            def to_device(self, device: Any) -> Any:
                return self

    own = Own()
    chain = chainer.Chain(inner=chainer.ChainList(own))
    chain.to_device("@numpy")
    assert own.moved == 1


def test_probabilities_of_infinite_logits_are_those_of_the_numbers() -> None:
    inf = np.array([np.inf, -np.inf, 0], "f")
    found = chainer.distributions.Bernoulli(logit=inf).log_prob(np.array([0.25, 0.25, 1], "f"))
    np.testing.assert_allclose(found.array, np.log([0.25, 0.75, 0.5]), rtol=1e-6)


def test_a_sequential_without_layers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a Sequential without layers cannot be called"):
        chainer.Sequential()(np.ones(2))
    with pytest.raises(ValueError, match="expects layers, got <class 'int'>"):
        chainer.Sequential().__iadd__(0)


def test_old_names_of_hooks_warn() -> None:
    with pytest.warns(DeprecationWarning, match="Use optimizer_hooks.WeightDecay instead"):
        hook = chainer.optimizer.WeightDecay(0.1)
    assert isinstance(hook, chainer.optimizer_hooks.WeightDecay)


def test_mixed_precision_has_weights_of_16_bits_and_norms_of_32() -> None:
    with chainer.using_config("dtype", chainer.mixed16):
        first, norm, last = L.Linear(5, 6), L.BatchNormalization(6), L.Linear(6, 3)
        model = L.Classifier(chainer.Sequential(first, F.relu, norm, last))
        optimizer = chainer.optimizers.MomentumSGD(0.1)
        optimizer.use_fp32_update()
        optimizer.setup(model)
        x = np.linspace(-1, 1, 40).reshape(8, 5).astype(np.float16)
        losses = []
        for _ in range(5):
            optimizer.update(model, x, np.arange(8) % 3)
            losses.append(model.loss)
    assert {p.dtype for p in (first.W, first.b, last.W)} == {np.dtype(np.float16)}
    assert norm.gamma.dtype == norm.beta.dtype == norm.avg_mean.dtype == np.float32
    assert losses[0].dtype == np.float16
    assert losses[-1].array < losses[0].array


def test_links_of_a_changed_sequential_have_the_names_of_chainers_snapshots() -> None:
    def names() -> list[str]:
        return [name.rpartition("/")[0] + str(p.shape) for name, p in model.namedparams()]

    model = chainer.Sequential(
        L.Linear(5, 6, nobias=True), F.relu, L.EmbedID(6, 7), F.relu, L.Scale(1, (3,))
    )
    assert names() == ["/0(6, 5)", "/1(3,)", "/2(6, 7)"]
    model[4] = L.Linear(6, 2, nobias=True)
    assert names() == ["/0(6, 5)", "/1(2, 6)", "/2(6, 7)"]
    model[0] = L.Linear(4, 6, nobias=True)
    assert names() == ["/0(6, 4)", "/1(2, 6)", "/2(6, 7)"]
    model.insert(1, L.Bias(1, (8,)))
    assert names() == ["/0(6, 4)", "/1(8,)", "/2(2, 6)", "/3(6, 7)"]
    model.insert(-1, L.Bias(1, (9,)))
    assert names() == ["/0(6, 4)", "/1(9,)", "/2(8,)", "/3(2, 6)", "/4(6, 7)"]
    del model[0]
    assert names() == ["/0(9,)", "/1(8,)", "/2(2, 6)", "/3(6, 7)"]
    model.remove_by_layer_type("relu")
    model.insert(0, L.Linear(2, 2, nobias=True))
    assert names() == ["/0(2, 2)", "/1(9,)", "/2(8,)", "/3(2, 6)", "/4(6, 7)"]
    model = model.copy()
    assert names() == ["/0(2, 2)", "/1(2, 6)", "/2(9,)", "/3(6, 7)", "/4(8,)"]


def test_programs_that_branch_on_a_gpu_run_without_one() -> None:
    cuda = chainer.cuda

    @cuda.memoize(for_each_device=True)
    def kernel() -> Any:
        return cuda.elementwise("T x", "T y", "y = x * x", "square")

    @cuda.fuse()
    def cube(x: Any) -> Any:
        return x**3

    class Power(chainer.function.Function):
        def forward_cpu(self, inputs: Any) -> Any:
            return inputs[0] ** 2, cube(inputs[0])

        def forward_gpu(self, inputs: Any) -> Any:
            return kernel()(inputs[0]), cube(inputs[0])

        def backward(self, inputs: Any, grads: Any) -> Any:
            with cuda.get_device_from_array(*inputs) as device:
                assert device == cuda.DummyDevice
                assert isinstance(device, cuda.DummyDeviceType)
                assert int(device) == device.id == -1
            if isinstance(inputs[0], cuda.ndarray):
                raise AssertionError
            return (2 * inputs[0] * grads[0] + 3 * inputs[0] ** 2 * grads[1],)

    assert not cuda.cupy
    assert not isinstance(np.ones(1), cuda.cupy.ndarray)
    with pytest.raises(NoDevice, match="cupy.zeros: hagane computes on the CPU"):
        cuda.cupy.zeros(3)
    assert not hasattr(cuda.cupy, "__file__")
    cuda.get_device_from_id(-1).use()
    with cuda.get_device_from_id(None):
        x = chainer.Variable(np.array([1.0, 2.0], "f"))
        y, z = Power()(x)
    F.sum(y + z).backward()
    np.testing.assert_array_equal(x.grad, [5, 16])
    with pytest.warns(DeprecationWarning, match="get_device is deprecated"):
        assert cuda.get_device(x.array) is cuda.DummyDevice
    cuda.clear_memo()
    for ask in (
        lambda: cuda.get_device_from_id(0),
        lambda: cuda.to_gpu(x.array),
        lambda: cuda.copy(x.array),
        kernel,
        lambda: cuda.raw("code", "name"),
        lambda: cuda.reduce("T x", "T y", "x", "a + b", "y = a", "0", "sum"),
    ):
        with pytest.raises(RuntimeError, match="CUDA is not available: hagane computes on the CPU"):
            ask()


@pytest.mark.parametrize("mode", ["enable_backprop_mode", "force_backprop_mode"])
def test_functions_are_recorded_in_a_mode_within_one_without_records(mode: str) -> None:
    x = chainer.Variable(np.ones(2, "f"))
    with chainer.no_backprop_mode():
        assert (x * 2).creator is None
        with getattr(chainer, mode)():
            y = F.sum(x * x)
        assert (x * 2).creator is None
    y.backward()
    np.testing.assert_array_equal(x.grad, [2, 2])
