"""Element-wise kernels: one element in, one element out."""
