"""Errors of the debug mode, and of gradients through what is gone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812


@pytest.fixture
def debug() -> Iterator[None]:
    with chainer.using_config("debug", True):
        yield


def line_of(text: str) -> str:
    """Return file and line of the test's own line that ends in a remark, as messages show them."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    lines, first = inspect.getsourcelines(frame.f_back.f_code)
    (number,) = [i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {text}")]
    return f"{__file__}:{first + number}: {lines[number].strip()}"


def variable(*content: float) -> Any:
    return chainer.Variable(np.array(content, "f"))


@pytest.mark.usefixtures("debug")
def test_the_first_function_that_makes_a_nan_is_named_with_its_place() -> None:
    x = variable(-1, 2)
    with pytest.raises(RuntimeError) as caught:
        F.exp(F.relu(F.log(x)))  # the line
    assert str(caught.value) == (
        "NaN is detected on forward computation of log: no input held NaN\n"
        f"At: {line_of('the line')}"
    )


@pytest.mark.usefixtures("debug")
def test_a_nan_of_the_data_is_told_from_one_that_a_function_made() -> None:
    link = L.Linear(2, 3)
    with pytest.raises(RuntimeError) as caught:
        link(np.array([[1, np.nan]], "f"))  # the line
    assert str(caught.value) == (
        "NaN is detected on forward computation of linear: its input 0 held NaN before: no "
        f"function made it\nAt: {line_of('the line')}"
    )


@pytest.mark.usefixtures("debug")
def test_a_nan_of_a_gradient_names_the_function_and_where_it_was_applied() -> None:
    x = variable(0, 0)
    y = F.sqrt(x)  # the line
    y.grad = np.zeros(2, "f")
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    text = str(caught.value)
    assert text.startswith("NaN is detected on backward computation\n")
    assert "(sqrt)" in text
    assert text.endswith(f"\nAt: {line_of('the line')}")


@pytest.mark.usefixtures("debug")
def test_functions_of_users_are_checked_too() -> None:
    class Broken(chainer.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * np.float32(np.nan),)

    with pytest.raises(RuntimeError, match="forward computation of Broken: no input held NaN\nAt:"):
        Broken().apply((np.ones(2, "f"),))


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("own", [False, True], ids=["of the library", "of a user"])
@pytest.mark.parametrize("which", ["input", "output"])
def test_an_array_that_a_gradient_needs_and_that_changed_is_told_of(own: bool, which: str) -> None:
    class Squared(chainer.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            self.retain_outputs((0,))
            return (inputs[0] ** 2,)

        def backward(self, indexes: Any, gradients: Any) -> Any:
            return (2 * self.get_retained_inputs()[0] * gradients[0],)

    x = variable(1, 2, 3)
    y = Squared().apply((x,))[0] if own else F.exp(x)  # the line
    z = F.sum(y)
    (x if which == "input" else y).array[1] = 9
    with pytest.raises(RuntimeError) as caught:
        z.backward()
    assert str(caught.value) == (
        f"backward of {'Squared' if own else 'exp'}: the array of {which} 0, float32[3], was "
        "changed in place after the function was applied; change a copy, or change it after "
        f"backward\nAt: {line_of('the line')}"
    )


@pytest.mark.usefixtures("debug")
def test_a_change_that_no_gradient_sees_is_none() -> None:
    x = variable(1, 2)
    y = x + 1
    loss = F.sum(F.reshape(y, (2, 1)))
    x.array[0] = 5
    y.array[0] = 7
    loss.backward()
    np.testing.assert_array_equal(x.grad, [1, 1])


@pytest.mark.usefixtures("debug")
def test_parameters_that_the_loss_does_not_depend_on_are_listed() -> None:
    class Net(chainer.Chain):
        def __init__(self) -> None:
            super().__init__()
            with self.init_scope():
                self.used = L.Linear(2, 1)
                self.a = L.Linear(2, 3)
                self.b = L.Linear(None, 3, nobias=True)

        def forward(self, x: Any) -> Any:
            return F.sum(self.used(x))

    net = Net()
    optimizer = chainer.optimizers.SGD().setup(net)
    with pytest.raises(RuntimeError) as caught:
        optimizer.update(net, np.ones((3, 2), "f"))
    assert str(caught.value) == (
        "the loss does not depend on these parameters, so they have no gradient:\n"
        "  /a/W: (3, 2), float32\n  /a/b: (3), float32\n  /b/W: (), None\n"
        "use them, or take their links out of updates by link.disable_update()"
    )
    net.a.disable_update()
    net.b.disable_update()
    optimizer.update(net, np.ones((3, 2), "f"))


@pytest.mark.usefixtures("debug")
def test_gradients_that_nobody_asked_for_are_told_of() -> None:
    x = variable(1, 2)
    fixed = chainer.Variable(np.ones(2, "f"), requires_grad=False)
    y = x * fixed
    loss = F.sum(y)
    assert y.grad is None  # there was no backward yet
    loss.backward()
    with pytest.raises(RuntimeError) as caught:
        y.grad  # noqa: B018
    assert str(caught.value) == (
        "the gradient of the intermediate variable (2), float32 was not kept: "
        "use backward(retain_grad=True), or hagane.grad"
    )
    with pytest.raises(RuntimeError, match="it was made with requires_grad=False"):
        fixed.grad  # noqa: B018
    F.sum(x * fixed).backward(retain_grad=True)


def test_without_the_debug_mode_programs_go_on_as_with_chainer() -> None:
    x = variable(-1, 2)
    y = F.log(x)
    F.sum(y).backward()
    assert np.isnan(y.array[0])
    assert y.grad is None
    assert chainer.Variable(np.ones(2, "f"), requires_grad=False).grad is None


def test_backward_through_what_was_released_says_so() -> None:
    x = variable(1, 2)
    y = F.exp(x)
    loss = F.sum(y * y)
    loss.unchain_backward()
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    assert str(caught.value) == (
        "backward: the functions that computed the variable float32 were released "
        "by unchain_backward; compute the variable anew"
    )
    loss = F.sum(y * 2)  # a new computation from a variable that is a leaf now
    loss.backward()
    np.testing.assert_array_equal(y.grad, [2, 2])
    assert x.grad is None


@pytest.mark.parametrize("ask", ["backward", "grad"])
def test_a_gradient_through_a_released_function_says_so(ask: str) -> None:
    x = variable(1, 2)
    y = F.exp(x)
    loss = F.sum(y)
    y.node._creator_node.inputs = None
    ways = {"backward": loss.backward, "grad": lambda: chainer.grad([loss], [x])}
    with pytest.raises(RuntimeError) as caught:
        ways[ask]()
    assert str(caught.value) == (
        "backward: the inputs of exp were released by unchain; compute the variable anew"
    )
