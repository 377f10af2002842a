"""Reports: one self-contained HTML file of a run."""

from elboroom.report.page import write_report

__all__ = ["write_report"]
