"""Exhibits, figures and pages that people read."""

from cbmt_core.report.pages import write_report

__all__ = ["write_report"]
