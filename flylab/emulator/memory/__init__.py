"""Handlers of memory: addresses, checks and moves in global, private, buffer and LDS memory."""
