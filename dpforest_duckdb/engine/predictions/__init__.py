"""Scored rows of tables, queries, DataFrames and files, and where they may be written."""
