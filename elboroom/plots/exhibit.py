"""An exhibit: a figure as a page shows it and a folder keeps it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape
from matplotlib.figure import Figure

from elboroom.plots.sentences import Sentences
from elboroom.plots.style import save


@dataclass(frozen=True)
class Exhibit:
    """A figure in its frame, or sentences; where the model cannot have it, the reason stands in its place."""

    name: str
    title: str
    caption: str
    chart: bool = False  # lines and bars, so kept as SVG too; else pixels
    figure: Figure | None = None
    sentences: Sentences = ()
    data: str = ""  # the rows that it was drawn from, as CSV, where they are shown
    reason: str = ""

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        if self.figure is None:
            shown = "".join(f"<p>{'<br>'.join(map(escape, row))}</p>" for row in self.sentences)
        else:
            content = io.BytesIO()
            self.figure.savefig(content, format="png")
            shown = f"<img src='data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}'>"
        return f"<figure>{shown}<figcaption>{escape(self.caption or self.title)}</figcaption></figure>"

    def save(self, folder: Path) -> list[Path]:
        """Writes NAME.png, NAME.svg for charts, and NAME.csv where it has data."""
        if self.figure is None:
            return []
        paths = [save(self.figure, folder / f"{self.name}{suffix}") for suffix in (".png", ".svg")[: 1 + self.chart]]
        if self.data:
            paths.append(folder / f"{self.name}.csv")
            paths[-1].write_text(self.data, encoding="utf-8")
        return paths
