"""Tests of suffice.acquisition."""
