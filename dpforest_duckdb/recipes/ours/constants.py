"""The ten constants of `auto` that were varied to see what other values are worth.

They were set by hand on public tables, all of them together. `docs/constants.md` shows what other
values are worth, with standard errors, and what is lost on a table that is left out. Fixed numbers
that were not varied, such as the six classes from which class means are used, are in `auto_rules`
and in the learners; `docs/auto.md` lists them.

The strength is n·ε: the rows in a count divided by the noise in it. The signal is n divided by the
noise of a sweep of boosting and by √classes.
"""

from __future__ import annotations

# Standard deviations of its noise that are taken off the noisy n: a forest that is too large for
# the rows loses more than one that is too small.
CAUTION = 0.75

# How many attributes get a table. Let t = TABLES · strength / √classes. The number K is the smaller
# of √t / 2 and t^(2/3) / 4. All get one if that leaves out one at most, or with two classes half of
# them. K is smaller if some classes are rare, or if one attribute leaves little unexplained.
# Numeric attributes get t / K bins.
TABLES = 0.18

# Percent of a budget for the choice of attributes; the rest is for their tables. With three classes
# or more, the choice gets a quarter less.
CHOICE = 40

CHECK = 10  # percent of ε for a histogram of two sums, and for a choice of models by few rows

# Each leaf of a greedy tree needs this strength.
# With a δ, boosting of several classes has a second sweep from this signal on.
# `auto_rules.signal_of_two_classes` is three times this signal. With a δ, boosting of two classes
# has a second sweep from there on. Without one, it starts there. Private medians beside a greedy
# tree start there too. With a δ, the signal is first multiplied by how `mixed` the classes are.
ENOUGH = 100

# From this strength on, rows choose a model, and a choice costs less than CHECK percent.
# With a δ, boosting has finer bins from this signal on, multiplied by how `mixed` the classes are.
# Without one, boosting of two classes has random trees from this signal on. Boosting of several
# classes starts, with random trees, at three times this signal.
AMPLE = 1000

# With a δ, boosting starts at a signal of CLEAR · classes, of which at most six count. If most
# attributes are not numeric, it starts at three times that signal.
CLEAR = 19

CLEAN = 0.12  # the most noise in a joint figure, in parts of the rows of a class, or of all rows
ROOT_NOISE = 1.2  # the most noise in a sum of log-odds below a root
LEAST_ROWS = 300  # the least n assumed when it is decided whether few rows get any tables
