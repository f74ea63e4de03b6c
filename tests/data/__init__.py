"""Tests of suffice.data."""
