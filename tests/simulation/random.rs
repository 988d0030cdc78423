//! Random numbers from a seed. Each part of a plan has its own sequence, so a new draw in one part changes no other
//! part.

use super::chance::Chance;

pub struct Draw(Chance);

impl Draw {
    pub fn of(seed: u64, part: &str) -> Self {
        let mixed = part.bytes().fold(seed, |mixed, byte| Chance::scatter(mixed ^ u64::from(byte)));
        Self(Chance::of(mixed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end.max(1))
    }

    /// A number from `from` on and below `to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        let span = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        from + i64::try_from(self.below(span)).unwrap()
    }

    pub fn count(&mut self, from: usize, to: usize) -> usize {
        from + usize::try_from(self.below((to - from) as u64)).unwrap()
    }

    pub fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.count(0, all.len())].clone()
    }
}
