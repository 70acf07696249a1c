//! A time as people write it: `30d`.

use std::time::Duration;

/// Reads an age, such as `30d`: 1 to 9 digits and one of the units `s`, `m`, `h`, `d` and `w`. `None`
/// if the text has another form.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(acp_sdk::text::age("12h"), Some(Duration::from_secs(43_200)));
/// assert_eq!(acp_sdk::text::age("12"), None);
/// ```
#[must_use]
pub fn age(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !matches!(digits.len(), 1..=9) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    // Nine digits of weeks are no overflow.
    Some(Duration::from_secs(digits.parse::<u64>().ok()? * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_digits_and_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("45m", 2_700),
            ("24h", 86_400),
            ("30d", 2_592_000),
            ("007w", 4_233_600),
            ("999999999w", 604_799_999_395_200),
        ] {
            assert_eq!(age(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "-1d",
            "+1d",
            "1.5h",
            "1 d",
            "1y",
            "1D",
            "7\u{e4}",
            "1234567890s",
        ] {
            assert_eq!(age(text), None, "{text}");
        }
    }
}
