"""The public domain: what may be known about a table without reading a row.

Each attribute has a fixed list of *cells*: its bins or categories in public order, then a cell
"other" for values outside the domain, then one for NULL if it is declared nullable. Training,
scoring and Python use the same cells.
"""

from dpforest_duckdb.domain.attribute import Attribute
from dpforest_duckdb.domain.domain import Domain

__all__ = ["Attribute", "Domain"]
