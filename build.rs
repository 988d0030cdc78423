//! Lets the programs find the SQL engine's shared library where it was linked from.

fn main() {
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    if let Ok(dir) = std::env::var("DUCKDB_LIB_DIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    }
}
