"""From released figures to votes, at no cost. Nothing here reads private numbers."""
