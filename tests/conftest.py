"""Settings of all tests: patience on busy machines, Ctrl-C where the caller ignores it."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Background jobs and nohup ignore SIGINT, which Python and the processes that it starts inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
