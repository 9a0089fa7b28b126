"""Settings of all tests: patience on busy machines, Ctrl-C where it is ignored, progress."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.progress import Progress

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Background jobs and nohup ignore SIGINT, which Python and the processes that it starts inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # the terminal comes first
def pytest_configure(config: pytest.Config) -> None:
    """Show progress by the twentieth, and why tests are skipped."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(terminal))
