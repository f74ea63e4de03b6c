"""Tests of suffice.web."""
