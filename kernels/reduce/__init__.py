"""Reductions: many elements in, one number out."""
