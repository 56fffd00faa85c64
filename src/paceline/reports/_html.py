"""A report as one HTML page: nothing is loaded, nothing is sent."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
import math
from collections.abc import Mapping
from typing import Any

from paceline import __version__
from paceline.reports._report import Report


def render(report: Report) -> str:
    """Return the page.

    Names and values are escaped by the template, data in scripts by `embed`; scripts run only
    when their digest is in the page's own policy, which also forbids every request.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("paceline.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["embed"] = lambda data: Markup(embed(data))
    environment.filters["mathml"] = Markup
    scripts = [_plotly(), _template("report.js")]
    return environment.get_template("report.html.j2").render(
        report=report,
        version=__version__,
        policy=_policy(scripts),
        style=Markup(_template("report.css")),
        scripts=[Markup(script) for script in scripts],
    )


def embed(data: Any) -> str:
    r"""Return data as JSON that cannot end the script element it stands in.

    Examples
    --------
    >>> embed({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _finite(data: Any) -> Any:
    """Return plain data in which what is not a finite number is None."""
    if isinstance(data, Mapping):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float):
        return (float(f"{data:.7g}") if data else 0.0) if math.isfinite(data) else None
    return data


def _plotly() -> str:
    """Return Plotly's JavaScript, read as a file: importing Plotly would take longer."""
    package = importlib.resources.files("plotly") / "package_data" / "plotly.min.js"
    # the parser of a page would take this for the end of the script
    return package.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _template(name: str) -> str:
    package = importlib.resources.files("paceline.reports") / "templates" / name
    return package.read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; "
        "img-src data: blob:; connect-src blob: data:"
    )
