"""From released figures to votes. Nothing here reads private numbers, so it costs no budget."""
