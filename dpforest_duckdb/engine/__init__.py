"""Engines: where the rows are. An engine runs the SQL of each step and returns counts."""
