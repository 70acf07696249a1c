//! Values that layers hand to handlers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Values by their types, at most one of each. Empty it is a null pointer.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Option<Arc<[Arc<dyn Any + Send + Sync>]>>);

impl Extensions {
    /// Sets the value of a type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let others = self.0.iter().flat_map(|all| all.iter());
        let others = others.filter(|other| !other.is::<T>()).cloned();
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        self.0 = Some(others.chain([value]).collect());
    }

    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.0
            .as_ref()?
            .iter()
            .find_map(|value| value.downcast_ref())
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}
