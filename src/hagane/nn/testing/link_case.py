"""Tests of a link: its result, its gradients, and the initializers of its parameters."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from hagane.nn import gradient_check
from hagane.nn.autograd.devices import cpu
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.autograd.variable import Variable
from hagane.nn.initializers import get_initializer
from hagane.nn.model.link import Link
from hagane.nn.testing.rows import CaseError, compare, drawn_like, row_of, with_gaps

# Points at which a test looks for a derivative.
_DRAWS = 20


class LinkTestError(CaseError):
    """A link, or the test of it, that does not do what the test needs."""


class InitializerArgument:
    """An argument of a link, and the initializer by which it fills the parameter then.

    Args:
        argument_value: What the link is given, None among others.
        expected_initializer: An initializer, an array or a number.

    Raises:
        ValueError: There is no initializer.
        TypeError: It is none.
    """

    def __init__(self, argument_value: Any, expected_initializer: Any):
        _check_initializer("InitializerArgument", expected_initializer)
        self.argument_value = argument_value
        self.expected_initializer = expected_initializer


class _LinkCase(unittest.TestCase):
    """Makes links from drawn parameters and runs them.

    Attributes:
        param_names: Attributes of the link that are its parameters, in the order of the arguments.
        contiguous: ``"C"`` for arrays that lie in order; else they have gaps.
        backend_config: The settings of a device that a test got.
    """

    param_names: Any = ()
    contiguous: str | None = None
    backend_config: Any = None

    def before_test(self, test_name: str) -> None:
        """Prepare a test; the name is that of the method."""

    def generate_params(self) -> Any:
        """Return the initializers, arrays or numbers that ``create_link`` takes."""
        raise NotImplementedError(f"{type(self).__name__} lacks generate_params")

    def generate_inputs(self) -> tuple[Any, ...]:
        """Return the arrays of the inputs."""
        raise NotImplementedError(f"{type(self).__name__} lacks generate_inputs")

    def create_link(self, initializers: Any) -> Any:
        """Return a link whose parameters these initializers fill."""
        raise NotImplementedError(f"{type(self).__name__} lacks create_link")

    def forward(self, link: Any, inputs: tuple[Variable, ...], device: Any) -> Any:
        """Return the outputs of a link, variables."""
        found = link(*inputs)
        return found if isinstance(found, tuple) else (found,)

    def _initializers(self) -> list[Any]:
        found = self.generate_params()
        if not isinstance(found, tuple | list):
            raise TypeError(f"generate_params: expected a tuple or list, got {type(found)}")
        for one in found:
            _check_initializer("generate_params", _expected(one))
        return list(found)

    def _link(self, initializers: list[Any]) -> Any:
        arguments = [
            one.argument_value if isinstance(one, InitializerArgument) else one
            for one in initializers
        ]
        link = self.create_link(arguments)
        if not isinstance(link, Link):
            raise TypeError(f"create_link: expected a Link, got {type(link)}")
        return link

    def _run_link(self, link: Any, inputs: tuple[Any, ...]) -> tuple[Variable, ...]:
        variables = tuple(x if isinstance(x, Variable) else Variable(x) for x in inputs)
        return row_of("forward", self.forward(link, variables, cpu), Variable, LinkTestError)

    def _inputs(self) -> tuple[Any, ...]:
        return self._arrays("generate_inputs", self.generate_inputs())

    def _arrays(self, where: str, found: Any) -> tuple[Any, ...]:
        return row_of(where, found, np.ndarray, LinkTestError)

    def _placed(self, arrays: Any) -> tuple[Any, ...]:
        return tuple(arrays) if self.contiguous == "C" else tuple(map(with_gaps, arrays))

    def _parameters(self, link: Any) -> list[Any]:
        for name in self.param_names:
            LinkTestError.check(
                getattr(link, name, None) is not None,
                f"param_names: {type(link).__name__} has no parameter '{name}'",
            )
        return [getattr(link, name) for name in self.param_names]


class LinkTestCase(_LinkCase):
    """Tests a link by its result and its gradients.

    Classes of tests define ``generate_params``, ``generate_inputs``, ``create_link`` and
    ``forward_expected``; ``test_forward`` and ``test_backward`` come from them.

    Attributes:
        check_forward_options: Keyword arguments of ``assert_allclose`` of results.
        check_backward_options: Those of ``gradient_check.check_backward``.
        skip_forward_test: Whether ``test_forward`` checks nothing.
        skip_backward_test: Whether ``test_backward`` checks nothing.
        dodge_nondifferentiable: Whether all is drawn anew at points without a derivative.
        numerical_grad_dtype: The element type in which differences are computed.
    """

    check_forward_options: dict[str, Any]
    check_backward_options: dict[str, Any]
    skip_forward_test = False
    skip_backward_test = False
    dodge_nondifferentiable = False
    numerical_grad_dtype: Any = np.float64

    def __init__(self, *args: Any, **kwargs: Any):
        # Tests add to them, or put others in their place.
        self.check_forward_options = {}
        self.check_backward_options = {}
        super().__init__(*args, **kwargs)

    def forward_expected(self, link: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arrays that ``forward`` should give."""
        raise NotImplementedError(f"{type(self).__name__} lacks forward_expected")

    def generate_grad_outputs(self, outputs_template: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return gradients of the outputs, arrays like these; drawn by default."""
        return tuple(map(drawn_like, outputs_template))

    def check_forward_outputs(
        self, outputs: tuple[Any, ...], expected_outputs: tuple[Any, ...]
    ) -> None:
        """Compare the arrays of the outputs with those expected; tests may check more."""
        compare("outputs", outputs, expected_outputs, LinkTestError, self.check_forward_options)

    def test_forward(self, backend_config: Any = None) -> None:
        """Compare the outputs with those expected."""
        if self.skip_forward_test:
            raise unittest.SkipTest("skip_forward_test is set")
        self.backend_config = backend_config
        self.before_test("test_forward")
        link = self._link(self._initializers())
        inputs = self._inputs()
        found = self._run_link(link, self._placed(inputs))
        expected = self._arrays("forward_expected", self.forward_expected(link, inputs))
        self.check_forward_outputs(tuple(y.array for y in found), expected)

    def test_backward(self, backend_config: Any = None) -> None:
        """Compare gradients, of inputs and parameters, with central differences."""
        if self.skip_backward_test:
            raise unittest.SkipTest("skip_backward_test is set")
        self.backend_config = backend_config
        self.before_test("test_backward")
        for _ in range(_DRAWS if self.dodge_nondifferentiable else 1):
            try:
                return self._check_backward()
            except gradient_check.NondifferentiableError:
                if not self.dodge_nondifferentiable:
                    raise
        raise LinkTestError(f"generate_inputs: no derivative at {_DRAWS} drawn points")

    def _check_backward(self) -> None:
        initializers = self._initializers()
        link, inputs = self._link(initializers), self._placed(self._inputs())
        outputs = self._run_link(link, inputs)
        template = tuple(y.array for y in outputs)
        gradients = self._arrays("generate_grad_outputs", self.generate_grad_outputs(template))
        # Parameters that are attributes of the link; some links make them of others.
        held = [Parameter(self._placed([one.array])[0]) for one in self._parameters(link)]
        with link.init_scope():
            for name, one in zip(self.param_names, held, strict=True):
                setattr(link, name, one)
        options = {
            "dtype": self.numerical_grad_dtype,
            "detect_nondifferentiable": self.dodge_nondifferentiable,
            **self.check_backward_options,
        }
        with LinkTestError.told("backward"):
            gradient_check.check_backward(
                lambda *xs: self._run_link(link, xs),
                inputs,
                self._placed(gradients),
                tuple(held),
                **options,
            )


class LinkInitializersTestCase(_LinkCase):
    """Tests whether the initializers that a link is given fill its parameters.

    Classes of tests define ``generate_params``, ``generate_inputs``, ``create_link`` and
    ``get_initializers``; ``test_initializers`` comes from them.

    Attributes:
        check_initializers_options: Keyword arguments of ``assert_allclose``.
    """

    check_initializers_options: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any):
        self.check_initializers_options = {}
        super().__init__(*args, **kwargs)

    def get_initializers(self) -> Any:
        """Return for each argument a row of initializers to be tested, which draw nothing."""
        raise NotImplementedError(f"{type(self).__name__} lacks get_initializers")

    def test_initializers(self, backend_config: Any = None) -> None:
        """Compare each parameter with what its initializer fills, one after the other."""
        self.backend_config = backend_config
        self.before_test("test_initializers")
        for place, row in enumerate(self._rows()):
            others = self._initializers()
            for one in row:
                others[place] = one
                link = self._link(others)
                self._run_link(link, self._placed(self._inputs()))
                found = self._parameters(link)[place].array
                expected = np.empty_like(found)
                get_initializer(_expected(one))(expected)
                compare(
                    self.param_names[place],
                    (found,),
                    (expected,),
                    LinkTestError,
                    self.check_initializers_options,
                )

    def _rows(self) -> Any:
        rows = self.get_initializers()
        if not isinstance(rows, tuple | list) or not all(
            isinstance(row, tuple | list) for row in rows
        ):
            raise TypeError("get_initializers: expected a tuple or list of tuples or lists")
        for row in rows:
            for one in row:
                _check_initializer("get_initializers", _expected(one))
        return rows


def _expected(argument: Any) -> Any:
    """Return the initializer that an argument stands for."""
    if isinstance(argument, InitializerArgument):
        return argument.expected_initializer
    return argument


def _check_initializer(where: str, value: Any) -> None:
    if value is None:
        raise ValueError(
            f"{where}: expected an initializer, got None; InitializerArgument(None, …) says "
            "what the link does then"
        )
    get_initializer(value)
