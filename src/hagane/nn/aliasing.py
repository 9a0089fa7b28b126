"""``import chainer`` finds hagane: for scripts that run unchanged."""

from __future__ import annotations

import importlib
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

from hagane.nn import functions

# Modules of Chainer that hold the names of one module of hagane.
_FOLDED = {
    "functions": "hagane.functions",
    "links": "hagane.links",
    "optimizers": "hagane.optimizers",
    "optimizer_hooks": "hagane.optimizer_hooks",
    "initializers": "hagane.initializers",
    "serializers": "hagane.serializers",
    "distributions": "hagane.distributions",
    "iterators": "hagane.iterators",
    "datasets": "hagane.datasets",
    "dataset": "hagane.dataset",
    "function_hooks": "hagane.function_hooks",
    "link_hooks": "hagane.link_hooks",
    "training": "hagane.training",
    "utils": "hagane.utils",
}


# Classes in files of Chainer that programs use, beside the functions of these files.
_CLASSES = {
    "functions.math.sparse_matmul": {"CooMatMul": "hagane.nn.functions.sparse"},
    "functions.rnn.lstm": {"_extract_gates": "hagane.nn.functions.recurrent.cells"},
    **{
        f"functions.{name}": dict.fromkeys(classes.split(), "hagane.nn.functions.classes")
        for name, classes in (
            ("math.basic_math", "Absolute Add Div Mul Neg PowVarVar Sub"),
            ("math.exponential", "Exp"),
            ("activation.relu", "ReLU"),
            ("activation.sigmoid", "Sigmoid"),
            ("activation.tanh", "Tanh"),
            ("math.identity", "Identity"),
            ("math.trigonometric", "Cos Sin Tan"),
            ("noise.dropout", "Dropout"),
        )
    },
    **{
        f"optimizers.{name}": {rule: f"hagane.nn.optimizers.{file}"}
        for file, pairs in (
            (
                "adaptive",
                "ada_delta.AdaDeltaRule ada_grad.AdaGradRule adam.AdamRule rmsprop.RMSpropRule"
                " rmsprop_graves.RMSpropGravesRule smorms3.SMORMS3Rule",
            ),
            (
                "descent",
                "corrected_momentum_sgd.CorrectedMomentumSGDRule momentum_sgd.MomentumSGDRule"
                " msvag.MSVAGRule nesterov_ag.NesterovAGRule sgd.SGDRule",
            ),
        )
        for name, _, rule in (pair.partition(".") for pair in pairs.split())
    },
    **{
        name: {"CaffeFunction": "hagane.nn.links.connection"}
        for name in ("links.caffe", "links.caffe.caffe_function")
    },
    "links.rnn.n_step_rnn": dict.fromkeys(
        ("argsort_list_descent", "permutate_list"), "hagane.nn.links.sequences"
    ),
    "training.extensions.computational_graph": {
        "is_graphviz_available": "hagane.training.extensions.drawing"
    },
    "training.extensions.variable_statistics_plot": dict.fromkeys(
        ("Reservoir", "Statistician"), "hagane.training.extensions.variable_statistics"
    ),
    **{
        f"links.model.vision.{name}": dict.fromkeys(
            ("available", "prepare"), f"hagane.nn.links.vision.{name}"
        )
        for name in ("vgg", "resnet", "googlenet")
    },
}


class _File(types.ModuleType):
    """A file of Chainer; a function that a program puts in place of one is the links' too."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        # The import of a file of the same name puts the file here.
        replaces = name in functions.__all__ and not isinstance(value, types.ModuleType)
        if replaces and self.__name__.startswith("chainer.functions."):
            for module in (functions, importlib.import_module("hagane.functions")):
                setattr(module, name, value)


class _Whole(types.ModuleType):
    """hagane under Chainer's name, of the version of Chainer whose programs it runs."""

    __version__ = "7.8.1"

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("hagane"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(importlib.import_module("hagane"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(importlib.import_module("hagane"), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module("hagane"))


class _Finder(MetaPathFinder, Loader):
    """Finds ``chainer`` and its modules."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in ("chainer", "chainerx"):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        if spec.name == "chainerx":
            return _chainerx()
        if spec.name == "chainer":
            return _Whole("chainer")
        inner = spec.name.partition(".")[2]
        name = f"hagane.{inner}"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            return _folded(spec.name, inner)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Give the module its own specification back: it ran under its own name."""
        own = self._specs.get(module.__spec__.name) if module.__spec__ else None
        if own is not None:
            module.__spec__ = own
            module.__name__ = own.name
            module.__loader__ = own.loader


def _folded(name: str, inner: str) -> types.ModuleType:
    """Return a module for a file of Chainer whose names lie elsewhere in hagane."""
    first, *rest = inner.split(".")
    if first not in _FOLDED or not rest:
        raise ModuleNotFoundError(
            f"No module named '{name}': hagane has no module of Chainer's under that name",
            name=name,
        )
    if rest[-1][0].isupper():
        # What ``from file import Class`` asks for last.
        raise ModuleNotFoundError(
            f"cannot import name '{rest[-1]}' from '{name.rpartition('.')[0]}': hagane's functions "
            "are made of operators, and have no class of that name; call the function, or derive "
            "from chainer.FunctionNode"
        )
    whole = importlib.import_module(_FOLDED[first])
    for part in rest[:-1]:
        try:
            whole = importlib.import_module(f"{whole.__name__}.{part}")
        except ModuleNotFoundError:
            break
    module = _File(name)
    module.__path__ = []

    def missing(one: str) -> Any:
        # Chainer's packages import the files in them, so that these are attributes too.
        if one.startswith("_"):
            raise AttributeError(f"module '{name}' has no attribute '{one}'")
        return importlib.import_module(f"{name}.{one}")

    if len(rest) == 1 and first in ("functions", "links"):
        vars(module)["__getattr__"] = missing
    for one, place in _CLASSES.get(inner, {}).items():
        vars(module)[one] = getattr(importlib.import_module(place), one)
    for one in dir(whole):
        # A folder holds files of the same names as its functions, which are found as modules.
        shown = len(rest) > 1 or first not in ("functions", "links")
        if shown and not one.startswith("__"):
            vars(module)[one] = getattr(whole, one)
    return module


def _chainerx() -> types.ModuleType:
    module = types.ModuleType("chainerx")
    module.__path__ = []

    class ndarray:  # noqa: N801
        """The class of ChainerX's arrays, of which there are none."""

    names: dict[str, Any] = {"ndarray": ndarray, "is_available": lambda: False}
    vars(module).update(names)
    return module


_FINDER = _Finder()
# Folders and files of Chainer, which programs import from the package that holds them.
_FOLDERS = {
    "dataset": "convert dataset_mixin download iterator tabular",
    "datasets": "cifar concatenated_dataset dict_dataset fashion_mnist image_dataset"
    " kuzushiji_mnist mnist pickle_dataset ptb sub_dataset svhn text_dataset transform_dataset"
    " tuple_dataset",
    "distributions": "bernoulli beta categorical cauchy chisquare dirichlet exponential gamma"
    " geometric gumbel independent laplace log_normal multivariate_normal normal"
    " one_hot_categorical pareto poisson uniform utils",
    "function_hooks": "debug_print timer",
    "functions": "activation array connection evaluation loss math noise normalization pooling rnn"
    " util",
    "initializers": "constant normal orthogonal sampling uniform",
    "iterators": "dali_iterator multiprocess_iterator multithread_iterator order_samplers"
    " serial_iterator",
    "links": "activation connection loss model normalization rnn",
    "optimizer_hooks": "gradient_clipping gradient_hard_clipping gradient_lars gradient_noise lasso"
    " weight_decay",
    "optimizers": "ada_delta ada_grad adam corrected_momentum_sgd momentum_sgd msvag nesterov_ag"
    " rmsprop rmsprop_graves sgd smorms3",
    "training.extensions": "computational_graph exponential_shift fail_on_nonnumber inverse_shift"
    " linear_shift micro_average multistep_shift parameter_statistics polynomial_shift step_shift"
    " util value_observation variable_statistics_plot variable_unchain warmup_shift",
    "training.triggers": "early_stopping_trigger interval_trigger manual_schedule_trigger"
    " minmax_value_trigger once_trigger time_trigger",
    "training.updaters": "multiprocess_parallel_updater parallel_updater standard_updater",
    "utils": "sparse walker_alias",
}


def install() -> None:
    """Let ``import chainer`` find hagane, in this process."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
        for name in [one for one in sys.modules if one.partition(".")[0] == "chainer"]:
            del sys.modules[name]
        for package, folders in _FOLDERS.items():
            _offer(package, set(folders.split()))


def _offer(package: str, folders: set[str]) -> None:
    """Let folders of a package be its attributes."""
    module = importlib.import_module(f"hagane.{package}")

    def missing(name: str) -> Any:
        if name in folders:
            return importlib.import_module(f"chainer.{package}.{name}")
        raise AttributeError(f"module 'chainer.{package}' has no attribute '{name}'")

    if "__getattr__" not in vars(module):
        vars(module)["__getattr__"] = missing
