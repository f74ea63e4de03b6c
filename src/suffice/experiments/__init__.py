"""Labelling experiments: a simulated person, a small model, a rule that says when it is enough."""
