"""A pipeline as a value: where rows come from, what is done to them, which tables they reach."""
