//! Numbers: grammar and value.

use std::str::FromStr;

use super::{Reader, StrictError};

impl<'de> Reader<'de> {
    /// Consumes a number and returns its text.
    pub(super) fn digits(&mut self) -> Result<&'de str, StrictError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.run()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.run()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.run()?;
        }
        self.text.get(start..self.at).ok_or(StrictError::INVALID)
    }

    /// Consumes at least one digit.
    fn run(&mut self) -> Result<(), StrictError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err(StrictError::INVALID),
        }
    }

    /// Reads an integer.
    pub(super) fn integer<T: TryFrom<u64> + TryFrom<i128> + FromStr>(
        &mut self,
    ) -> Result<T, StrictError> {
        self.next()?;
        let text = self.digits()?;
        match text.parse::<u64>() {
            Ok(number) => T::try_from(number).ok(),
            Err(_) => text
                .parse()
                .ok()
                .or_else(|| T::try_from(by_value(text)?).ok()),
        }
        .ok_or(StrictError::INVALID)
    }

    /// Reads a number.
    pub(super) fn float(&mut self) -> Result<f64, StrictError> {
        self.next()?;
        let number: f64 = self.digits()?.parse().map_err(|_| StrictError::INVALID)?;
        match number.is_finite() {
            true => Ok(number),
            false => Err(StrictError::INVALID),
        }
    }
}

/// Returns the value of an integer in any notation, such as `1.0`, `1.5e1` and `100e-2`.
#[cold]
fn by_value(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    // With an exponent of more than 64 bits only zero is an integer in range.
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().unwrap_or(i64::MAX)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    let zeros = digits
        .clone()
        .rev()
        .take_while(|digit| *digit == b'0')
        .count();
    let length = whole.len() + fraction.len() - zeros;
    if length == 0 {
        return Some(0);
    }
    let scale = exponent
        .checked_sub_unsigned(fraction.len() as u64)?
        .checked_add_unsigned(zeros as u64)?;
    let push = |number: u128, digit: u8| {
        let number = number.checked_mul(10)?;
        number.checked_add(u128::from(digit - b'0'))
    };
    let number = digits.take(length).try_fold(0, push)?;
    let number = number.checked_mul(10_u128.checked_pow(u32::try_from(scale).ok()?)?)?;
    match negative {
        true => 0_i128.checked_sub_unsigned(number),
        false => i128::try_from(number).ok(),
    }
}
