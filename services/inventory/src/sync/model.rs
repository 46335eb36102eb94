//! The concurrent map as the model sees it: a map with one lock.
//!
//! That is the worst that the real one can do. Its keys are spread over shards by chance, so any two may share one, and
//! a reader who comes back for a second look waits for a writer who waits for the first: here all keys share a shard,
//! and readers wait for each other. Whoever holds a guard while asking the same map for another one is stuck at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::ops::{Deref, DerefMut};

use super::{Mutex, MutexGuard};

/// Has what this crate calls of `dashmap::DashMap`.
#[derive(Debug, Default)]
pub(crate) struct DashMap<K, V, S>(Mutex<HashMap<K, V, S>>);

impl<K: Eq + Hash + Clone, V, S: BuildHasher> DashMap<K, V, S> {
    pub(crate) fn with_capacity_and_hasher_and_shard_amount(size: usize, hasher: S, _shards: usize) -> Self {
        Self(Mutex::new(HashMap::with_capacity_and_hasher(size, hasher)))
    }

    pub(crate) fn get(&self, key: &K) -> Option<Guard<'_, K, V, S>> {
        let map = self.0.lock().unwrap();
        map.contains_key(key).then(|| Guard { map, key: key.clone() })
    }

    pub(crate) fn get_mut(&self, key: &K) -> Option<Guard<'_, K, V, S>> {
        self.get(key)
    }

    pub(crate) fn insert(&self, key: K, value: V) -> Option<V> {
        self.0.lock().unwrap().insert(key, value)
    }

    pub(crate) fn entry(&self, key: K) -> Entry<'_, K, V, S> {
        Entry(Guard { map: self.0.lock().unwrap(), key })
    }

    pub(crate) fn remove_if(&self, key: &K, wanted: impl FnOnce(&K, &V) -> bool) -> Option<(K, V)> {
        let mut map = self.0.lock().unwrap();
        let found = map.get(key).is_some_and(|value| wanted(key, value));
        if found { map.remove_entry(key) } else { None }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = V>
    where
        V: Clone,
    {
        self.0.lock().unwrap().values().cloned().collect::<Vec<_>>().into_iter()
    }
}

/// Holds the map and shows one value.
pub(crate) struct Guard<'a, K, V, S> {
    map: MutexGuard<'a, HashMap<K, V, S>>,
    key: K,
}

impl<K: Eq + Hash, V, S: BuildHasher> Deref for Guard<'_, K, V, S> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.map[&self.key]
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> DerefMut for Guard<'_, K, V, S> {
    fn deref_mut(&mut self) -> &mut V {
        self.map.get_mut(&self.key).unwrap()
    }
}

/// A place that is taken or free.
pub(crate) struct Entry<'a, K, V, S>(Guard<'a, K, V, S>);

impl<'a, K: Eq + Hash + Clone, V: Default, S: BuildHasher> Entry<'a, K, V, S> {
    pub(crate) fn or_default(mut self) -> Guard<'a, K, V, S> {
        let key = self.0.key.clone();
        self.0.map.entry(key).or_default();
        self.0
    }
}
