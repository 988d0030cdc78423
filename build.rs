//! Lets the programs find the SQL engine's shared library: beside an installed program, where the build found it, or
//! among what the engine's own build script downloaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    println!("cargo::rerun-if-env-changed=DUCKDB_DOWNLOAD_LIB");
    if std::env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    let origin = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        Ok("windows") => return,
        _ => "$ORIGIN",
    };
    for place in ["/../lib/annals", "/deps", ""] {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{origin}{place}");
    }
    match std::env::var("DUCKDB_LIB_DIR") {
        Ok(directory) => println!("cargo::rustc-link-arg=-Wl,-rpath,{directory}"),
        Err(_) if std::env::var_os("DUCKDB_DOWNLOAD_LIB").is_none_or(|value| value == "0") => println!(
            "cargo::warning=if the linker does not find libduckdb: use `make build`, or `cargo build --release \
             --features bundled`, or set DUCKDB_LIB_DIR"
        ),
        Err(_) => {}
    }
}
