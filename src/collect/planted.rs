//! Bugs planted on purpose, to show that the checkers catch them. No build but the library's own tests has any.

/// A bug that the exhaustive checker must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    NoPad,
    NoAnchors,
    TrustHasMore,
    SetDedupe,
    SingleWalk,
}

#[cfg(test)]
thread_local! {
    pub static CURRENT: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether `bug` is planted.
#[cfg(test)]
pub fn is(bug: Bug) -> bool {
    CURRENT.get() == Some(bug)
}

#[cfg(not(test))]
pub const fn is(_: Bug) -> bool {
    false
}
