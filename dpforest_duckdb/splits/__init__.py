"""Candidate splits, their utilities, and the draw of one: functions of count arrays."""
