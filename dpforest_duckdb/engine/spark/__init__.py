"""Spark as the engine: training where the rows are."""
