"""The roof: a request becomes a debit, a run and a forest."""
