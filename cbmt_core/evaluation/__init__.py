"""Evaluation of forecasts: errors by firm, and comparisons across firms on common samples."""

from cbmt_core.evaluation.comparison import ALL_INDUSTRIES, REFERENCES, compare, reference_of
from cbmt_core.evaluation.errors import accuracy, failures
from cbmt_core.evaluation.relations import Relations, whole_firms

__all__ = [
    "ALL_INDUSTRIES",
    "REFERENCES",
    "Relations",
    "accuracy",
    "compare",
    "failures",
    "reference_of",
    "whole_firms",
]
