//! Numbers: grammar and value.

use serde_core::de::{Error as _, Expected, Unexpected, Visitor};

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
        self.text.get(start..self.at).ok_or(StrictError::SYNTAX)
    }

    /// Consumes at least one digit.
    fn run(&mut self) -> Result<(), StrictError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err(StrictError::SYNTAX),
        }
    }

    /// Reads a number for an integer type.
    pub(super) fn integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        self.next()?;
        let start = self.at;
        let text = match self.digits() {
            Ok(text) => text,
            Err(error) => return Err(self.no_number(start, error, &visitor)),
        };
        match integer(text) {
            Some(Integer::Positive(number)) => visitor.visit_u64(number),
            Some(Integer::Negative(number)) => visitor.visit_i64(number),
            Some(Integer::LargePositive(number)) => visitor.visit_u128(number),
            Some(Integer::LargeNegative(number)) => visitor.visit_i128(number),
            None => Err(no_integer(text, &visitor)),
        }
    }

    /// Reads a number for a floating-point type.
    pub(super) fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        self.next()?;
        let start = self.at;
        match self.digits() {
            Ok(text) => visitor.visit_f64(float(text)?),
            Err(error) => Err(self.no_number(start, error, &visitor)),
        }
    }

    /// Returns the error of an invalid number that starts at `start`.
    #[cold]
    fn no_number(
        &mut self,
        start: usize,
        error: StrictError,
        expected: &dyn Expected,
    ) -> StrictError {
        if self.at > start {
            return error;
        }
        self.mismatch(expected)
    }

    /// Reads a number for a type that accepts any; without fraction and exponent as an integer.
    pub(super) fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        let text = self.digits()?;
        if text.contains(['.', 'e', 'E']) || text == "-0" {
            return visitor.visit_f64(float(text)?);
        }
        match integer(text) {
            Some(Integer::Positive(number)) => visitor.visit_u64(number),
            Some(Integer::Negative(number)) => visitor.visit_i64(number),
            // Beyond 64 bits.
            _ => visitor.visit_f64(float(text)?),
        }
    }

    /// Reads a number for the error that something else was expected.
    pub(super) fn unexpected_number(&mut self) -> Result<Unexpected<'static>, StrictError> {
        let text = self.digits()?;
        if text.contains(['.', 'e', 'E']) {
            return Ok(Unexpected::Float(float(text)?));
        }
        Ok(match integer(text) {
            Some(Integer::Positive(number)) => Unexpected::Unsigned(number),
            Some(Integer::Negative(number)) => Unexpected::Signed(number),
            _ => Unexpected::Float(float(text)?),
        })
    }
}

fn float(text: &str) -> Result<f64, StrictError> {
    let number: f64 = text.parse().map_err(StrictError::new)?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(StrictError::new("number out of range")),
    }
}

#[cold]
fn no_integer(text: &str, expected: &dyn Expected) -> StrictError {
    match float(text) {
        Ok(number) => StrictError::invalid_type(Unexpected::Float(number), expected),
        Err(error) => error,
    }
}

enum Integer {
    Positive(u64),
    Negative(i64),
    LargePositive(u128),
    LargeNegative(i128),
}

/// Returns the value of a number if it is an integer of at most 128 bits.
fn integer(text: &str) -> Option<Integer> {
    if let Ok(number) = text.parse() {
        return Some(Integer::Positive(number));
    }
    // Error codes are negative. `-0` is not.
    if let Ok(number @ ..0) = text.parse() {
        return Some(Integer::Negative(number));
    }
    by_value(text)
}

/// Returns the value of an integer in any notation, such as `1.0`, `1.5e1` and `100e-2`.
#[cold]
fn by_value(text: &str) -> Option<Integer> {
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
        return Some(Integer::Positive(0));
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
    if negative {
        let number = 0_i128.checked_sub_unsigned(number)?;
        return Some(match i64::try_from(number) {
            Ok(number) => Integer::Negative(number),
            Err(_) => Integer::LargeNegative(number),
        });
    }
    Some(match u64::try_from(number) {
        Ok(number) => Integer::Positive(number),
        Err(_) => Integer::LargePositive(number),
    })
}
