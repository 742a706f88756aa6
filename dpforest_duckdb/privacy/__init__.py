"""Mechanisms, accounting and randomness: everything that a proof of privacy needs."""
