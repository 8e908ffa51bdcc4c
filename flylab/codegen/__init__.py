"""LLVM IR to ISA: code generation, assembly text as data, loadable code objects."""
