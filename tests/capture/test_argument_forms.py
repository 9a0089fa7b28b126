"""Optional arguments decide what graphs compute, or are refused by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto

from .meanings import flat, loaded

# Arrays of sizes n and m, by name.
_TYPES = {
    "x": "float32[n, m]", "d": "float32[k, n, m]", "i": "int32[n, m]", "u": "uint8[n, m]",
    "t": "bool[n, m]", "v": "float32[m]", "j": "int64[m]", "q": "float64[k, 2, 2]",
    "s": "int64[]",
}  # fmt: skip
_NUMPY = """
x.sum(where=x > 0)
np.sum(i, 0, initial=3, where=t)
np.prod(x, axis=1, where=t, keepdims=True)
np.max(x, axis=0, initial=-1.0, where=t)
x.min(initial=2.5)
np.max(i, axis=(0, 1), initial=4, keepdims=True)
np.nanmax(x, axis=1, initial=0, where=t)
np.any(i, where=t)
u.all(axis=0, where=t, keepdims=True)
np.mean(u, axis=1, where=t)
np.var(x, axis=0, ddof=1, where=t)
x.std(where=t, keepdims=True)
np.nanstd(np.where(t, x, np.nan), axis=0, where=x > 0)
np.std(i, axis=0, correction=1)
np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True))
np.nanvar(i, axis=0, ddof=1)
np.average(i, axis=0, returned=True)
np.quantile(i, 0, axis=0)
np.quantile(u, 0.5, method='lower')
np.nanpercentile(i, 30, axis=1, method='nearest', keepdims=True)
np.reshape(d, (d.shape[1], -1), order='F')
x.reshape(-1, order='F')
d.ravel('F')
d.flatten(order='F')
np.choose(j % 3, [v, v * 2, 3])
j.choose([1, 2, 3], mode='wrap')
np.choose(j, [v, v * 2], mode='clip')
np.interp(v, np.arange(3), np.arange(3.0) * 2, left=-1, right=9.5)
np.setdiff1d(v, j)
np.diff(x, prepend=0)
np.diff(x, axis=0, prepend=x[:1], append=1.5)
np.linalg.solve(q + 9 * np.eye(2), x[:2, :2].sum() * np.ones(2))
np.linalg.solve(q + 9 * np.eye(2), np.eye(2))
np.full_like(t, True)
np.take(x, s % 2, axis=1, mode='wrap')
np.repeat(v, 0)
np.isin(j, [1, 3], invert=True)
np.partition(v, kth=1)[1]
np.cov(x)
np.cov(x, rowvar=False, bias=True)
np.cov(x, x * 2, True, False, None)
np.corrcoef(x, None, False)
np.median(x, 0, None, False, keepdims=True)
np.cross(x[:1, :1] * np.ones((3, 2)), np.arange(6.0).reshape(2, 3), axisa=0, axisc=0)
""".strip().splitlines()
_TORCH = """
torch.index_select(x, 1, s % 2)
torch.tril_indices(3, 4, dtype=torch.int32)
torch.triu_indices(x.shape[0], 4, offset=1, dtype=torch.int32)
F.kl_div(x, d[0], reduction='none')
torch.kron(x, v)
torch.repeat_interleave(x, 0)
x[:0].flatten(), x[:, :0].flatten(), torch.diagflat(x[:, :0])
x[:, :0].reshape(x.shape[1], 0), torch.roll(x[:0], 1)
torch.corrcoef(x)
torch.diag(x, diagonal=1)
x.scatter(1, torch.zeros_like(x[:, :1], dtype=torch.int64), 2.5, reduce='multiply')
torch.scatter_reduce(x, 0, x[:1].long() * 0, x[:1] * 2, 'amax', include_self=False)
torch.scatter(x, dim=1, index=torch.zeros_like(x[:, :1], dtype=torch.int64), value=2.5)
""".strip().splitlines()
_SIZES = ({"n": 3, "m": 4, "k": 2}, {"n": 2, "m": 5, "k": 1}, {"n": 5, "m": 2, "k": 3})


def _drawn(sizes: dict[str, int], seed: int) -> dict[str, np.ndarray[Any, Any]]:
    source, made = np.random.default_rng(seed), {}
    for name, text in _TYPES.items():
        dtype, _, rest = text.partition("[")
        shape = [sizes.get(n.strip()) or int(n) for n in rest.rstrip("]").split(",") if n.strip()]
        numbers = (
            source.normal(size=shape) * 3 if "float" in dtype else source.integers(0, 7, shape)
        )
        made[name] = np.asarray(numbers > 3 if dtype == "bool" else numbers).astype(dtype)
    return made


def _compare(expression: str, head: str, folder: Path, given: Callable[[Any], Any]) -> None:
    """Compare an expression's graph with open sizes, in two engines, with the library."""
    names = [name for name in _TYPES if name in _words(expression)]
    source = f"{head}\n\ndef call({', '.join(names)}):\n    return {expression}\n"
    function = loaded(source, folder)
    model = hagane.capture(function, *(_TYPES[name] for name in names))
    engines = [hagane.InferenceSession(model)]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    engines.append(onnxruntime.InferenceSession(to_proto(model).SerializeToString(), options))
    taken = {value.name for value in model.graph.inputs}
    for seed, sizes in enumerate(_SIZES):
        arrays = {name: value for name, value in _drawn(sizes, seed).items() if name in names}
        with np.errstate(all="ignore"):
            expected = [*flat(function(*(given(value.copy()) for value in arrays.values())))]
        feed = {name: value for name, value in arrays.items() if name in taken}
        for engine in engines:
            found = engine.run(None, feed)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                where = f"{expression} at {sizes}"
                assert (one.dtype, one.shape) == (other.dtype, other.shape), where
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=where)


def _words(text: str) -> set[str]:
    return {word for word in "".join(c if c.isalnum() or c in "._" else " " for c in text).split()
            for word in (word.split(".")[0],)}  # fmt: skip


@pytest.fixture(autouse=True)
def _reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", _NUMPY)
def test_arguments_of_numpy_decide_what_they_decide_there(expression: str, tmp_path: Path) -> None:
    _compare(expression, "import numpy as np", tmp_path, lambda value: value)


@pytest.mark.parametrize("expression", _TORCH)
def test_arguments_of_pytorch_decide_what_they_decide_there(
    expression: str, tmp_path: Path
) -> None:
    head = "import torch\nimport torch.nn.functional as F"
    _compare(expression, head, tmp_path, torch.from_numpy)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("np.clip(x, 0, 1, dtype='d')", "'numpy.clip' cannot be captured with 'dtype'"),
        ("x.ravel('K')", "order='K' depends on how an array lies in memory"),
        ("np.array_equiv(v, j)", "expected arrays of one known shape"),
        ("np.max(x, where=t)", "does not have an identity, so to use a where mask"),
    ],
)
def test_arguments_that_would_be_ignored_are_named(
    expression: str, told: str, tmp_path: Path
) -> None:
    source = f"import numpy as np\n\ndef call(x, v, j, t):\n    return {expression}\n"
    function = loaded(source, tmp_path)
    types = [_TYPES["x"], _TYPES["v"], "int64[k]", _TYPES["t"]]
    with pytest.raises(CaptureError) as caught:
        hagane.capture(function, *types)
    assert told in str(caught.value)


def test_a_number_of_rows_that_gives_a_single_number_fails_in_the_run(tmp_path: Path) -> None:
    function = loaded("import numpy as np\n\ndef call(x):\n    return np.cov(x)\n", tmp_path)
    session = hagane.InferenceSession(hagane.capture(function, _TYPES["x"]))
    assert session.run(None, {"x": np.ones((2, 3), np.float32)})[0].shape == (2, 2)
    with pytest.raises(hagane.errors.HaganeError):
        session.run(None, {"x": np.ones((1, 3), np.float32)})


def test_reductions_of_some_elements_are_scalars(tmp_path: Path) -> None:
    source = """import numpy as np

def call(x, t):
    return (
        np.mean(x, where=t), np.nanvar(x, where=t), np.max(x, initial=0.0, where=t),
        x.sum(where=t), np.interp(0.5, np.arange(3.0), np.arange(3.0), left=-1.0),
        np.any(x, where=t), np.average(x, returned=True), np.quantile(x, 0.5, method="lower"),
    )
"""
    function = loaded(source, tmp_path)
    x = np.float32([[1, 2], [3, 4.5]])
    expected, found = function(x, x > 1), hagane.compile(function)(x, x > 1)
    for one, other in zip(flat(found), flat(expected), strict=True):
        np.testing.assert_allclose(one, other)
    kinds = [[type(item) for item in (*row[:6], *row[6], row[7])] for row in (found, expected)]
    assert kinds[0] == kinds[1]


def test_a_label_that_is_ignored_does_not_count_in_summaries(tmp_path: Path) -> None:
    source = """import hagane.functions as F

def call(y, t):
    return F.classification_summary(y, t, 3, 1.0, ignore_label=0)
"""
    function = loaded(source, tmp_path)
    session = hagane.InferenceSession(hagane.capture(function, "float32[n, 3]", "int32[n]"))
    y = np.eye(3, dtype=np.float32)[[0, 0, 2, 1]]
    t = np.array([0, 1, 2, 1], np.int32)
    found = session.run(None, {"y": y, "t": t})
    for one, other in zip(found, function(y, t), strict=True):
        np.testing.assert_allclose(one, other.array)


class Passing(torch.nn.Module):
    """Hands all arguments on, as the wrappers of adapters do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 3)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.called(*args, **kwargs)

    def called(self, x: Any, scale: Any = None) -> Any:
        rows, _ = x.size()
        return self.inner(x) * rows if scale is None else self.inner(x) * scale


def test_arguments_of_a_module_that_hands_them_on_are_tensors() -> None:
    model = Passing().eval()
    x, scale = torch.randn(2, 4), torch.tensor(3.0)
    graph = hagane.capture(model, x="float32[n, 4]")
    found = hagane.InferenceSession(graph).run(None, {"x": x.numpy()})[0]
    np.testing.assert_allclose(found, model(x=x).detach(), rtol=1e-5)
    graph = hagane.capture(model, "float32[n, 4]", scale="float32[]")
    inputs = [value.name for value in graph.graph.inputs]
    found = hagane.InferenceSession(graph).run(
        None, dict(zip(inputs, (x.numpy(), scale.numpy()), strict=True))
    )[0]
    np.testing.assert_allclose(found, model(x, scale=scale).detach(), rtol=1e-5)


def renames(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give an argument that is passed by its old name the new one."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if "x" in kwargs:
            kwargs["y"] = kwargs.pop("x")
        return function(*args, **kwargs)

    return wrapped


class Renamed(torch.nn.Module):
    @renames
    def forward(self, x: Any = None, y: Any = None) -> Any:
        return y * 3 if x is None else x * 2


@renames
def renamed(x: Any = None, y: Any = None) -> Any:
    return y * 3 if x is None else x * 2


@pytest.mark.parametrize("model", [Renamed(), renamed])
def test_a_wrapper_sees_arguments_as_they_are_passed(model: Any) -> None:
    x = torch.ones(2)
    for graph, factor in (
        (hagane.capture(model, x="float32[n]"), 3),
        (hagane.capture(model, "float32[n]"), 2),
    ):
        found = hagane.InferenceSession(graph).run(None, {"x": x.numpy()})[0]
        np.testing.assert_array_equal(found, x * factor)
    made = hagane.compile(model, fullgraph=True)
    found = [made(x), made(x=x), made(None, x), made(y=x), made(x)]
    assert [int(one[0]) for one in found] == [2, 3, 3, 3, 2]


def test_arguments_that_do_not_fit_a_signature_are_left_to_python() -> None:
    def scaled(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, scale: float = 1, **more: Any) -> Any:
            return function(*args, **more) * scale

        return wrapper

    @scaled
    def product(x: Any, y: Any = 1) -> Any:
        return x * y

    compiled = hagane.compile(product)
    assert compiled(torch.ones(1), y=3, scale=4).item() == 12
    with pytest.raises(TypeError, match=r"product\(\) missing 1 required positional argument: 'x'"):
        compiled()
