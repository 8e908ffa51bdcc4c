"""The operation table: every module here has ROWS, DECODERS (for what is no row), or both."""
