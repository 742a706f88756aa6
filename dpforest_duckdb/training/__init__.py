"""From a request to a debit, a run and a forest."""
