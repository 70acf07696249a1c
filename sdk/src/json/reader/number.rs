//! Numbers: their grammar, and what they are worth.

use serde::de::Visitor;

use super::{Reader, Refused};

impl<'de> Reader<'de> {
    /// Passes over a number, and gives its text.
    pub(super) fn digits(&mut self) -> Result<&'de str, Refused> {
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
        self.text.get(start..self.at).ok_or(Refused)
    }

    /// Passes over at least one digit.
    fn run(&mut self) -> Result<(), Refused> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err(Refused),
        }
    }

    /// A number for a type of integers.
    pub(super) fn integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        self.next()?;
        match integer(self.digits()?) {
            Some(Integer::Positive(number)) => visitor.visit_u64(number),
            Some(Integer::Negative(number)) => visitor.visit_i64(number),
            None => Err(Refused),
        }
    }

    /// A number for a type of floating-point numbers.
    pub(super) fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        self.next()?;
        visitor.visit_f64(float(self.digits()?)?)
    }

    /// A number for whoever takes any: an integer if it is written as one.
    pub(super) fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        let text = self.digits()?;
        if text.contains(['.', 'e', 'E']) || text == "-0" {
            return visitor.visit_f64(float(text)?);
        }
        match integer(text) {
            Some(Integer::Positive(number)) => visitor.visit_u64(number),
            Some(Integer::Negative(number)) => visitor.visit_i64(number),
            // It is beyond 64 bits.
            None => visitor.visit_f64(float(text)?),
        }
    }
}

fn float(text: &str) -> Result<f64, Refused> {
    let number: f64 = text.parse().map_err(|_| Refused)?;
    match number.is_finite() {
        true => Ok(number),
        false => Err(Refused),
    }
}

enum Integer {
    Positive(u64),
    Negative(i64),
}

/// The value of a number if that is an integer of at most 64 bits.
fn integer(text: &str) -> Option<Integer> {
    if let Ok(number) = text.parse() {
        return Some(Integer::Positive(number));
    }
    match whole(text)? {
        "-0" => Some(Integer::Positive(0)),
        text if text.starts_with('-') => text.parse().ok().map(Integer::Negative),
        text => text.parse().ok().map(Integer::Positive),
    }
}

/// The part before the point, if nothing but zeros comes after it. An exponent is too
/// rare to be worth the arithmetic.
fn whole(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    fraction.bytes().all(|digit| digit == b'0').then_some(whole)
}
