//! `annals`: arguments, then tracing, then the verb, then the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    keep_memory_small();
    let arguments = annals::cli::parse();
    annals::cli::start_logging(&arguments);
    annals::cli::run(arguments).into()
}

/// Pages and rows are made on one thread and let go on another. With the defaults of glibc, an arena a thread, the process
/// grew to three times what was in use; with two arenas, and large blocks given back at once, it does not.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory_small() {
    const BLOCK_BYTES: libc::c_int = 128 * 1024;
    let settings =
        [(libc::M_ARENA_MAX, 2), (libc::M_MMAP_THRESHOLD, BLOCK_BYTES), (libc::M_TRIM_THRESHOLD, BLOCK_BYTES)];
    for (name, value) in settings {
        // What cannot be set stays as it is.
        #[expect(unsafe_code, reason = "a foreign function; it takes two numbers and touches no memory of ours")]
        let _ = unsafe { libc::mallopt(name, value) };
    }
}
