"""Tests of suffice.engines."""
