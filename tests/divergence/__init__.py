"""Tests of suffice.divergence."""
