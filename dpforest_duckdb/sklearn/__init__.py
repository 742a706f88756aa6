"""A differentially private forest as a scikit-learn classifier (the extra `sklearn`)."""

try:
    from dpforest_duckdb.sklearn.classifier import DPForestClassifier
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ModuleNotFoundError(
        "DPForestClassifier needs scikit-learn: install it with "
        "pip install 'dpforest-duckdb[sklearn]'.",
        name=error.name,
    ) from None

__all__ = ["DPForestClassifier"]
