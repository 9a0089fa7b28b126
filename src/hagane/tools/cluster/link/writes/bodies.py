"""Bodies of requests to the API server, and the form of changes by their content type."""

from __future__ import annotations

import json
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.link.listening import BadBody, read_bytes, read_json
from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.model.documents import parse_documents

# How the body of a change is meant: a whole object (or a merge patch), a JSON patch, a strategic
# merge patch, a configuration to apply.
WHOLE, JSON_PATCH, STRATEGIC, APPLY = "whole", "json", "strategic", "apply"


_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
# What clients send that name nothing in particular: a merge patch is meant.
_UNNAMED = ("", "application/json", "application/x-www-form-urlencoded")


async def read_body(request: Any) -> tuple[Any, str]:
    """Return the body of a change and its form.

    Raises:
        Refused: It has a content type that is not read (415), or is no object (400).
        BadBody: It cannot be read.
    """
    content = request.headers.get("content-type", "")
    applied = "apply-patch" in content and request.method == "PATCH"
    if "protobuf" in content or "cbor" in content or ("yaml" in content and not applied):
        raise Refused(
            415,
            "UnsupportedMediaType",
            f"the body is {content}: expected JSON; kubectl sends it for manifests "
            "(kubectl apply -f), a kube-scheduler if clientConnection.contentType is "
            "application/json",
        )
    form = content.partition(";")[0].strip().lower()
    if request.method == "PATCH" and form not in (*_PATCHES, *_UNNAMED):
        raise Refused(
            415,
            "UnsupportedMediaType",
            f"the patch is {content!r}: expected one of {', '.join(_PATCHES)}",
        )
    value = await (_read_yaml(request) if applied else read_json(request))
    if "json-patch" in content and isinstance(value, list):
        return value, JSON_PATCH
    if not isinstance(value, dict):
        raise Refused(400, "BadRequest", "the body is not a JSON object; patches are merge patches")
    return value, APPLY if applied else STRATEGIC if "strategic" in content else WHOLE


async def read_options(request: Any) -> dict[str, Any]:
    """Return the options of a deletion, which may have any content."""
    if "json" not in request.headers.get("content-type", "json"):
        return {}
    value = await read_json(request)
    return value if isinstance(value, dict) else {}


def is_dry(request: Any, options: dict[str, Any]) -> bool:
    """Return whether a change shall only be checked.

    Raises:
        Refused: The request asks for another kind of trial.
    """
    asked = [*request.query_params.getlist("dryRun"), *(options.get("dryRun") or ())]
    if any(one != "All" for one in asked):
        raise Refused(400, "BadRequest", f"dryRun: expected 'All', got {asked}")
    return bool(asked)


async def _read_yaml(request: Any) -> Any:
    text = (await read_bytes(request)).decode(errors="replace")
    try:
        found = [each.value for each in parse_documents(text, "the body", aliases=False)]
        if len(found) == 1:
            # As JSON has it: keys are texts.
            return json.loads(json.dumps(found[0]))
    except InvalidManifest as error:
        raise BadBody(400, f"the body is not YAML: {error}") from None
    except (RecursionError, TypeError, ValueError):
        pass
    raise BadBody(400, "the body is not one object in YAML")
