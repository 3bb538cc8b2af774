"""The paper's tables, and the data of its figures, as relations; one registry names them all."""

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
