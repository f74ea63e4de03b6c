"""Tests of suffice.cli."""
