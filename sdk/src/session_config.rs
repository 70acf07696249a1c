//! What a config option of a session is for, and the values that it offers.

use crate::v1::{
    SessionConfigOption, SessionConfigOptionCategory as Category, SessionConfigSelect,
    SessionConfigSelectOption, SessionConfigSelectOptions,
};

impl SessionConfigOption {
    /// Returns whether the option selects the model: by its category, or without one by the id `model`.
    #[must_use]
    pub fn selects_model(&self) -> bool {
        self.is_for(&Category::Model, "model")
    }

    /// Returns whether the option selects the mode: by its category, or without one by the id `mode`.
    #[must_use]
    pub fn selects_mode(&self) -> bool {
        self.is_for(&Category::Mode, "mode")
    }

    fn is_for(&self, category: &Category, id: &str) -> bool {
        match &self.category {
            Some(own) => own == category,
            None => self.id.as_str() == id,
        }
    }
}

impl SessionConfigSelect {
    /// Returns the values that are offered, without groups.
    #[must_use]
    pub fn choices(&self) -> Vec<&SessionConfigSelectOption> {
        match &self.options {
            SessionConfigSelectOptions::Ungrouped(all) => all.iter().collect(),
            SessionConfigSelectOptions::Grouped(groups) => {
                groups.iter().flat_map(|group| &group.options).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::SessionConfigKind;

    #[test]
    fn a_category_goes_before_an_id() {
        let option = |id: &str, category: Option<Category>| {
            let select = SessionConfigSelect::new("a", Vec::<SessionConfigSelectOption>::new());
            let kind = SessionConfigKind::Select(select);
            let option = SessionConfigOption::new(id, "Name", kind);
            match category {
                Some(category) => option.with_category(category),
                None => option,
            }
        };
        assert!(option("llm", Some(Category::Model)).selects_model());
        assert!(option("model", None).selects_model());
        assert!(!option("model", Some(Category::ModelConfig)).selects_model());
        assert!(option("mode", None).selects_mode() && !option("mode", None).selects_model());
    }
}
