"""Sphinx: the pages that build.py has put together."""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from typing import Any

project = "elboroom"
author = "elboroom contributors"
copyright = author
version = release = version_of("elboroom")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
suppress_warnings = ["misc.highlighting_failure"]  # a fence may be of a language that pygments has no lexer for
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "elboroom"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "show_prev_next": True,
    "pygments_light_style": "tango",
}
html_sidebars = {"index": []}

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports: list[str] = []


def _plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with code in single backticks: what reStructuredText would read otherwise is escaped."""
    for at, line in enumerate(lines):
        parts = re.split(r"(`[^`]+`)", line.strip())
        escaped = (re.sub(r"([*|_\\])", r"\\\1", part) if part[:1] != "`" else f"`{part}`" for part in parts)
        lines[at] = "".join(escaped)


def setup(app: Any) -> None:
    """Tells Sphinx."""
    app.connect("autodoc-process-docstring", _plain)
