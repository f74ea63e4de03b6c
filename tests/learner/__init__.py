"""Tests of suffice.learner."""
