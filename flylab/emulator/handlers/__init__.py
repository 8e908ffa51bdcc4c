"""How an instruction becomes machine code: LLVM IR, what computes, what is compiled and kept on disk."""
