//! The parsers never panic, name each error, and read their own output back.
//!
//! `ANNALS_LONG=1 cargo test --release --test fuzz -- --nocapture` gives each parser a minute; `ANNALS_FUZZ_SECONDS`
//! and `ANNALS_FUZZ_SEED` set other values. The test prints each failing input and the file for it: every later run
//! then tries this file.
#![allow(clippy::print_stdout, reason = "the test prints how much it tried")]

#[path = "fuzz/mod.rs"]
mod parsers;

macro_rules! parsers {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                parsers::hold(stringify!($name));
            }
        )*

        #[test]
        fn every_parser_is_tried() {
            assert_eq!(parsers::names(), [$(stringify!($name)),*]);
        }
    };
}

parsers! { page roster ledger heads path config cron date report sql }
