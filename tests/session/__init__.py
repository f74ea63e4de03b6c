"""Tests of suffice.session."""
