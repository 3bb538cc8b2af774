"""A synthetic economy: firms whose drivers share hidden states, as cohort tables or as single orders."""

from cbmt_core.simulate.cohorts import CohortSample, expected_cohorts, sample_cohorts
from cbmt_core.simulate.economy import Economy, FirmSpec
from cbmt_core.simulate.industries import INDUSTRIES, Industry
from cbmt_core.simulate.orders import sample_orders
from cbmt_core.simulate.parameters import FirmParameters
from cbmt_core.simulate.truth import FirmTruth, truth_of
from cbmt_core.simulate.write import FORMATS, write_economy, write_orders

__all__ = [
    "FORMATS",
    "INDUSTRIES",
    "CohortSample",
    "Economy",
    "FirmParameters",
    "FirmSpec",
    "FirmTruth",
    "Industry",
    "expected_cohorts",
    "sample_cohorts",
    "sample_orders",
    "truth_of",
    "write_economy",
    "write_orders",
]
