//! Page tokens: opaque to callers, checked when they come back.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A token that continues a list after the item `last`. `list` names the list, so that a token of another list is
/// refused; whatever else selects the items (a filter, a parent id) belongs into it.
pub fn encode(list: &str, last: u64) -> String {
    format!("{last:016x}{:08x}", check(list, last))
}

/// The `last` of a token that [`encode`] made for the same list.
pub fn decode(list: &str, token: &str) -> Option<u64> {
    if token.len() != 24 || !token.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let (last, sum) = token.split_at_checked(16)?;
    let last = u64::from_str_radix(last, 16).ok()?;
    (u32::from_str_radix(sum, 16).ok()? == check(list, last)).then_some(last)
}

/// The page size to use: 0 means 50, over 1,000 means 1,000; negative is refused with the rule.
pub fn size(page_size: i32) -> Result<usize, String> {
    match page_size {
        0 => Ok(50),
        n => match usize::try_from(n) {
            Ok(n) => Ok(n.min(1000)),
            Err(_) => Err(format!("must not be negative, was {n}")),
        },
    }
}

fn check(list: &str, last: u64) -> u32 {
    // Half of the hash: enough to tell a mistake from a token. It is no secret.
    xxh3_64_with_seed(list.as_bytes(), last) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_continues_its_own_list_only() {
        let token = encode("books", 17);
        assert_eq!(decode("books", &token), Some(17));
        assert_eq!(decode("authors", &token), None);
        for bad in ["", "x", "17", &token.to_uppercase(), &format!("{token}0"), "ééééééééxxxxxxxx"] {
            if bad != token {
                assert_eq!(decode("books", bad), None, "{bad}");
            }
        }
    }

    #[test]
    fn page_sizes_are_defaulted_capped_or_refused() {
        assert_eq!(size(0), Ok(50));
        assert_eq!(size(7), Ok(7));
        assert_eq!(size(i32::MAX), Ok(1000));
        assert!(size(-1).is_err());
    }
}
