//! Reads steps, and finds mistakes in them before anything runs.
//!
//! A step is a table with one verb; its other members are those of the verb. Texts and patterns are those
//! of [`crate::pattern`]. These variables have a value from the start: `{folder}`, the working directory
//! of sessions; `{temp}`, another directory; `{hello}`, the text of the prompt `hello`; `{png}` and
//! `{wav}`, a picture and a sound in base64.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Steps;
use super::verbs::{Step, VERBS, WITH_MEMBERS};
use crate::pattern::variables;

/// The variables that have a value from the start.
pub(super) const PREDEFINED: [&str; 5] = ["folder", "temp", "hello", "png", "wav"];

impl Step {
    fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("a step is a table")?;
        let verbs: Vec<_> = members
            .keys()
            .filter(|name| VERBS.contains(&name.as_str()))
            .map(String::as_str)
            .collect();
        match verbs[..] {
            [verb] => {
                let other = members.keys().find(|name| *name != verb);
                let content = match (WITH_MEMBERS.contains(&verb), other) {
                    (true, _) => value,
                    (false, None) => members.get(verb).unwrap_or(value),
                    (false, Some(name)) => return Err(format!("unknown field `{name}`")),
                };
                serde_json::from_value(json!({verb: content})).map_err(|error| error.to_string())
            }
            [] => Err(format!("no verb; the verbs are {}", VERBS.join(", "))),
            _ => Err(format!("more than one verb: {}", verbs.join(", "))),
        }
    }

    /// What is sent, and the patterns that bind variables.
    fn texts(&self) -> (Vec<Value>, Vec<&Value>) {
        match self {
            Self::Each(step) => (step.clone(), vec![]),
            Self::Open(step) => (vec![json!(step.with)], vec![]),
            Self::Initialized(step) => (vec![], vec![step]),
            Self::Prompt(step) => (
                vec![json!([step.session, step.prompt.value(), step.with])],
                step.stop.iter().collect(),
            ),
            Self::Begin(step) => (vec![step.session.clone(), step.begin.value()], vec![]),
            Self::Cancel(step) => (vec![step.clone()], vec![]),
            Self::Ends(step) => (vec![], step.stop.iter().collect()),
            Self::Call(step) => (
                vec![json!([step.id, step.params, step.with])],
                step.result.iter().collect(),
            ),
            Self::Notify(step) => (vec![step.params.clone()], vec![]),
            Self::Raw(step) => (vec![step.clone()], vec![]),
            Self::Expect(step) => (vec![], vec![step]),
            Self::Needs(_)
            | Self::Session(_)
            | Self::Choose(_)
            | Self::Asked(_)
            | Self::Settle(_)
            | Self::Silent(_)
            | Self::Serves(_) => (vec![], vec![]),
        }
    }
}

impl Steps {
    /// Reads the steps of a row.
    ///
    /// # Errors
    ///
    /// When a step has no verb or two, or a member that is not its verb's, or when it uses a variable or a
    /// turn that no step before it has.
    pub(in crate::requirements) fn read(written: &'static [Value]) -> Result<Self, String> {
        let mut steps = Vec::with_capacity(written.len());
        let mut known: BTreeSet<String> = PREDEFINED.map(str::to_owned).into();
        let mut turns = BTreeSet::new();
        for (index, value) in written.iter().enumerate() {
            let step = Step::read(value)
                .and_then(|step| step.knows(&mut known, &mut turns).map(|()| step))
                .map_err(|reason| format!("step {}: {reason}", index + 1))?;
            steps.push(step);
        }
        let each = |step: &&Step| matches!(step, Step::Each(_));
        match steps.iter().filter(each).count() {
            0 | 1 => Ok(Self { written, steps }),
            _ => Err("more than one `each`".to_owned()),
        }
    }
}

impl Step {
    /// Adds what the step makes known, after what it uses was looked up.
    fn knows(
        &self,
        known: &mut BTreeSet<String>,
        turns: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let (sent, patterns) = self.texts();
        let mut used = BTreeSet::new();
        sent.iter().for_each(|value| variables(value, &mut used));
        if let Some(name) = used.difference(known).next() {
            return Err(format!("`{{{name}}}` has no value"));
        }
        patterns.iter().for_each(|value| variables(value, known));
        match self {
            Self::Each(_) => drop(known.insert("each".to_owned())),
            Self::Session(step) => drop(known.insert(step.clone())),
            Self::Choose(step) => {
                known.extend(["session", step.variable()].map(str::to_owned));
            }
            Self::Begin(step) => drop(turns.insert(step.name().to_owned())),
            Self::Ends(step) if !turns.contains(&step.ends) => {
                return Err(format!("no turn `{}` was begun", step.ends));
            }
            Self::Asked(_) if turns.is_empty() => return Err("no turn was begun".to_owned()),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(steps: Value) -> String {
        // Tables live as long as the program.
        let steps: &'static Value = Box::leak(Box::new(steps));
        Steps::read(steps.as_array().unwrap()).unwrap_err()
    }

    #[test]
    fn a_mistake_names_its_step() {
        let serves = json!({"serves": true});
        let none = wrong(json!([serves, {"sends": "x"}]));
        assert!(
            none.starts_with("step 2: no verb; the verbs are each, open"),
            "{none}"
        );
        assert_eq!(
            wrong(json!([{"serves": true, "settle": true}])),
            "step 1: more than one verb: serves, settle"
        );
        let unknown = wrong(json!([{"call": "session/list", "parms": {}}]));
        assert!(
            unknown.starts_with("step 1: unknown field `parms`"),
            "{unknown}"
        );
        assert_eq!(
            wrong(json!([{"cancel": "x", "stop": "y"}])),
            "step 1: unknown field `stop`"
        );
        let capability = wrong(json!([{"needs": "session/teleport"}]));
        assert_eq!(capability, "step 1: unknown capability `session/teleport`");
        assert_eq!(wrong(json!([{"serves": false}])), "step 1: expected `true`");
        assert_eq!(wrong(json!(["serves"])), "step 1: a step is a table");
    }

    #[test]
    fn variables_and_turns_come_from_an_earlier_step() {
        assert_eq!(
            wrong(json!([{"prompt": "hello"}, {"session": "session"}])),
            "step 1: `{session}` has no value"
        );
        assert_eq!(
            wrong(json!([{"call": "m", "params": {"a": ["{b}"]}}])),
            "step 1: `{b}` has no value"
        );
        assert_eq!(
            wrong(json!([{"session": "session"}, {"begin": "slow"}, {"ends": "hello"}])),
            "step 3: no turn `hello` was begun"
        );
        assert_eq!(
            wrong(json!([{"each": [1]}, {"each": [2]}])),
            "more than one `each`"
        );
        let steps = json!([
            {"call": "m", "params": {"cwd": "{folder}"}, "result": {"id": "{id}", "any": "{text}"}},
            {"notify": "n", "params": {"id": "{id}", "none": "{null}"}},
        ]);
        let steps: &'static Value = Box::leak(Box::new(steps));
        assert!(Steps::read(steps.as_array().unwrap()).is_ok());
    }
}
