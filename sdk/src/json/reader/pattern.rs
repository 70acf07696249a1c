//! Finds the text in a message by a pattern of its members.

use std::ops::Range;

use super::Reader;

/// The form of a value whose text may be joined, generated from `x-coalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPattern<'a> {
    /// The text that is joined.
    Text,
    /// One of these strings.
    Tag(&'a [&'a str]),
    /// Any value. The member may be absent.
    Equal,
    /// An object with these members and no others.
    Object(&'a [(&'a str, TextPattern<'a>)]),
}

impl<'a> TextPattern<'a> {
    /// Returns the pattern of a member.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<TextPattern<'a>> {
        let Self::Object(members) = self else {
            return None;
        };
        let member = members.iter().find(|(member, _)| *member == name)?;
        Some(member.1)
    }

    /// Returns the position of the text in `json`, between its quotes; `None` when `json` does not
    /// match the pattern.
    pub(crate) fn find(&self, json: &str) -> Option<Range<usize>> {
        let (mut reader, mut text) = (Reader::new(json), None);
        reader.matches(self, &mut text)?;
        reader.blank();
        text.filter(|_| reader.at == json.len())
    }
}

impl Reader<'_> {
    /// Consumes a value, if it matches, and stores the position of the text.
    fn matches(
        &mut self,
        pattern: &TextPattern<'_>,
        text: &mut Option<Range<usize>>,
    ) -> Option<()> {
        let first = self.next().ok()?;
        match pattern {
            TextPattern::Equal => self.skip().ok(),
            TextPattern::Text if first == b'"' => {
                let start = self.at + 1;
                self.skip_string().ok()?;
                *text = Some(start..self.at - 1);
                Some(())
            }
            TextPattern::Tag(values) if first == b'"' => {
                let value = self.string().ok()?;
                values.contains(&value.as_str()).then_some(())
            }
            TextPattern::Object(members) if first == b'{' => {
                self.enter().ok()?;
                let (mut begins, mut seen) = (true, 0);
                while self.more(b'}', &mut begins).ok()? {
                    if self.next().ok()? != b'"' {
                        return None;
                    }
                    let name = self.string().ok()?;
                    let is_named = |(member, _): &(&str, _)| *member == name.as_str();
                    let index = members.iter().position(is_named)?;
                    let bit = 1_u64.checked_shl(u32::try_from(index).ok()?)?;
                    if seen & bit != 0 {
                        return None;
                    }
                    seen |= bit;
                    self.expect(b':').ok()?;
                    self.matches(&members.get(index)?.1, text)?;
                }
                self.leave();
                let mut all = members.iter().enumerate();
                let is_there = |(index, member): (usize, &(&str, TextPattern<'_>))| {
                    member.1 == TextPattern::Equal || seen >> index & 1 == 1
                };
                all.all(is_there).then_some(())
            }
            _ => None,
        }
    }
}
