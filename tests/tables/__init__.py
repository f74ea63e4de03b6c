"""Tests of tables and features."""
