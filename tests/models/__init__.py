"""Tests of suffice.models."""
