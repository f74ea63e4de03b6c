"""Texts, numbers and charts for users, from plain values: this package does not import other classes of suffice."""
