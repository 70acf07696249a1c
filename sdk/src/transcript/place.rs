//! Where in a message a value stands: by the types that it may have there.

use std::sync::Arc;

use crate::json::codegen::DescriptorFn;
use crate::json::{DescribedMember, TypeDescriptor};

/// Unions and arrays are followed so far. Deeper members count as unknown.
const DEPTH: usize = 16;

/// The types that a value may have.
#[derive(Debug, Clone, Default)]
pub(super) struct Place(Arc<[&'static TypeDescriptor]>);

impl Place {
    pub(super) fn of(types: &[DescriptorFn]) -> Self {
        Self(types.iter().map(|of| of()).collect())
    }

    /// Returns the place with the types of both.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&*other.0).copied().collect())
    }

    /// Returns the place of the member `name`, if one of the types has it. Items of an array stand
    /// where the array does.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let mut found = Vec::new();
        let mut is_known = false;
        for descriptor in &*self.0 {
            descriptor.members(name, DEPTH, &mut |member| {
                is_known = true;
                if let DescribedMember::Of(of) = member {
                    found.push(of());
                }
            });
        }
        is_known.then(|| Self(found.into()))
    }
}
