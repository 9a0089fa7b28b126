"""``hagane cluster``: a Kubernetes scheduler on a simulated GPU cluster."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.numbers import not_negative, port_number
from hagane.cli.terminal.progress import working
from hagane.cli.terminal.simulated import simulating
from hagane.errors import InvalidArgument
from hagane.machine.whole_files import write_whole

app = typer.Typer(no_args_is_help=True, help="Try a Kubernetes scheduler on a simulated cluster.")

KubeVersion = Annotated[
    str, typer.Option("--kube-version", help="Which Kubernetes to be, like 1.34.")
]
Port = Annotated[
    int, typer.Option(help="Where to listen on 127.0.0.1; 0 picks one.", callback=port_number)
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
    from hagane.tools.cluster.link.extender import Extender
    from hagane.tools.cluster.model.read_objects import load_objects, load_pod
    from hagane.tools.cluster.state import Cluster

    version = parse_version(kube_version)
    chosen = load_profile(profile, version) if profile else default_profile(version)
    objects = load_objects(cluster)
    if not objects.nodes:
        raise InvalidArgument(f"{cluster}: expected at least one Node, got none to place a pod on")
    wanted = load_pod(pod, objects)
    state = Cluster.of(objects)
    if wanted.key in state.where:
        raise InvalidArgument(f"pod {wanted.key!r} is bound in {cluster} already")
    extenders = [Extender(config) for config in chosen.extenders]
    result = explain_pod(chosen, state, wanted, seed, extenders)
    if as_json:
        print(json.dumps(result.to_json()))
        return
    from hagane.cli.terminal.cluster import show_explanation

    show_explanation(result)


@app.command()
def run(
    config: Annotated[
        Path | None, typer.Argument(help="The configuration; k8s-cluster-simulator's too.")
    ] = None,
    nodes: Annotated[Path | None, typer.Option(help="Nodes of a trace.")] = None,
    pods: Annotated[Path | None, typer.Option(help="Pods of a trace.")] = None,
    format: Annotated[str, typer.Option(help="The pods' format: openb or jobs.")] = "openb",
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
    with simulating(prepared.until) as progress:
        summary = prepared.run(progress)
    if as_json:
        print(json.dumps(summary))
        return
    from hagane.cli.terminal.cluster import show_summary

    show_summary(summary)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="One configuration.")],
    b: Annotated[Path, typer.Argument(help="The other one.")],
    seeds: Annotated[int, typer.Option(help="How many seeds both are run with.")] = 20,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="Write plots into this HTML page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the changes of B against A: paired differences with confidence intervals."""
    from hagane.tools.cluster.report import compare as comparing

    with working("comparing"):
        found = comparing.compare(a, b, seeds, first, confidence)
    if plot is not None:
        from hagane.tools.cluster.report import plots

        write_whole(plot, plots.plot(found, str(a), str(b), confidence))
    if as_json:
        metrics = {d.metric: d.to_json() for d in found}
        print(json.dumps({"a": str(a), "b": str(b), "seeds": seeds, "metrics": metrics}))
        return
    from hagane.cli.terminal.cluster import show_differences

    show_differences(found, confidence)


@app.command("serve-extender")
def serve_extender(
    cluster: Annotated[
        Path | None, typer.Option(help="YAML with nodes and bound pods that are known.")
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="A KubeSchedulerConfiguration.")] = None,
    scheduler: Annotated[
        str, typer.Option(help="profile, best-fit, fgd, or module:Class of a Greedy.")
    ] = "profile",
    kube_version: KubeVersion = "1.34",
    port: Port = 8888,
) -> None:
    """Serve a Python scheduler as a Kubernetes scheduler extender over HTTP."""
    from hagane.tools.cluster.link.serve import ExtenderService
    from hagane.tools.cluster.link.serve import serve_extender as listen
    from hagane.tools.cluster.model.read_objects import load_objects
    from hagane.tools.cluster.schedulers.kinds import profile_at, served_scheduler
    from hagane.tools.cluster.state import Cluster

    chosen = profile_at(profile, kube_version)
    state = Cluster.of(load_objects(cluster)) if cluster is not None else None
    server = listen(ExtenderService(state, chosen, served_scheduler(scheduler, chosen)), port)
    print(f"listening on {server.url}", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()


@app.command("serve-api")
def serve_api(
    config: Annotated[Path, typer.Argument(help="The configuration; its scheduler is not used.")],
    port: Port = 8001,
    quiet: Annotated[
        float,
        typer.Option(
            help="Real seconds of silence after which simulated time goes on.",
            callback=not_negative,
        ),
    ] = 0.5,
    wait: Annotated[
        float | None,
        typer.Option(
            help="Real seconds in which a scheduler has to come; for ever without it.",
            callback=not_negative,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when nothing is left to simulate.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate with an outside scheduler that connects as to a Kubernetes API server.

    Serves until Ctrl-C or SIGTERM, then prints the summary; pods and nodes that clients create are
    taken in at any time.
    """
    import signal

    from hagane.tools.cluster.link.api.apiserver import ApiServer
    from hagane.tools.cluster.link.outside import Outside
    from hagane.tools.cluster.link.wire import namespace_object, priority_class_object
    from hagane.tools.cluster.sim.config import load_config
    from hagane.tools.cluster.sim.setup import prepare

    settings = load_config(config)
    with ApiServer(port) as api:
        for item in settings.objects.priority_classes:
            api.store.put("priorityclasses", item.name, priority_class_object(item))
        for name, labels in settings.objects.namespaces.items():
            api.store.put("namespaces", name, namespace_object(name, labels))
        outside = Outside(api, quiet, wait)
        settings.scheduler = lambda seed: outside
        prepared = prepare(settings, quiet=as_json)
        outside.show_nodes(prepared.simulation.cluster)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f"listening on {api.url}", flush=True)
        try:
            summary = prepared.run(more=None if once else outside.wait)
        except KeyboardInterrupt:
            summary = prepared.simulation.summary()
    if as_json:
        print(json.dumps(summary))
        return
    from hagane.cli.terminal.cluster import show_summary

    show_summary(summary)
