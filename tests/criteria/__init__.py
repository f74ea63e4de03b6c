"""Tests of suffice.criteria."""
