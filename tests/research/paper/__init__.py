"""Tests of the paper's reproduction."""
