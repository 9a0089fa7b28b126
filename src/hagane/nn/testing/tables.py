"""Classes of tests for each row of a table, and drawn numbers that are the same at each run."""

from __future__ import annotations

import functools
import itertools
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import using_config
from hagane.nn.autograd.devices import cpu

Row = Mapping[str, Any]


def product(parameter: Mapping[str, Sequence[Any]] | Sequence[Sequence[Row]]) -> list[Any]:
    """Return all rows of a table: a value of each name, or a row of each list put together.

    Raises:
        TypeError: It is neither a mapping of lists nor a list of lists of mappings.
    """
    if isinstance(parameter, Mapping):
        # Names in their alphabetic order, as in Chainer.
        names = sorted(parameter)
        rows = itertools.product(*(parameter[name] for name in names))
        return [dict(zip(names, row, strict=True)) for row in rows]
    if isinstance(parameter, list | tuple):
        return product_dict(*parameter)
    raise TypeError(f"product: expected a dict of lists or lists of dicts, got {type(parameter)}")


def product_dict(*parameters: Sequence[Row]) -> list[dict[str, Any]]:
    """Return all combinations of rows of several tables, each put together to one."""
    return [
        {name: value for row in rows for name, value in row.items()}
        for rows in itertools.product(*parameters)
    ]


def from_pytest_parameterize(names: Any, values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return rows from the arguments of ``pytest.mark.parametrize``."""
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    if len(columns) == 1:
        return [{columns[0]: value} for value in values]
    return [dict(zip(columns, row, strict=True)) for row in values]


class _Classes:
    """Classes of tests that decorators made of one; decorators above take each of them."""

    def __init__(self, classes: Sequence[type], name: str):
        self.classes = classes
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.__name__} stands for {len(self.classes)} classes of tests")


def _each(expand: Callable[[type], Sequence[type]]) -> Callable[[Any], Any]:
    """Return a decorator that puts classes made of a class of tests into its module."""

    def decorate(base: Any) -> Any:
        bases = base.classes if isinstance(base, _Classes) else [base]
        made = [one for each in bases for one in expand(each)]
        module = sys.modules[bases[0].__module__]
        for one in bases:
            vars(module).pop(one.__name__, None)
        for one in made:
            setattr(module, one.__name__, one)
        return _Classes(made, base.__name__)

    return decorate


def _shown(value: Any) -> str:
    text = value.__name__ if isinstance(value, type) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def parameterize(*params: Row) -> Callable[[Any], Any]:
    """Return a decorator that makes a class of tests for each row, whose values are attributes.

    A test that fails tells its row.
    """

    def expand(base: type) -> list[type]:
        made = []
        for i, row in enumerate(params):
            text = ", ".join(f"{name}={_shown(row[name])}" for name in sorted(row))
            body = {"__module__": base.__module__, "__doc__": base.__doc__, **row}
            for name in dir(base):
                test = getattr(base, name)
                if name.startswith("test") and callable(test):
                    body[name] = _telling(test, text)
            made.append(type(f"{base.__name__}_param_{i}_{{{text}}}", (base,), body))
        return made

    return _each(expand)


def _telling(test: Callable[..., Any], text: str) -> Callable[..., Any]:
    @functools.wraps(test)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return test(*args, **kwargs)
        except Exception as error:
            error.add_note(f"Parameters: {text}")
            raise

    return told


def parameterize_pytest(names: Any, values: Sequence[Any]) -> Callable[[Any], Any]:
    """Return ``parameterize`` of the arguments of ``pytest.mark.parametrize``."""
    return parameterize(*from_pytest_parameterize(names, values))


class BackendConfig:
    """A setting of devices for a test: arrays of NumPy here; used in a ``with`` block.

    Args:
        params: Names of Chainer's settings; ``use_cuda`` and ``use_chainerx`` have to be false.

    Raises:
        ValueError: It asks for a device that is not there.
    """

    def __init__(self, params: Row):
        for name in ("use_cuda", "use_chainerx"):
            if params.get(name):
                raise ValueError(f"BackendConfig: {name}: hagane computes on the CPU")
        self.params = dict(params)
        self.use_cuda = self.use_chainerx = False
        self.use_ideep = params.get("use_ideep", "never")
        self.device = cpu
        self.xp = np

    def get_array(self, x: Any) -> Any:
        """Return an array on the device: the same."""
        return x

    def get_func_str(self) -> str:
        """Return the settings as part of a name."""
        return "_".join(f"{name}_{value}" for name, value in sorted(self.params.items())) or "cpu"

    def __enter__(self) -> BackendConfig:
        self._context = using_config("use_ideep", self.use_ideep)
        self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)


def inject_backend_tests(
    method_names: Sequence[str] | None, params: Sequence[Row] = ({},)
) -> Callable[[Any], Any]:
    """Return a decorator that makes a test for each setting, given to it as ``backend_config``.

    Args:
        method_names: The tests; all that are named ``test…`` if None.
        params: The settings; those of devices that are not there make no tests.
    """
    rows = [row for row in params if not (row.get("use_cuda") or row.get("use_chainerx"))]

    def inject(base: type) -> None:
        names = method_names
        if names is None:
            names = [
                name
                for name in dir(base)
                if name.startswith("test") and callable(getattr(base, name))
            ]
        for name in names:
            test = getattr(base, name)
            for i, row in enumerate(rows):
                config = BackendConfig(row)
                shown = f"{name}_backend_config_{i}_{{{config.get_func_str()}}}"
                setattr(base, shown, _given(test, config))
            setattr(base, name, None)

    def decorate(tested: Any) -> Any:
        for base in tested.classes if isinstance(tested, _Classes) else [tested]:
            inject(base)
        return tested

    return decorate


def _given(test: Callable[..., Any], config: BackendConfig) -> Callable[..., Any]:
    # Without functools.wraps, whose signature would ask pytest for ``backend_config``.
    def with_config(self: Any) -> Any:
        return test(self, backend_config=config)

    with_config.__doc__ = test.__doc__
    return with_config


def generate_seed() -> int:
    """Return a seed, from ``numpy.random``."""
    return int(np.random.randint(0x7FFFFFFF))


def fix_random(*, setup_method: str = "setUp", teardown_method: str = "tearDown") -> Any:
    """Return a decorator of tests, or classes of them, that draw the same numbers at each run.

    Args:
        setup_method: Of a class, before which numbers are fixed.
        teardown_method: After which they go on as before.
    """

    def decorate(tested: Any) -> Any:
        if isinstance(tested, _Classes):
            for one in tested.classes:
                decorate(one)
        elif isinstance(tested, type):
            _fix_class(tested, setup_method, teardown_method)
        else:

            @functools.wraps(tested)
            def fixed(*args: Any, **kwargs: Any) -> Any:
                with _Fixed():
                    return tested(*args, **kwargs)

            return fixed
        return tested

    return decorate


def _fix_class(tested: Any, setup_method: str, teardown_method: str) -> None:
    setup, teardown = getattr(tested, setup_method), getattr(tested, teardown_method)

    def begin(self: Any, *args: Any) -> None:
        self._fixed_random = _Fixed()
        self._fixed_random.__enter__()
        setup(self, *args)

    def end(self: Any, *args: Any) -> None:
        try:
            teardown(self, *args)
        finally:
            self._fixed_random.__exit__()

    setattr(tested, setup_method, begin)
    setattr(tested, teardown_method, end)


class _Fixed:
    """The generators of Python and NumPy at seeds of their own, in a ``with`` block."""

    def __enter__(self) -> None:
        self._states = random.getstate(), np.random.get_state()
        random.seed(100)
        np.random.seed(100)

    def __exit__(self, *error: Any) -> None:
        random.setstate(self._states[0])
        np.random.set_state(self._states[1])


def run_module(name: str, file: str) -> None:
    """Run the tests of a file that is run as a script."""
    if name == "__main__":
        import pytest

        pytest.main([file, "-vvs", "-x"])
