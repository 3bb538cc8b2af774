"""Exhibits: the paper's tables and the data of its figures, with one registry of all of them."""

from cbmt_core.exhibits.evidence import Evidence, gather
from cbmt_core.exhibits.exhibit import Exhibit
from cbmt_core.exhibits.models import BENCHMARKS, LABELS, NESTED_MODELS, REPRESENTATIVES
from cbmt_core.exhibits.registry import EXHIBITS, exhibits

__all__ = [
    "BENCHMARKS",
    "EXHIBITS",
    "LABELS",
    "NESTED_MODELS",
    "REPRESENTATIVES",
    "Evidence",
    "Exhibit",
    "exhibits",
    "gather",
]
