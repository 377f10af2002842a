"""Reports: one self-contained HTML file of a run, or of a study."""

from elboroom.report.run import write_report

__all__ = ["write_report"]
