//! A config option as people name it on a command line.

/// Reads `OPTION=VALUE`, such as `thought_level=high`: the id of a config option and its value.
///
/// ```
/// let pair = ("thought_level".to_owned(), "high".to_owned());
/// assert_eq!(acp_sdk::text::option_value("thought_level=high"), Ok(pair));
/// assert!(acp_sdk::text::option_value("loud").is_err());
/// ```
///
/// # Errors
///
/// The expected form, if the text has no `=` or one side is empty.
pub fn option_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, value)) if !id.is_empty() && !value.is_empty() => {
            Ok((id.to_owned(), value.to_owned()))
        }
        _ => Err("expected OPTION=VALUE, such as thought_level=high".to_owned()),
    }
}
