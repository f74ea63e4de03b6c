"""Tests of the research code."""
