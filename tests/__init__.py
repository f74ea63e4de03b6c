"""Tests of suffice."""
