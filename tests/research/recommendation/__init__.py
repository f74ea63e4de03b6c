"""Tests of the recommendation."""
