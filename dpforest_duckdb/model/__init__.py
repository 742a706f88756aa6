"""The finished forest: its JSON, its SQL, its rules, where it is stored, how good it is."""
