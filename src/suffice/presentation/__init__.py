"""Texts, numbers and charts for people, from plain values: this package knows no other class of suffice."""
