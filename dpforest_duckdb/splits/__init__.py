"""Candidate splits and what they are worth: pure functions of count arrays."""
