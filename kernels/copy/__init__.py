"""Copies: data movement alone."""
