//! Rules for failing requests.

use std::time::Duration;

use crate::Kind;
use crate::request_head::RequestHead;

/// The effect on a request that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The server carries the request out, then closes the connection without an answer.
    AnswerLost,
    /// The server neither carries the request out nor answers: the connection stays open until the client ends it.
    Unanswered,
    /// The server carries the request out and never answers.
    AppliedUnanswered,
    /// The server carries the request out and answers this status.
    AppliedThenRefused(u16),
    /// The server answers this status, optionally with `Retry-After` in seconds, and does nothing.
    Refused(u16, Option<u64>),
    /// The server closes the connection after this many bytes of the request's body, and does nothing.
    CutUpload(usize),
    /// The server closes the connection after this many bytes of the answer's body.
    CutDownload(usize),
    /// The server closes the connection and holds the write back until the test applies it. Only for [`Kind::Put`].
    Late,
    /// A list has at most this many keys a page.
    ShortPages(usize),
    /// The server delays the answer.
    Slow(Duration),
    /// A conditional create overwrites, as in a store that ignores the condition.
    ConditionIgnored,
    /// A list omits this many of the newest writes.
    Behind(u64),
}

/// One effect and its requests: those of its kinds whose key (or a list's prefix) contains its text.
#[derive(Debug, Clone)]
pub struct Rule {
    effect: Effect,
    kinds: Vec<Kind>,
    key: String,
    parameter: Option<&'static str>,
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
    /// A rule for every request, until another method narrows it.
    pub fn new(effect: Effect) -> Self {
        Self { effect, kinds: Vec::new(), key: String::new(), parameter: None, when: When::Always, seen: 0 }
    }

    /// Adds a kind: the rule then matches only the named kinds.
    #[must_use]
    pub fn on(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Matches only requests whose key contains `part`.
    #[must_use]
    pub fn key(mut self, part: &str) -> Self {
        part.clone_into(&mut self.key);
        self
    }

    /// Matches only requests with this parameter, such as `versions`.
    #[must_use]
    pub fn with(mut self, parameter: &'static str) -> Self {
        self.parameter = Some(parameter);
        self
    }

    /// Matches only the `number`th of these requests, from 1.
    #[must_use]
    pub fn nth(mut self, number: u64) -> Self {
        self.when = When::Among(number..=number);
        self
    }

    /// Matches only the first `count` of these requests.
    #[must_use]
    pub fn first(mut self, count: u64) -> Self {
        self.when = When::Among(1..=count);
        self
    }

    /// Matches the `number`th of these requests and every later one.
    #[must_use]
    pub fn from(mut self, number: u64) -> Self {
        self.when = When::Among(number..=u64::MAX);
        self
    }

    /// Matches this many in a hundred of these requests, which the seed selects.
    #[must_use]
    pub fn chance(mut self, percent: u8, seed: u64) -> Self {
        self.when = When::Chance { percent, random: fastrand::Rng::with_seed(seed) };
        self
    }

    fn strikes(&mut self, head: &RequestHead) -> bool {
        let is_meant = self.kinds.is_empty() || self.kinds.contains(&head.kind);
        let has_parameter = self.parameter.is_none_or(|name| head.param(name).is_some());
        if !is_meant || !has_parameter || !head.subject().contains(&self.key) {
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

    /// The effects of every rule that matches the request.
    pub(crate) fn effects(&mut self, head: &RequestHead) -> Vec<Effect> {
        let rules = self.rules.iter_mut();
        rules.filter_map(|rule| rule.strikes(head).then(|| rule.effect.clone())).collect()
    }

    /// Counts effects that have taken place.
    pub(crate) fn count(&mut self, effects: usize) {
        self.struck += effects as u64;
    }
}
