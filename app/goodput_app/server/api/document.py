"""The OpenAPI document of `/api/v1`; a test compares its paths and fields with the routes."""

import json
from importlib.resources import files
from typing import Any

from goodput_app.distribution import version

ROWS = "/api/v1/views/{view}/rows"


def openapi() -> dict[str, Any]:
    """Return the document."""
    file = files("goodput_app.server.api") / "openapi.json"
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    document["info"]["version"] = version()
    return document


def parameters() -> dict[str, str]:
    """Return what each parameter of a request for rows means."""
    of_rows = openapi()["paths"][ROWS]["get"]["parameters"]
    return {one["name"]: one["schema"].get("description", "") for one in of_rows}
