//! The program `mcpgate`.

fn main() {}
