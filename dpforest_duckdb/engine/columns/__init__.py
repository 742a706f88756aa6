"""How columns are read whose types no table declares."""
