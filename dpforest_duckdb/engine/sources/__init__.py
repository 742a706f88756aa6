"""Rows that are in no table: files, DataFrames and queries."""
