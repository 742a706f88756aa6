"""The SQL that scores a table: one SELECT, in the dialect of an engine."""
