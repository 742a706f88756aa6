"""The finished forest: JSON, SQL, rules, storage, evaluation, charts."""
