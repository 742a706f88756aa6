"""The version of this package, for models, the ledger and the command line."""

__version__ = "0.1.0"
