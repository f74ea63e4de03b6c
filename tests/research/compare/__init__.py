"""Tests of the comparison of rules."""
