"""Tests of numerical functions."""
