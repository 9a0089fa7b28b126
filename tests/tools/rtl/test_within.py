"""The limit of time ends blocks that keep what is raised in them."""

import ctypes
import signal
import time
from contextlib import suppress

import pytest

from hagane.tools.rtl.within import TimeUp, within


def _busy(seconds: float) -> None:
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        pass


class _Finalizer:
    """Busy while it is deleted; Python drops what is raised there."""

    def __del__(self) -> None:
        _busy(0.05)


class _Argument:
    """A type of argument whose conversion takes time."""

    @classmethod
    def from_param(cls, value: object) -> ctypes.c_int:
        del value
        _busy(0.05)
        return ctypes.c_int(1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_that_passes_in_a_finalizer_is_raised_again() -> None:
    def block() -> None:
        _Finalizer()
        _busy(30)

    started = time.monotonic()
    with pytest.raises(TimeUp), within(0.02):
        block()
    assert time.monotonic() - started < 15


def test_a_limit_that_passes_while_arguments_are_converted_is_no_error_of_ctypes() -> None:
    convert = ctypes.pythonapi["PyErr_CheckSignals"]  # any function: it is not reached
    convert.argtypes = [_Argument]
    with pytest.raises(TimeUp) as caught, within(0.02):
        convert(0)
    assert isinstance(caught.value.__cause__, ctypes.ArgumentError)


def test_an_error_before_the_limit_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), within(30):
        raise ZeroDivisionError
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_nothing_is_raised_once_the_block_has_ended() -> None:
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(50):
        with suppress(TimeUp), within(0.001):
            _busy(0.001)
    _busy(0.3)
    assert signal.getsignal(signal.SIGALRM) is before
