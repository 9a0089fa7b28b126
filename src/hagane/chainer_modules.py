"""Modules of Chainer that hold base classes: one table, from which ``import`` makes them.

A file of each would say nothing but these lines. Modules that programs import by their own name,
such as ``hagane.functions``, are files, so that type checkers find them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Name of the module -> its description, and for each module of hagane the names taken from it: all
# if there are none. ``name:other`` is shown under the other name.
MODULES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "backend": (
        "Where arrays lie: in this machine's memory.",
        {
            "hagane.nn.autograd.devices": (
                "ChainerxDevice CpuDevice Device GpuDevice Intel64Device copyto from_chx "
                "get_array_module get_device get_device_from_array to_chx using_device"
            )
        },
    ),
    "computational_graph": (
        "Drawings of recorded computations.",
        {"hagane.nn.computational_graph": "ComputationalGraph build_computational_graph"},
    ),
    "configuration": (
        "Configuration of define-by-run programs.",
        {
            "hagane.nn.autograd.configuration": (
                "GlobalConfig LocalConfig config global_config using_config"
            )
        },
    ),
    "cuda": (
        "Answers to programs that ask for a GPU, under an old name.",
        {"hagane.backends.cuda": ""},
    ),
    "device_resident": (
        "What lies on a device.",
        {"hagane.nn.model.link": "DeviceResident"},
    ),
    "distribution": (
        "The base of distributions, and divergences between two.",
        {
            "hagane.nn.distributions.distribution": (
                "Distribution cross_entropy kl_divergence register_kl"
            )
        },
    ),
    "function": (
        "Old-style functions that users write, and whether computations are recorded.",
        {
            "hagane.nn.autograd.configuration": "force_backprop_mode no_backprop_mode",
            "hagane.nn.autograd.function": "Function FunctionAdapter",
            "hagane.nn.autograd.hooks": "FunctionHook",
        },
    ),
    "function_hook": (
        "The base of hooks around functions.",
        {"hagane.nn.autograd.hooks": "FunctionHook"},
    ),
    "function_node": (
        "Functions that users write, and gradients.",
        {
            "hagane.nn.autograd.derivatives": "grad",
            "hagane.nn.autograd.function_node": "FunctionNode",
        },
    ),
    "gradient_check": (
        "Gradients against central differences.",
        {
            "hagane.nn.gradient_check": (
                "NondifferentiableError assert_allclose check_backward check_double_backward "
                "numerical_grad"
            )
        },
    ),
    "initializer": (
        "The base of fillers of parameters.",
        {"hagane.nn.initializers.initializer": "Initializer get_fans"},
    ),
    "link": (
        "The base classes of links.",
        {
            "hagane.nn.model.chain": "Chain ChainList",
            "hagane.nn.model.link": "DeviceResident Link",
        },
    ),
    "link_hook": (
        "The base of hooks around links.",
        {
            "hagane.nn.model.hooks": (
                "LinkHook ForwardPostprocess:_ForwardPostprocessCallbackArgs "
                "ForwardPreprocess:_ForwardPreprocessCallbackArgs"
            )
        },
    ),
    "optimizer": (
        "The base classes of optimizers.",
        {
            "hagane.nn.optimizers.moved": (
                "GradientClipping GradientHardClipping GradientNoise Lasso WeightDecay"
            ),
            "hagane.nn.optimizers.hyperparameter": "Hyperparameter HyperparameterProxy",
            "hagane.nn.optimizers.optimizer": "GradientMethod Optimizer",
            "hagane.nn.optimizers.rule": "UpdateRule",
        },
    ),
    "reporter": (
        "Values that models report.",
        {
            "hagane.nn.reporter": (
                "DictSummary Reporter Summary get_current_reporter report report_scope"
            )
        },
    ),
    "sequential": (
        "Links and functions one after another.",
        {"hagane.nn.model.sequential": "Sequential"},
    ),
    "serializer": (
        "The protocol of saving and loading.",
        {"hagane.nn.serializers.serializer": "AbstractSerializer Deserializer Serializer"},
    ),
    "variable": (
        "Variables and parameters.",
        {
            "hagane.nn.autograd.node": "VariableNode",
            "hagane.nn.autograd.parameter": "Parameter",
            "hagane.nn.autograd.variable": "Variable as_array as_variable",
        },
    ),
    "warnings": (
        "Warnings of define-by-run programs.",
        {"hagane.nn.names": "PerformanceWarning"},
    ),
}


class Finder(MetaPathFinder, Loader):
    """Finds the modules of the table."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Return how a module of the table is made, None for others."""
        package, _, inner = name.partition(".")
        return ModuleSpec(name, self) if package == "hagane" and inner in MODULES else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module with its names."""
        module.__doc__, sources = MODULES[module.__name__.partition(".")[2]]
        shown: list[str] = []
        for source, names in sources.items():
            found = import_module(source)
            for name in names.split() or found.__all__:
                own, _, other = name.partition(":")
                shown.append(other or own)
                setattr(module, other or own, getattr(found, own))
        vars(module)["__all__"] = sorted(shown)
