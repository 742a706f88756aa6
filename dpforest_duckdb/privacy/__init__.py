"""Mechanisms, accounting and the ledger: everything that stands between rows and a release."""
