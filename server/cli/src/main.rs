//! The command `acp-server`: the reference agent on standard input and output, or over HTTP.

use std::process::ExitCode;

use acp_server_cli::Args;
use clap::Parser;

/// Returns unused memory to the system within seconds. The allocator of glibc keeps that of a burst of clients.
#[cfg(all(feature = "jemalloc", target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    acp_server_cli::main(Args::parse())
}
