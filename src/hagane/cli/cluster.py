"""``hagane cluster``: a Kubernetes scheduler on a simulated GPU cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.progress import working
from hagane.errors import InvalidArgument

app = typer.Typer(no_args_is_help=True, help="Try a Kubernetes scheduler on a simulated cluster.")

KubeVersion = Annotated[
    str, typer.Option("--kube-version", help="Which Kubernetes to be, like 1.34.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command()
def explain(
    cluster: Annotated[Path, typer.Option(help="YAML with nodes and bound pods.")],
    pod: Annotated[Path, typer.Option(help="YAML with the pod to place.")],
    profile: Annotated[Path | None, typer.Option(help="A KubeSchedulerConfiguration.")] = None,
    kube_version: KubeVersion = "1.34",
    seed: Annotated[int, typer.Option(help="Of the choice among equal nodes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show which filters a pod fails and how it scores, node by node."""
    from hagane.tools.cluster.kube.configuration import load_profile
    from hagane.tools.cluster.kube.explain import explain as explain_pod
    from hagane.tools.cluster.kube.profile import default_profile, parse_version
    from hagane.tools.cluster.model.read_objects import load_objects, load_pod
    from hagane.tools.cluster.state import Cluster

    version = parse_version(kube_version)
    chosen = load_profile(profile, version) if profile else default_profile(version)
    objects = load_objects(cluster)
    wanted = load_pod(pod, objects)
    state = Cluster.of(objects)
    if wanted.key in state.where:
        raise InvalidArgument(f"pod {wanted.key!r} is bound in {cluster} already")
    result = explain_pod(chosen, state, wanted, seed)
    if as_json:
        print(json.dumps(result.to_json()))
        return
    from hagane.cli.cluster_tables import show_explanation

    show_explanation(result)


@app.command()
def run(
    config: Annotated[
        Path | None, typer.Argument(help="The configuration; k8s-cluster-simulator's too.")
    ] = None,
    nodes: Annotated[Path | None, typer.Option(help="Nodes of a trace.")] = None,
    pods: Annotated[Path | None, typer.Option(help="Pods of a trace.")] = None,
    format: Annotated[str, typer.Option(help="The trace's format: openb.")] = "openb",
    profile: Annotated[Path | None, typer.Option(help="A KubeSchedulerConfiguration.")] = None,
    kube_version: KubeVersion = "1.34",
    seed: Annotated[int | None, typer.Option(help="Instead of the configuration's.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write every event here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a configuration, or a trace as it is."""
    from hagane.tools.cluster.sim.setup import configured, traced

    if (config is None) == (nodes is None or pods is None):
        raise InvalidArgument("give either CONFIG.yaml, or both --nodes and --pods")
    if config is not None:
        prepared = configured(config, seed, log, quiet=as_json)
    else:
        assert nodes is not None
        assert pods is not None
        prepared = traced(nodes, pods, format, profile, kube_version, seed or 0, log)
    with working("simulating"):
        summary = prepared.run()
    if as_json:
        print(json.dumps(summary))
        return
    from hagane.cli.cluster_tables import show_summary

    show_summary(summary)
