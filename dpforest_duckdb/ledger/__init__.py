"""The ledger of budgets: the file, and the account of one table."""
