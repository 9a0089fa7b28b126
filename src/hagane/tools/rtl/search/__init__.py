"""Tests that meet the points of a circuit, and proofs that no test can."""
