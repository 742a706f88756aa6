"""From released figures to votes, at no cost.

Nothing here reads private numbers but `plain_ahead`, whose result a learner releases with noise.
"""
