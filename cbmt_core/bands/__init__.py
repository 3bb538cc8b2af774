"""Bands: joint draws of the drivers, calibrated on backtests, and ranges as quantiles of these draws."""

from cbmt_core.bands.coverage import band_coverage, band_pit
from cbmt_core.bands.draws import DRAWS, draw_drivers, draws_of, generator
from cbmt_core.bands.error_paths import SALES, drawn_paths, error_paths, usual_changes, whole_paths
from cbmt_core.bands.errors import realised_errors, sales_errors
from cbmt_core.bands.factors import SHIPPED, BandFactors, learn_factors
from cbmt_core.bands.firm import FirmBands, band_tables
from cbmt_core.bands.judged import judged_bands
from cbmt_core.bands.quantiles import LEVELS, BridgeBaseline, bands, bridge_draws
from cbmt_core.bands.scores import band_calibration, band_scores
from cbmt_core.bands.stored import draw_rows, read_draws, revenue_from_rows

__all__ = [
    "DRAWS",
    "LEVELS",
    "SALES",
    "SHIPPED",
    "BandFactors",
    "BridgeBaseline",
    "FirmBands",
    "band_calibration",
    "band_coverage",
    "band_pit",
    "band_scores",
    "band_tables",
    "bands",
    "bridge_draws",
    "draw_drivers",
    "draw_rows",
    "drawn_paths",
    "draws_of",
    "error_paths",
    "generator",
    "judged_bands",
    "learn_factors",
    "read_draws",
    "realised_errors",
    "revenue_from_rows",
    "sales_errors",
    "usual_changes",
    "whole_paths",
]
