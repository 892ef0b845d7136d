//! The `comer` program, which is all in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    comer_cli::main()
}
