"""How a forest is grown from coded rows: level by level, by boosting, or by joint tables."""
