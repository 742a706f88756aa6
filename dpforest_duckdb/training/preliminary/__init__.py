"""What a run asks before its trees grow, in this order; the recipe adapts to each answer."""

from __future__ import annotations

from dpforest_duckdb.training.preliminary.drawn_bins import DRAWN_BINS
from dpforest_duckdb.training.preliminary.median_bins import MEDIAN_BINS
from dpforest_duckdb.training.preliminary.narrower_bounds import NARROWER_BOUNDS
from dpforest_duckdb.training.preliminary.row_counts import ROW_COUNTS
from dpforest_duckdb.training.preliminary.strongest_attribute import STRONGEST_ATTRIBUTE

PRELIMINARY_STEPS = (ROW_COUNTS, NARROWER_BOUNDS, STRONGEST_ATTRIBUTE, MEDIAN_BINS, DRAWN_BINS)
