//! Lets the programs find the SQL engine's shared library: beside an installed program, or in the directory of the build. Also
//! lists the reports of `queries/`, which the program embeds.

use std::path::Path;

fn main() {
    embed_queries();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    println!("cargo::rerun-if-env-changed=DUCKDB_DOWNLOAD_LIB");
    println!("cargo::rerun-if-env-changed=ANNALS_FOR_OTHERS");
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
    let downloads = std::env::var_os("DUCKDB_DOWNLOAD_LIB").is_some_and(|value| value != "0");
    assert!(
        !downloads,
        "DUCKDB_DOWNLOAD_LIB takes a library that nothing checks: use `make build`, or set DUCKDB_LIB_DIR"
    );
    match std::env::var("DUCKDB_LIB_DIR") {
        // A program for other machines looks only beside itself: another user can own a directory of this name there.
        Ok(_) if std::env::var_os("ANNALS_FOR_OTHERS").is_some() => {}
        Ok(directory) => println!("cargo::rustc-link-arg=-Wl,-rpath,{directory}"),
        Err(_) => println!(
            "cargo::warning=if the linker does not find libduckdb: use `make build`, or `cargo build --release \
             --features bundled`, or set DUCKDB_LIB_DIR"
        ),
    }
}

#[allow(clippy::disallowed_methods, reason = "build outputs need not be durable")]
/// Writes `EMBEDDED`: the name and the text of each report, sorted by name.
fn embed_queries() {
    println!("cargo::rerun-if-changed=queries");
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&root).join("queries");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("queries/ can be read").file_name().into_string().expect("names are text"))
        .filter(|name| name.ends_with(".sql"))
        .collect();
    names.sort();
    // Absolute paths of the current checkout: another checkout can share the target directory.
    let text = |name: &String| {
        format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))", format!("/queries/{name}"))
    };
    let each = names.iter().map(|name| format!("    ({name:?}, {}),\n", text(name)));
    let list = format!("const EMBEDDED: &[(&str, &str)] = &[\n{}];\n", each.collect::<String>());
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("queries.rs"), list).expect("OUT_DIR can be written");
}
