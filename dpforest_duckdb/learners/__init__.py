"""Learners: they grow a forest from coded rows, level by level, by boosting, or by joint tables."""
