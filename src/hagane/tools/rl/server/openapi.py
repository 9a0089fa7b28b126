"""The interface in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

_WHOLE = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def _path(summary: str, **more: Any) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "JSON"}}, **more}


def _query(name: str, schema: dict[str, Any], what: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": what}


_ID = {"name": "id", "in": "path", "required": True, "schema": _TEXT}


def _posted(summary: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "202": {"description": "started"},
            "400": {"description": "the body is no object of JSON"},
            "413": {"description": "the body is larger than 1,000,000 bytes"},
            "422": {"description": "a value is missing or out of range"},
            "429": {"description": "too many jobs wait"},
        },
    }


def openapi() -> dict[str, Any]:
    """Return the document."""
    one = "/api/rollouts/{id}"
    steps = {"type": "integer", "minimum": 0}
    intensity = {"type": "number", "minimum": 0}
    return {
        "openapi": "3.1.0",
        "info": {"title": "hagane rl", "version": "1"},
        "security": [{"bearer": []}, {"query": []}],
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            }
        },
        "paths": {
            "/": {"get": _path("The page")},
            "/images": {
                "get": _path("A picture", parameters=[_query("image_path", _TEXT, "as logs say")])
            },
            "/api/server_state": {"get": _path("Whether a job runs; errors of jobs")},
            "/api/agent_profile": {"get": _path("What the agent shows")},
            "/api/rollouts": {
                "get": _path(
                    "Names of rollouts",
                    parameters=[_query("q", {"enum": ["latest"]}, "only the latest, and its path")],
                ),
                "post": _posted(
                    "Start a rollout",
                    {
                        "step_count": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
                        "seed": _WHOLE,
                        "agent": _WHOLE,
                    },
                    ["step_count"],
                ),
            },
            one: {
                "get": _path(
                    "The log",
                    parameters=[
                        _ID,
                        _query("from", _WHOLE, "first step"),
                        _query("count", _WHOLE, "how many steps"),
                    ],
                )
            },
            f"{one}/series": {
                "get": _path(
                    "Its columns in binary",
                    parameters=[_ID, _query("from", _WHOLE, "first step")],
                )
            },
            f"{one}/search": {
                "get": _path(
                    "Steps where a condition holds",
                    parameters=[_ID, _query("where", _TEXT, "max(action_values) drops by 0.5")],
                )
            },
            f"{one}/saliency": {
                "post": {
                    **_posted(
                        "Explain steps",
                        {
                            "from_step": steps,
                            "to_step": steps,
                            "method": _TEXT,
                            "output": _TEXT,
                            "reach": _TEXT,
                            "checks": {"type": "boolean"},
                            "agent": _WHOLE,
                            "actor_intensity": intensity,
                            "critic_intensity": intensity,
                            "qfunc_intensity": intensity,
                        },
                        ["from_step", "to_step"],
                    ),
                    "parameters": [_ID],
                }
            },
            f"{one}/explanations": {"get": _path("Explanations made", parameters=[_ID])},
            f"{one}/explanations/{{name}}": {
                "get": _path(
                    "The maps of a step in binary float32",
                    parameters=[
                        _ID,
                        {"name": "name", "in": "path", "required": True, "schema": _TEXT},
                        _query("step", _WHOLE, "of the rollout"),
                    ],
                )
            },
            f"{one}/export": {
                "post": {
                    **_posted(
                        "Make a video",
                        {"from_step": steps, "to_step": steps, "format": _TEXT, "fps": _WHOLE},
                        [],
                    ),
                    "parameters": [_ID],
                },
                "get": _path(
                    "The video", parameters=[_ID, _query("name", _TEXT, "as the job's result says")]
                ),
            },
            "/api/jobs": {"get": _path("Jobs, how far each is, its result or error")},
            "/api/jobs/{number}": {
                "delete": {
                    "summary": "Cancel a job",
                    "parameters": [
                        {"name": "number", "in": "path", "required": True, "schema": _WHOLE}
                    ],
                    "responses": {"202": {"description": "told"}},
                }
            },
            "/api/live": {"get": _path("News of jobs, over WebSocket")},
        },
    }
