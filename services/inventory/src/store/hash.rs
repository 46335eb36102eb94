//! How the maps hash: fast, and with a seed of its own for each map, because callers choose the keys.

use std::hash::{BuildHasher, Hasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Builds hashers of one seed.
#[derive(Debug, Clone)]
pub(super) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seeded {
    type Hasher = Chained;

    fn build_hasher(&self) -> Chained {
        Chained(self.0)
    }
}

/// Hashes each part of a key with the hash of the parts before it as the seed.
#[derive(Debug)]
pub(super) struct Chained(u64);

impl Hasher for Chained {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
