//! The memory allocator of the program, of the benchmarks that measure it, and of the longest tests. Threads allocate and free
//! each other's blocks of every size, and jemalloc does that with less processor time than glibc.
//! `docs/decisions/0015-allocator.md` has the figures.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One arena: a block that one thread frees is reused by another. No thread caches blocks larger than 4 KiB. Unused memory
/// returns to the system within a second. The allocator reads a text that ends with a zero byte (jemalloc(3), `malloc_conf`).
#[expect(unsafe_code, reason = "the name under which the allocator looks for its settings")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &u8 = {
    const TEXT: &[u8] = b"dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:1,lg_tcache_max:12\0";
    &TEXT[0]
};
