"""What tests of Chainer's programs use: tables of cases, comparisons, checks of functions."""

from hagane.nn.testing import attr as attr
from hagane.nn.testing import condition as condition
from hagane.nn.testing.arrays import (
    assert_allclose,
    generate_matrix,
    save_and_load,
    save_and_load_hdf5,
    save_and_load_npz,
)
from hagane.nn.testing.function_case import FunctionTestCase, FunctionTestError
from hagane.nn.testing.link_case import (
    InitializerArgument,
    LinkInitializersTestCase,
    LinkTestCase,
    LinkTestError,
)
from hagane.nn.testing.requirements import assert_warns, patch, with_requires, without_requires
from hagane.nn.testing.tables import (
    BackendConfig,
    fix_random,
    from_pytest_parameterize,
    generate_seed,
    inject_backend_tests,
    parameterize,
    parameterize_pytest,
    product,
    product_dict,
    run_module,
)
from hagane.nn.testing.unary import unary_math_function_unittest

__all__ = [
    "BackendConfig",
    "FunctionTestCase",
    "FunctionTestError",
    "InitializerArgument",
    "LinkInitializersTestCase",
    "LinkTestCase",
    "LinkTestError",
    "assert_allclose",
    "assert_warns",
    "attr",
    "condition",
    "fix_random",
    "from_pytest_parameterize",
    "generate_matrix",
    "generate_seed",
    "inject_backend_tests",
    "parameterize",
    "parameterize_pytest",
    "patch",
    "product",
    "product_dict",
    "run_module",
    "save_and_load",
    "save_and_load_hdf5",
    "save_and_load_npz",
    "unary_math_function_unittest",
    "with_requires",
    "without_requires",
]
