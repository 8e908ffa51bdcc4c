"""The assembly language: what compilers print and people write, read into instructions, data and symbols."""
