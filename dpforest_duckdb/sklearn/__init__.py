"""A differentially private forest as a scikit-learn classifier (the extra `sklearn`)."""

try:
    from dpforest_duckdb.sklearn.classifier import DPForestClassifier
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "DPForestClassifier needs scikit-learn: run pip install scikit-learn.",
        name=error.name,
    ) from None

__all__ = ["DPForestClassifier"]
