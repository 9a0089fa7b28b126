"""``hagane rl``: watch an agent act, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.numbers import finite
from hagane.machine.whole_files import write_whole

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def _group() -> None:
    """Watch agents of reinforcement learning act."""


@app.command()
def serve(
    agents: Annotated[
        list[str],
        typer.Argument(
            help="AGENT.py:make, module:make, POLICY.onnx, SB3.zip, X.cleanrl_model; "
            "several to compare them."
        ),
    ],
    env: Annotated[str, typer.Option(help="Environment of Gymnasium, like CartPole-v1.")] = "",
    port: Annotated[int, typer.Option(help="Where to listen on 127.0.0.1; 0 picks one.")] = 5002,
    logdir: Annotated[Path, typer.Option(help="Folder of the logs.")] = Path("log_space"),
    frames: Annotated[
        int | None, typer.Option(help="Observations to stack; 4 for Atari games, 0 for none.")
    ] = None,
    patience: Annotated[
        float,
        typer.Option(help="Seconds without a step after which a job is ended.", callback=finite),
    ] = 30.0,
    memory: Annotated[
        float, typer.Option(help="GiB that a job may take; 0 for no limit.", callback=finite)
    ] = 4.0,
    jobs: Annotated[int, typer.Option(help="How many jobs run at once.")] = 2,
    debug: Annotated[bool, typer.Option(help="Write each request to standard error.")] = False,
) -> None:
    """Serve the page on which agents act; Ctrl-C ends it."""
    from hagane.tools.rl import serve_agents

    serve_agents(agents, env, frames, logdir, port, patience, memory, jobs, debug)


@app.command()
def curves(
    file: Annotated[Path, typer.Argument(help="Curves in JSON, as examples/rl/train.py writes.")],
    page: Annotated[Path | None, typer.Option(help="Draw them into this HTML page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show learning curves over seeds: interquartile means with bootstrap intervals."""
    import json

    from hagane.tools.rl.curves import bootstrap, drawing, load_curves

    found = load_curves(file)
    if page is not None:
        write_whole(page, drawing(found))
    ends = {curve.name: bootstrap([curve.returns[:, -1]]) for curve in found}
    if as_json:
        facts = {
            name: {"iqm": end.value, "low": end.low, "high": end.high} for name, end in ends.items()
        }
        print(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("agent", "environment", "steps", "seeds", "return (IQM)", "95 % interval")
    for curve in found:
        end = ends[curve.name]
        table.add_row(
            curve.name,
            curve.environment,
            f"{curve.steps[-1]:,}",
            str(len(curve.returns)),
            f"{end.value:.1f}",
            f"{end.low:.1f} to {end.high:.1f}" if len(curve.returns) > 1 else "needs more seeds",
        )
    Console().print(table)
