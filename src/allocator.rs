//! The memory of the program, and of the benchmarks that measure it.
//!
//! Pages and rows are made on one thread and let go on another, and a commit's blocks are of every size. Glibc, held to 200 MB by
//! two arenas and by giving large blocks back at once, spent a third of a backfill's processor time on giving memory back and
//! asking for it again: ten million events took 83 s and 176 MiB. With jemalloc they took 63 s and 180 MiB
//! (`cargo bench --bench backfill -- --full`).

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One arena, as what one thread lets go is what another asks for next; no thread keeps blocks of over 4 KiB to itself; what
/// nobody asked for again is given back within a second. Ten million events took 74 s and 175 MiB where it was given back within
/// 100 ms, 64 s and 181 MiB with these. With the allocator's own settings two million peaked at 340 MiB.
///
/// The allocator reads a pointer to a text that ends with a zero byte (jemalloc(3), `malloc_conf`).
#[expect(unsafe_code, reason = "the name under which the allocator looks for its settings")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &u8 = {
    const TEXT: &[u8] = b"dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:1,lg_tcache_max:12\0";
    &TEXT[0]
};
