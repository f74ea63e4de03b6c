"""Tests of suffice.posteriors."""
