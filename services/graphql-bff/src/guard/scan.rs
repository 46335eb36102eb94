//! Bounds on the text of a document.

use crate::Limits;

/// Refuses a text that is too long, nests brackets too deep or has too many tokens, with what a person should know.
pub(crate) fn scan(text: &str, limits: &Limits) -> Result<(), String> {
    if text.len() > limits.document_bytes {
        return Err(format!("the document has {} bytes, {} may be", text.len(), limits.document_bytes));
    }
    let mut rest = text.as_bytes();
    let mut depth = 0_usize;
    let mut tokens = 0_usize;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'#' => skip_while(after, |b| b != b'\n' && b != b'\r'),
            b'"' => {
                tokens += 1;
                match after.strip_prefix(b"\"\"") {
                    Some(block) => skip_block(block),
                    None => skip_string(after),
                }
            }
            b'{' | b'[' | b'(' => {
                tokens += 1;
                depth += 1;
                if depth > limits.bracket_depth {
                    return Err(format!("the document nests brackets over {} deep", limits.bracket_depth));
                }
                after
            }
            b'}' | b']' | b')' => {
                tokens += 1;
                depth = depth.saturating_sub(1);
                after
            }
            b if is_word(b) => {
                tokens += 1;
                skip_while(after, is_word)
            }
            b'$' | b'@' | b'.' | b'!' | b'&' | b'|' | b'=' | b':' | b'-' | b' ' | b',' | b'\n' | b'\r'
            | b'\t' => after,
            // Anything else is a mistake that the parser will name.
            _ => {
                tokens += 1;
                after
            }
        };
        if tokens > limits.tokens {
            return Err(format!("the document has over {} tokens", limits.tokens));
        }
    }
    Ok(())
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn skip_while(text: &[u8], inside: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|&b| !inside(b)).unwrap_or(text.len());
    text.split_at(end).1
}

/// Skips to behind the quote that ends a string; a string also ends with its line.
fn skip_string(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [] => return text,
            [b'"' | b'\n' | b'\r', rest @ ..] => return rest,
            [b'\\', _, rest @ ..] | [_, rest @ ..] => rest,
        }
    }
}

fn skip_block(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [] => return text,
            [b'"', b'"', b'"', rest @ ..] => return rest,
            [b'\\', b'"', b'"', b'"', rest @ ..] | [_, rest @ ..] => rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> bool {
        scan(text, &Limits { document_bytes: 1000, bracket_depth: 4, tokens: 12, ..Limits::default() })
            .is_ok()
    }

    #[test]
    fn depth_counts_open_brackets_of_all_kinds() {
        assert!(ok("{a(b:[{}])}"));
        assert!(!ok("{a(b:[{c:[]}])}"));
        assert!(ok("{}{}{}{}{}"));
    }

    #[test]
    fn brackets_in_strings_and_comments_are_text() {
        assert!(ok(r#"{a(b:"[[[[[\"[[[[[")}"#));
        assert!(ok(r#"{a(b:"""[[[[[ " \""" [[[[[""")}"#));
        assert!(ok("{a # [[[[[[[\n}"));
        // A string that is not closed ends with its line, so that it hides nothing.
        assert!(!ok("{a(b:\"\n[[[[[[[[)}"));
        assert!(!ok("{a(b:\"\r[[[[[[[[)}"));
    }

    #[test]
    fn names_numbers_strings_and_brackets_are_tokens() {
        assert!(ok("{a b c d e f g h i j}"));
        assert!(!ok("{a b c d e f g h i j k}"));
        assert!(!ok(&"?".repeat(13)));
    }

    #[test]
    fn a_long_text_is_refused() {
        assert!(ok(&" ".repeat(1000)));
        assert!(!ok(&" ".repeat(1001)));
    }
}
