//! The texts of one row in one block of memory: a row has a dozen, most of them short.

use std::fmt;
use std::num::NonZeroU32;

/// `N` texts. Each of them can be missing.
#[derive(Clone, PartialEq, Eq)]
pub struct Texts<const N: usize> {
    block: Box<str>,
    /// The end of each text in the block, plus one.
    ends: [Option<NonZeroU32>; N],
}

impl<const N: usize> Texts<N> {
    /// # Panics
    /// If the texts together are longer than 4 GiB. No answer of the service is that long.
    pub fn new(texts: [Option<&str>; N]) -> Self {
        let mut block = String::with_capacity(texts.iter().flatten().map(|text| text.len()).sum());
        let ends = texts.map(|text| {
            block.push_str(text?);
            let end = u32::try_from(block.len() + 1).ok().and_then(NonZeroU32::new);
            Some(end.expect("BUG: texts of one event are shorter than an answer may be"))
        });
        Self { block: block.into(), ends }
    }

    pub fn get(&self, place: usize) -> Option<&str> {
        let end = |end: NonZeroU32| end.get() as usize - 1;
        let start = self.ends[..place].iter().rev().find_map(|other| other.map(end)).unwrap_or(0);
        self.block.get(start..end(self.ends[place]?))
    }

    pub fn all(&self) -> [Option<&str>; N] {
        let mut start = 0;
        self.ends.map(|end| {
            let end = end?.get() as usize - 1;
            self.block.get(std::mem::replace(&mut start, end)..end)
        })
    }
}

impl<const N: usize> Default for Texts<N> {
    fn default() -> Self {
        Self::new([None; N])
    }
}

impl<const N: usize> fmt::Debug for Texts<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Texts;

    proptest! {
        #[test]
        fn texts_round_trip(texts in proptest::array::uniform5(proptest::option::of("[aé\u{1F600}]{0,3}"))) {
            let meant = [0, 1, 2, 3, 4].map(|place: usize| texts[place].as_deref());
            let kept = Texts::new(meant);
            prop_assert_eq!(kept.all(), meant);
            prop_assert_eq!([0, 1, 2, 3, 4].map(|place| kept.get(place)), meant);
            prop_assert_eq!(&kept, &Texts::new(meant));
        }
    }
}
