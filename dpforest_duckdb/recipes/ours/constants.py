"""The constants by which `auto` decides, all of them.

They were set by hand on public tables, all of them together. `docs/constants.md` shows what other
values are worth, with standard errors, and what is lost on a table that is left out.

The strength is n·ε: the rows in a count divided by the noise in it. The signal is n divided by the
noise of a sweep of boosting and by √classes.
"""

from __future__ import annotations

CAUTION = 0.75  # standard deviations below the noisy n; too large a forest loses more
TABLES = 0.18  # times strength / √classes: √ of it / 2 attributes, and it / attributes bins
CHOICE = 40  # percent of the budget of chosen attributes, for the choice; the rest is for tables
CHECK = 10  # percent of ε for a histogram of sums, and for a choice of models by few rows
ENOUGH = 100  # the strength of a leaf of a greedy tree; the signal of a step of boosting
AMPLE = 1000  # the strength from which the rows choose a model; the signal for deep random trees
CLEAR = 10  # the signal, in parts of √classes, from which boosting a dozen numbers pays with a δ
CLEAN = 0.12  # the most noise in a joint figure, in parts of the rows of a class, or of all rows
ROOT_NOISE = 1.2  # the most noise in a sum of log-odds below a root
LEAST_ROWS = 300  # n counts as at least so many where noise is compared with it
