"""Compilations on disk: their names, their files, and how they are written and read."""
