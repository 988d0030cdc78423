//! `annals`: arguments, then tracing, then the verb, then the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = annals::cli::parse();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if arguments.collects() {
        keep_memory_small();
    }
    annals::cli::start_logging(&arguments);
    annals::cli::run(arguments).into()
}

/// Pages and rows are made on one thread and let go on another. With the defaults of glibc, an arena a thread, the process
/// grew to three times what was in use; with two arenas, and large blocks given back at once, it does not. Processes that only
/// ask go without: a month's pack took 4 to 9 % longer with them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_memory_small() {
    const BLOCK_BYTES: libc::c_int = 256 << 10;
    const TRIM_BYTES: libc::c_int = 128 << 10;
    let settings =
        [(libc::M_ARENA_MAX, 2), (libc::M_MMAP_THRESHOLD, BLOCK_BYTES), (libc::M_TRIM_THRESHOLD, TRIM_BYTES)];
    for (name, value) in settings {
        // What cannot be set stays as it is.
        #[expect(unsafe_code, reason = "a foreign function; it takes two numbers and touches no memory of ours")]
        let _ = unsafe { libc::mallopt(name, value) };
    }
    // A thread that cannot be started leaves the process larger, and nothing else.
    let _ = std::thread::Builder::new().name("give-back".to_owned()).spawn(give_back);
}

/// Blocks that are let go between blocks in use are not given back by themselves: in a backfill of four million events they
/// made a tenth of the process at its peak. Ten million took 92 s and up to 185 MiB with blocks of a megabyte given back at once,
/// 100 s and 165 MiB with these, 101 s and 170 MiB with 128 KiB.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
    loop {
        #[expect(clippy::disallowed_methods, reason = "what the allocator holds is no matter of the service's time")]
        std::thread::sleep(PAUSE);
        #[expect(unsafe_code, reason = "a foreign function; it gives back what no block lies in")]
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
