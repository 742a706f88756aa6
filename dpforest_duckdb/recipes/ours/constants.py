"""The constants by which `auto` decides, all of them.

They were set by hand on public tables, all of them together. `docs/constants.md` shows what other
values are worth, with standard errors, and what is lost on a table that is left out.

The strength is n·ε: the rows in a count divided by the noise in it. The signal is n divided by the
noise of a sweep of boosting and by √classes.
"""

from __future__ import annotations

CAUTION = 0.75  # standard deviations below the noisy n; too large a forest loses more
ATTRIBUTES = 0.22  # times √(strength / √classes): how many attributes; all, if that is half
BINS = 0.18  # times strength / attributes / √classes: how many bins
CHOICE = 40  # percent of the budget of chosen attributes, for the choice; the rest is for tables
CHECK = 10  # percent of ε for a histogram of sums, and for a choice of models by few rows
COMPARE = 400  # the strength from which two sums of log-odds are fitted to the rows
MODELS = 1000  # the strength from which the rows choose a model; above it choices cost less
CLEAN = 0.12  # the most noise in a joint figure, in parts of the rows of a class, or of all rows
MEANS = 3  # the strength, in parts of positions times classes, from which class means are released
FEW_FIGURES = 30  # the most joint figures for which ROUGH is allowed
ROUGH = 0.7  # the same if there are few joint figures
LEAST_ROWS = 300  # n counts as at least so many where noise is compared with it
ROOT_NOISE = 1.2  # the most noise in a sum of log-odds below a root
ROWS_PER_LEAF = 100  # n·ε that a leaf of a greedy tree should hold to be above its noise
CLEAR = 10  # the signal, in parts of √classes, from which boosting a dozen numbers pays with a δ
CLEAR_PURE = 300  # the signal from which boosting numbers pays without a δ; 3 times for categories
MANY = 100  # with a δ, the signal from which a second sweep pays, and half of the budget for trees
DEEP = 1250  # the signal from which deep random trees on finer bins pay; without a δ none pay below
