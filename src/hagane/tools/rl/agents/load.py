"""Agents by a reference: ``FILE.py:make``, ``module:make``, or a file of a trained one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hagane.errors import MissingExtra
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.errors import AgentFault


def load_agent(reference: str, environment: Any = None) -> tuple[Watched, Any]:
    """Return the agent that a reference names, and the environment if it brings one.

    ``make()`` returns an agent, or an agent and its environment; ``make(env)`` is given the one
    that ``--env`` names. A Stable-Baselines3 archive needs that library.

    Args:
        reference: ``FILE.py:make``, ``module:make``, ``FILE.onnx``, ``FILE.zip`` or
            ``FILE.cleanrl_model``.
        environment: the argument of ``make``, if it takes one.

    Raises:
        AgentFault: there is no such file or function, it fails, or it returns no agent.
        MissingExtra: weights of PyTorch need it.
    """
    if reference.endswith(".onnx"):
        from hagane.tools.rl.agents.onnx import loaded

        return Watched(loaded(reference), Path(reference).name), None
    if reference.endswith(".zip"):
        from hagane.tools.rl.agents.stable_baselines import StableBaselinesAgent

        return Watched(StableBaselinesAgent.load(reference), Path(reference).name), None
    if reference.endswith((".cleanrl_model", ".pt", ".pth")):
        return Watched(_of_weights(reference), Path(reference).name), None
    place, colon, name = reference.rpartition(":")
    if not colon or not name.isidentifier():
        raise AgentFault(
            f"agent {reference!r}: expected FILE.py:function, module:function, a file .onnx, a "
            "Stable-Baselines3 file .zip or a CleanRL file .cleanrl_model"
        )
    module = _module(place)
    make = getattr(module, name, None)
    if make is None:
        raise AgentFault(f"agent {reference!r}: {place} has no {name!r}")
    made = _made(make, reference, environment)
    brought = None
    if isinstance(made, tuple) and len(made) == 2:
        made, brought = made
    if isinstance(made, type):
        raise AgentFault(f"agent {reference!r}: expected an agent, got the class {made.__name__}")
    return Watched(adapted(made), Path(reference).name), brought


def adapted(agent: Any) -> Any:
    """Return an agent by the protocol for one of another library's; others are as they are."""
    if hasattr(agent, "batch_states") and hasattr(agent, "model"):
        from hagane.tools.rl.agents.chainerrl import ChainerRLAgent

        return ChainerRLAgent(agent)
    if hasattr(agent, "policy") and callable(getattr(agent, "predict", None)):
        from hagane.tools.rl.agents.stable_baselines import StableBaselinesAgent

        return StableBaselinesAgent(agent)
    if not hasattr(agent, "act"):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(agent, torch.nn.Module):
            from hagane.tools.rl.agents.cleanrl import module_agent

            return module_agent(agent)
        links = sys.modules.get("hagane.nn.model.link")
        if links is not None and isinstance(agent, links.Link):
            from hagane.tools.rl.agents.link import LinkAgent

            return LinkAgent(agent)
    return agent


def _of_weights(path: str) -> Any:
    try:
        from hagane.tools.rl.agents.weights import loaded
    except ImportError:
        raise MissingExtra(f"agent {path!r}", "torch") from None
    return loaded(path)


def _module(place: str) -> ModuleType:
    try:
        if place.endswith(".py"):
            path = Path(place).resolve()
            if not path.is_file():
                raise AgentFault(f"agent: there is no file {place}")
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise AgentFault(f"agent: {place} is no Python module")
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            return module
        sys.path.insert(0, "")
        return importlib.import_module(place)
    except AgentFault:
        raise
    except (Exception, SystemExit) as error:
        raise AgentFault(f"agent: {place} cannot be imported: {described(error)}") from error


def _made(make: Any, reference: str, environment: Any) -> Any:
    if not callable(make):
        return make
    try:
        needed = [
            parameter
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        needed = []
    if len(needed) > 1:
        names = ", ".join(parameter.name for parameter in needed)
        raise AgentFault(f"agent {reference!r}: expected make() or make(env), it takes ({names})")
    try:
        return make(environment) if needed else make()
    except (Exception, SystemExit) as error:
        raise AgentFault(f"agent {reference!r}: failed: {described(error)}") from error


def described(error: BaseException) -> str:
    """Return an exception in one line: its type and text."""
    text = str(error).strip().replace("\n", " ")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
