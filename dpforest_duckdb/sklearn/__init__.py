"""A differentially private forest as a scikit-learn classifier (the extra `sklearn`)."""

from dpforest_duckdb.sklearn.classifier import DPForestClassifier

__all__ = ["DPForestClassifier"]
