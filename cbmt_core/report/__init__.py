"""Exhibits, figures and pages that people read."""
