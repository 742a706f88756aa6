"""Where the rows are: an Engine runs the steps and returns counts, a Dialect writes their SQL."""
