"""Numerical functions that keep full precision: special functions and Cholesky factors."""
