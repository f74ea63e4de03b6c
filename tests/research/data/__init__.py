"""Tests of the research data sets."""
