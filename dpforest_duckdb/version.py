"""The version of this package, for models, the ledger and the command line."""

__version__ = "0.2.0.dev0"
