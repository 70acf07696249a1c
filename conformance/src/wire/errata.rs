//! Where the protocol's pages and its schema differ, in one place.

/// Whether the pages show a `null` result for this method although the schema
/// asks for an object: `session/load` on the page on session setup, and
/// `fs/write_text_file` on the page on the file system.
#[must_use]
pub(crate) fn null_result_is_documented(method: &str) -> bool {
    matches!(method, "session/load" | "fs/write_text_file")
}

#[cfg(test)]
mod tests {

    use serde_json::Value;

    use super::*;
    use crate::wire::Party;
    use crate::wire::schema::{Schema, Verdict};

    /// When the schema accepts `null` by itself, the erratum must go.
    #[test]
    fn the_schema_still_refuses_null_where_the_pages_show_it() {
        let schema = Schema::v1().unwrap();
        for (by, method) in [
            (Party::Agent, "session/load"),
            (Party::Client, "fs/write_text_file"),
        ] {
            assert!(null_result_is_documented(method));
            assert!(matches!(
                schema.result(by, method, &Value::Null),
                Verdict::Invalid(_)
            ));
        }
    }
}
