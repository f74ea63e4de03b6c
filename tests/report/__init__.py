"""Tests of suffice.report."""
