"""Kubernetes objects: read strictly from YAML, kept as immutable values."""

from __future__ import annotations

from hagane.tools.cluster.model.objects import Node, Objects, Pod
from hagane.tools.cluster.model.read_objects import load_objects, parse_objects

__all__ = ["Node", "Objects", "Pod", "load_objects", "parse_objects"]
