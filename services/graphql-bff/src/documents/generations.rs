//! A bounded cache that forgets what was not used lately, without a list of uses to keep in order.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: what is used is kept in the young one; when that is full it becomes the old one, and what was old
/// and not used since is forgotten. Each generation is bounded in number and in weight.
pub(crate) struct Generations<K, V> {
    young: Generation<K, V>,
    old: Generation<K, V>,
    number: usize,
    weight: usize,
}

struct Generation<K, V> {
    values: HashMap<K, (V, usize)>,
    weight: usize,
}

impl<K, V> Default for Generation<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), weight: 0 }
    }
}

impl<K: Eq + Hash, V> Generations<K, V> {
    /// Keeps at least the latest `number` values if they weigh up to `weight`, and at most twice that.
    pub(crate) fn new(number: usize, weight: usize) -> Self {
        Self { young: Generation::default(), old: Generation::default(), number, weight }
    }

    /// The value, and whether it will be forgotten soon unless it is renewed.
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<(&V, bool)>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let young = self.young.values.get(key).map(|(value, _)| (value, false));
        young.or_else(|| self.old.values.get(key).map(|(value, _)| (value, true)))
    }

    /// Keeps the value for another generation, if it is still there.
    pub(crate) fn renew<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some((key, (value, weight))) = self.old.values.remove_entry(key) {
            self.insert(key, value, weight);
        }
    }

    /// Keeps a value that weighs this much.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        if self.young.values.len() >= self.number || self.young.weight.saturating_add(weight) > self.weight {
            self.old = std::mem::take(&mut self.young);
        }
        if weight <= self.weight
            && let None = self.young.values.insert(key, (value, weight))
        {
            self.young.weight += weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut kept = Generations::new(10, 1000);
        for n in 0..100 {
            if let Some((_, stale)) = kept.get(&0)
                && stale
            {
                kept.renew(&0);
            }
            kept.insert(n, n, 1);
            assert!(kept.young.values.len() + kept.old.values.len() <= 20);
        }
        assert!(kept.get(&0).is_some());
        assert!(kept.get(&50).is_none());
        assert!(kept.get(&99).is_some());
    }

    #[test]
    fn weight_is_bounded() {
        let mut kept = Generations::new(1000, 100);
        for n in 0..1000 {
            kept.insert(n, (), 30);
            assert!(kept.young.values.len() <= 3 && kept.old.values.len() <= 3);
        }
        kept.insert(5000, (), 101);
        assert!(kept.get(&5000).is_none());
    }
}
