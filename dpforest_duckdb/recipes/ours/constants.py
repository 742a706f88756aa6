"""The ten constants of `auto` that were varied to see what other values are worth.

They were set by hand on public tables, all of them together. `docs/constants.md` shows what other
values are worth, with standard errors, and what is lost on a table that is left out. Fixed numbers
that were not varied, such as the six classes from which class means are used, are in `auto_rules`
and in the learners; `docs/auto.md` lists them.

The strength is n·ε: the rows in a count divided by the noise in it. The signal is n divided by the
noise of a sweep of boosting and by √classes.
"""

from __future__ import annotations

CAUTION = 0.75  # standard deviations below the noisy n; too large a forest loses more
# with t = TABLES · strength / √classes: √t / 2 attributes get a table, or t^(2/3) / 4 if that is
# fewer, or all if that is all but one, or with two classes half of them, and numeric ones have
# t / attributes bins; fewer attributes if classes are rare, or if one leaves little unexplained
TABLES = 0.18
# percent of a budget for the choice of attributes, a quarter less with three classes or more; the
# rest is for their tables
CHOICE = 40
CHECK = 10  # percent of ε for a histogram of two sums, and for a choice of models by few rows
# the strength of a leaf of a greedy tree, and with a δ the signal for a second sweep of boosting,
# three times that with two classes; without a δ, boosting of two classes starts at three times
# ENOUGH, where private medians pay too
ENOUGH = 100
# the strength from which rows choose a model, and with a δ the signal for finer bins; without one
# random trees of boosting start at AMPLE, or with several classes at three times AMPLE, where
# boosting of several classes starts too
AMPLE = 1000
# times the classes, at most six: the signal from which boosting starts with a δ, if most attributes
# are numeric; three times that otherwise
CLEAR = 19
CLEAN = 0.12  # the most noise in a joint figure, in parts of the rows of a class, or of all rows
ROOT_NOISE = 1.2  # the most noise in a sum of log-odds below a root
LEAST_ROWS = 300  # the least n assumed when it is decided whether few rows get any tables
