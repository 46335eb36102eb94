//! Bounds on the text of a document.

use proto::Reason;

use crate::Limits;
use crate::error::Rejection;

/// Refuses a text that is too long, nests brackets too deep or has too many tokens.
///
/// It must read strings as the parser does, or brackets hide from it in what the parser reads as none.
pub(crate) fn scan(text: &str, limits: &Limits) -> Result<(), Rejection> {
    let too_complex = |message| Err(Rejection::because(Reason::QueryTooComplex, message));
    if text.len() > limits.document_bytes {
        return too_complex(format!(
            "the document has {} bytes, {} may be",
            text.len(),
            limits.document_bytes
        ));
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
                    // The parser reads one without an end as an empty string and goes on behind its second quote,
                    // where brackets count again.
                    Some(block) => skip_block(block).ok_or_else(|| {
                        Rejection::because(Reason::MalformedRequest, "a block string has no end")
                    })?,
                    None => skip_string(after),
                }
            }
            b'{' | b'[' | b'(' => {
                tokens += 1;
                depth += 1;
                if depth > limits.bracket_depth {
                    return too_complex(format!(
                        "the document nests brackets over {} deep",
                        limits.bracket_depth
                    ));
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
            return too_complex(format!("the document has over {} tokens", limits.tokens));
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

/// Skips to behind the quotes that end a block string, if any do.
fn skip_block(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        text = match text {
            [] => return None,
            [b'"', b'"', b'"', rest @ ..] => return Some(rest),
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
    fn a_block_string_has_an_end() {
        assert!(ok(r#"{a(b:"""""")}"#));
        assert!(ok(r#"{a(b:"""x\"""y""")}"#));
        // The parser would read these as an empty string and what comes after it.
        assert!(!ok(r#"{a(b:["""x" [[[1]]]])}"#));
        assert!(!ok(r#"{a(b:["""x\""" [[[1]]]])}"#));
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

    /// How deep the values of a parsed document nest.
    fn depth(value: &async_graphql_value::Value) -> usize {
        match value {
            async_graphql_value::Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            async_graphql_value::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Texts made of what begins, ends and escapes strings: none may nest deeper for the parser than for the scan.
    #[test]
    fn strings_are_read_as_the_parser_reads_them() {
        use async_graphql::parser::types::Selection;
        const PARTS: [&str; 13] =
            ["\"", "\"\"\"", "\\", "\\\"", "\n", "\r", "#", "[", "]", "x", " ", "[[", "]]"];
        let limits = Limits { document_bytes: 1000, bracket_depth: 4, tokens: 1000, ..Limits::default() };
        let (mut state, mut parsed) = (1_u64, 0);
        for _ in 0..CASES {
            let mut inside = String::new();
            for _ in 0..14 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                inside.push_str(PARTS[(state >> 33) as usize % PARTS.len()]);
            }
            let text = format!("{{a(b:[{inside}])}}");
            if scan(&text, &limits).is_err() {
                continue;
            }
            let Ok(document) = async_graphql::parser::parse_query(&text) else { continue };
            parsed += 1;
            let (_, operation) = document.operations.iter().next().unwrap();
            for selection in &operation.node.selection_set.node.items {
                let Selection::Field(field) = &selection.node else { continue };
                for (_, value) in &field.node.arguments {
                    assert!(depth(&value.node) + 2 <= 4, "{text:?}");
                }
            }
        }
        assert!(parsed > 10, "{parsed}");
    }

    const CASES: usize = 50_000;
}
