
/// Whether this mutant is on: the variable MUTANT names one. MUTANT=seen writes the mutants that a run reaches into
/// the file MUTANTS_SEEN.
pub fn mutant(number: u32) -> bool {
    static ON: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| match std::env::var("MUTANT") {
        Ok(text) if text == "seen" => u32::MAX,
        Ok(text) => text.parse().expect("MUTANT is a number or `seen`"),
        Err(_) => 0,
    });
    if *ON == u32::MAX {
        see(number);
    }
    *ON == number
}

fn see(number: u32) {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    let seen = &SEEN[number as usize];
    // It usually was; a read is cheaper than a write.
    if !seen.load(Ordering::Relaxed) && !seen.swap(true, Ordering::Relaxed) {
        let path = std::env::var_os("MUTANTS_SEEN").expect("MUTANT=seen needs MUTANTS_SEEN");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file is there");
        file.write_all(format!("{number}\n").as_bytes()).expect("the file can be written");
    }
}
