//! The memory of the program, and of the benchmarks that measure it.
//!
//! Pages and rows are made on one thread and let go on another, and a commit's blocks are of every size. Glibc, held to 200 MB by
//! two arenas and by giving large blocks back at once, spent a third of a backfill's processor time on giving memory back and
//! asking for it again: ten million events took 83 s and 176 MiB. With jemalloc and these settings they took 63 s and 180 MiB
//! (`cargo bench --bench backfill -- --full`).

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One arena, as what one thread lets go is what another asks for next; no thread keeps blocks of over 4 KiB to itself; what
/// nobody asked for again is given back within 100 ms. Eleven million events took 62 s and 190 MiB with 200 ms and blocks of
/// 8 KiB, 63 s and 184 MiB with these, 66 s and 179 MiB with 50 ms, 71 s and 168 MiB where blocks of half a megabyte were given
/// back at once (`oversize_threshold`). With the allocator's own settings two million peaked at 340 MiB, with these at 176.
///
/// The allocator reads a pointer to a text that ends with a zero byte (jemalloc(3), `malloc_conf`).
#[expect(unsafe_code, reason = "the name under which the allocator looks for its settings")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &u8 = {
    const TEXT: &[u8] = b"dirty_decay_ms:100,muzzy_decay_ms:0,narenas:1,lg_tcache_max:12\0";
    &TEXT[0]
};
