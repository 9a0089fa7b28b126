"""Try a Kubernetes scheduler on a simulated GPU cluster.

Objects are read as Kubernetes writes them (:mod:`~hagane.tools.cluster.model`), nodes and bound
pods lie in columns (:mod:`~hagane.tools.cluster.state`), the kube-scheduler works on them with its
own integers (:mod:`~hagane.tools.cluster.kube`), and time is a heap of events
(:mod:`~hagane.tools.cluster.sim`).
"""

from __future__ import annotations

from hagane.tools.cluster.errors import (
    ClusterError,
    ExtenderFault,
    InvalidManifest,
    SchedulerFault,
)
from hagane.tools.cluster.kube.configuration import load_profile
from hagane.tools.cluster.kube.explain import explain
from hagane.tools.cluster.kube.profile import default_profile
from hagane.tools.cluster.model import Node, Objects, Pod, load_objects, parse_objects
from hagane.tools.cluster.state import Cluster

__all__ = [
    "Cluster",
    "ClusterError",
    "ExtenderFault",
    "InvalidManifest",
    "Node",
    "Objects",
    "Pod",
    "SchedulerFault",
    "default_profile",
    "explain",
    "load_objects",
    "load_profile",
    "parse_objects",
]
