//! Which request fails, and how.

use std::time::Duration;

use crate::Kind;
use crate::asked::Asked;

/// What happens to a request that a rule strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It is carried out; then the connection is closed without an answer.
    AnswerLost,
    /// It is not carried out, and never answered: the connection stays open until the client ends it.
    Unanswered,
    /// It is carried out, and never answered.
    AppliedUnanswered,
    /// It is carried out; then this status is answered.
    AppliedThenRefused(u16),
    /// It is not carried out: this status, with `Retry-After` in seconds where that is given.
    Refused(u16, Option<u64>),
    /// The connection is closed after so many bytes of the body; nothing is carried out.
    CutUpload(usize),
    /// The connection is closed after so many bytes of the answer's body.
    CutDownload(usize),
    /// The connection is closed; the write is held back until the test lets it land. For [`Kind::Put`].
    Late,
    /// A list brings at most so many keys a page.
    ShortPages(usize),
    /// The answer waits.
    Slow(Duration),
    /// A create that should be refused overwrites, as in a store that ignores the condition.
    ConditionIgnored,
    /// A list does not know the newest so many writes.
    Behind(u64),
}

/// One effect, and the requests that it strikes: those of its kinds whose key (a list: whose prefix) holds its text.
#[derive(Debug, Clone)]
pub struct Rule {
    effect: Effect,
    kinds: Vec<Kind>,
    key: String,
    when: When,
    seen: u64,
}

#[derive(Debug, Clone)]
enum When {
    Always,
    Among(std::ops::RangeInclusive<u64>),
    Chance { percent: u8, random: fastrand::Rng },
}

impl Rule {
    /// Strikes every request, until it is told otherwise.
    pub fn new(effect: Effect) -> Self {
        Self { effect, kinds: Vec::new(), key: String::new(), when: When::Always, seen: 0 }
    }

    /// Only requests of this kind, and of those named before.
    #[must_use]
    pub fn on(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Only requests whose key holds `part`.
    #[must_use]
    pub fn key(mut self, part: &str) -> Self {
        part.clone_into(&mut self.key);
        self
    }

    /// Of those, the `number`th alone, counted from 1.
    #[must_use]
    pub fn nth(mut self, number: u64) -> Self {
        self.when = When::Among(number..=number);
        self
    }

    /// Of those, the first `count`.
    #[must_use]
    pub fn first(mut self, count: u64) -> Self {
        self.when = When::Among(1..=count);
        self
    }

    /// Of those, the `number`th and every later one.
    #[must_use]
    pub fn from(mut self, number: u64) -> Self {
        self.when = When::Among(number..=u64::MAX);
        self
    }

    /// Of those, so many of a hundred, as the seed draws them.
    #[must_use]
    pub fn chance(mut self, percent: u8, seed: u64) -> Self {
        self.when = When::Chance { percent, random: fastrand::Rng::with_seed(seed) };
        self
    }

    fn strikes(&mut self, asked: &Asked) -> bool {
        let is_meant = self.kinds.is_empty() || self.kinds.contains(&asked.kind);
        if !is_meant || !asked.subject().contains(&self.key) {
            return false;
        }
        self.seen += 1;
        match &mut self.when {
            When::Always => true,
            When::Among(numbers) => numbers.contains(&self.seen),
            When::Chance { percent, random } => random.u8(..100) < *percent,
        }
    }
}

/// The rules of a server.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Vec<Rule>,
    struck: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn struck(&self) -> u64 {
        self.struck
    }

    /// The effects of every rule that strikes the request.
    pub(crate) fn effects(&mut self, asked: &Asked) -> Vec<Effect> {
        let rules = self.rules.iter_mut();
        let effects: Vec<Effect> = rules.filter_map(|rule| rule.strikes(asked).then(|| rule.effect.clone())).collect();
        self.struck += effects.len() as u64;
        effects
    }
}
