"""Tests of sentences, number formats and charts."""
