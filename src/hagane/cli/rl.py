"""``hagane rl``: watch an agent act, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Watch agents of reinforcement learning act."""


@app.command()
def serve(
    agents: Annotated[
        list[str],
        typer.Argument(help="AGENT.py:make, module:make, POLICY.onnx; several to compare them."),
    ],
    env: Annotated[str, typer.Option(help="Environment of Gymnasium, like CartPole-v1.")] = "",
    port: Annotated[int, typer.Option(help="Where to listen on 127.0.0.1; 0 picks one.")] = 5002,
    logdir: Annotated[Path, typer.Option(help="Folder of the logs.")] = Path("log_space"),
    frames: Annotated[
        int | None, typer.Option(help="Observations to stack; 4 for Atari games, 0 for none.")
    ] = None,
    patience: Annotated[
        float, typer.Option(help="Seconds without a step after which a job is ended.")
    ] = 30.0,
    memory: Annotated[float, typer.Option(help="GiB that a job may take; 0 for no limit.")] = 4.0,
    jobs: Annotated[int, typer.Option(help="How many jobs run at once.")] = 2,
    debug: Annotated[bool, typer.Option(help="Write each request to standard error.")] = False,
) -> None:
    """Serve the page on which agents act; Ctrl-C ends it."""
    from hagane.tools.rl import serve_agents

    serve_agents(agents, env, frames, logdir, port, patience, memory, jobs, debug)
