"""Tests of suffice.experiments."""
