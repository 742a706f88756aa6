"""The finished forest: JSON, rules, storage, evaluation, effects, charts."""
