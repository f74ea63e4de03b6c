"""Tests of labelling projects."""
