"""From what was released to votes: free of charge."""
