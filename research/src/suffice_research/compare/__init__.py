"""Comparison of stopping rules: every rule on the same recorded runs, and the cost of each stop."""
