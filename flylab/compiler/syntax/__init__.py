"""The rewriting of Python's syntax: early exits made plain, which names live where, and the hooks for control flow."""
