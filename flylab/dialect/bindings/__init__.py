"""Where MLIR's Python bindings look for the classes of the Fly dialect."""
