"""The recipes of this package."""
