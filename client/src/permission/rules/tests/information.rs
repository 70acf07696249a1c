//! An agent gains nothing by saying less: random calls against random rules.

use serde_json::Map;

use super::*;

/// The number of random lists of rules, because patterns are slow to compile.
const LISTS: u64 = 100;

/// The number of random calls for each list.
const CALLS: u64 = 30;

/// A small generator (xorshift), because a failed case must be found again by its number.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

const PATHS: &[&str] = &[
    ".env",
    "a",
    "src/a",
    "src/.env",
    "secrets/key",
    "secrets",
    "key",
    "src",
    ".",
    "..",
    "/home/me/project/secrets/x",
    "/etc/passwd",
    "../x/.env",
    "~/.env",
    "$HOME/.env",
    "*.env",
    "src/**",
    "file:///p/.env",
    "a\\.env",
    "[id].rs",
];

const LINES: &[&str] = &[
    "git push",
    "git -C . push",
    "git status",
    "cat .env",
    "cd secrets && cat key",
    "rm x",
    "ls",
    "$X y",
    "grep -r x .",
    "cat key",
    "cat *",
    "sudo rm -rf src",
    "git show HEAD:.env",
    "echo 'a b'",
];

const TEXTS: &[&str] = &[
    "Costs $5 and 10%",
    "Read .env",
    "x",
    "",
    "secrets/key",
    "$HOME/.env",
];

fn kind(random: &mut Random) -> ToolKind {
    use ToolKind::{Delete, Edit, Execute, Fetch, Move, Other, Read, Search, Think};
    let kinds = [
        Read, Edit, Delete, Move, Search, Execute, Think, Fetch, Other,
    ];
    let custom = ToolKind::Unknown("_own".to_owned());
    kinds
        .get(random.below(kinds.len() + 1))
        .cloned()
        .unwrap_or(custom)
}

/// A call, in parts that can be left out.
#[derive(Debug, Clone)]
struct Parts {
    kind: Option<ToolKind>,
    locations: Vec<String>,
    input: Map<String, Value>,
    cwd: bool,
}

impl Parts {
    fn random(random: &mut Random) -> Self {
        let mut input = Map::new();
        let mut add = |name: &str, value: Value| input.insert(name.to_owned(), value);
        for name in ["path", "destination", "target"] {
            if random.below(4) == 0 {
                add(name, random.pick(PATHS).into());
            }
        }
        if random.below(4) == 0 {
            add("files", json!([random.pick(PATHS), random.pick(PATHS)]));
        }
        if random.below(3) == 0 {
            add("description", random.pick(TEXTS).into());
        }
        if random.below(3) == 0 {
            let line = random.pick(LINES);
            match random.below(3) {
                0 => add("command", json!(line.split(' ').collect::<Vec<_>>())),
                1 => add("command", json!(["bash", "-c", line])),
                _ => add("command", line.into()),
            };
            if random.below(4) == 0 {
                add("cwd", random.pick(PATHS).into());
            }
            if random.below(4) == 0 {
                add("env", json!({ "A": random.pick(PATHS) }));
            }
        }
        let count = random.below(3);
        let locations = (0..count).map(|_| random.pick(PATHS).to_owned());
        Self {
            locations: locations.collect(),
            kind: random.chance().then(|| kind(random)),
            input,
            cwd: random.below(8) != 0,
        }
    }

    fn question(&self) -> PermissionRequest {
        let locations: Vec<&str> = self.locations.iter().map(String::as_str).collect();
        let input = Value::Object(self.input.clone());
        let mut question = question(self.kind.clone(), &locations, &input);
        if !self.cwd {
            question.cwd = None;
        }
        question
    }

    /// Leaves some parts out.
    fn with_less(&self, random: &mut Random) -> Self {
        let mut less = self.clone();
        if random.chance() {
            less.kind = None;
        }
        less.cwd &= random.chance();
        less.locations.retain(|_| random.chance());
        less.input.retain(|_, _| random.chance());
        less
    }

    /// Says what the same call does in all ways that are less clear.
    fn hidden(&self) -> Vec<(&'static str, Self)> {
        let mut hidden = Vec::new();
        let mut add = |what, change: &dyn Fn(&mut Self)| {
            let mut parts = self.clone();
            change(&mut parts);
            hidden.push((what, parts));
        };
        add("no kind", &|parts| parts.kind = None);
        add("no directory", &|parts| parts.cwd = false);
        add("unclear paths", &|parts| {
            parts
                .locations
                .iter_mut()
                .for_each(|path| "$X/y".clone_into(path));
            for (name, value) in &mut parts.input {
                if ["path", "destination", "target", "cwd"].contains(&name.as_str()) {
                    *value = json!("$X/y");
                }
                if name == "files" {
                    *value = json!(["$X/y"]);
                }
            }
        });
        add("an unclear command", &|parts| {
            if let Some(command) = parts.input.get_mut("command") {
                *command = json!("$X");
            }
        });
        add("nothing", &|parts| {
            let reads_nothing = [Some(ToolKind::Think), Some(ToolKind::Fetch)];
            if !reads_nothing.contains(&parts.kind) {
                parts.locations.clear();
                parts.input.clear();
            }
        });
        hidden
    }
}

/// Rules that deny, before one that allows everything.
fn random_rules(random: &mut Random) -> Rules {
    let mut rules = Rules::new().fallback(Policy::ApproveAll);
    for _ in 0..=random.below(3) {
        let mut rule = Rule::deny();
        if random.below(4) == 0 {
            rule = rule.kind(kind(random));
        }
        if random.chance() {
            let globs = ["**/.env", "secrets/**", "src", "/etc/**", "**", "*.rs"];
            rule = rule.path(random.pick(&globs)).unwrap();
        }
        if random.chance() {
            let patterns = ["git push **", "rm", "cat *", "sudo"];
            rule = rule.command(random.pick(&patterns)).unwrap();
        }
        rules = rules.rule(rule);
    }
    if random.chance() {
        rules = rules.rule(Rule::allow());
    }
    rules
}

/// Returns whether a rule denies, or whether it is allowed; neither if it is unclear.
async fn judged(rules: &Rules, parts: &Parts) -> (bool, bool) {
    let (decision, reason) = rules.decide_with_reason(&parts.question()).await;
    let allowed = decision != Decision::Reject;
    (!allowed && matches!(reason, Some(Reason::Rule(_))), allowed)
}

#[tokio::test]
async fn saying_less_allows_nothing_that_is_denied() {
    let seed = |number: u64| Random((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let (mut denials, mut permissions) = (0, 0);
    for list in 0..LISTS {
        let rules = random_rules(&mut seed(list));
        for call in 0..CALLS {
            let mut random = seed(LISTS + list * CALLS + call);
            let whole = Parts::random(&mut random);
            let less = whole.with_less(&mut random);
            let (denied, allowed) = check(&rules, &whole, &less, (list, call)).await;
            denials += usize::from(denied);
            permissions += usize::from(allowed);
        }
    }
    // The cases are neither all denied nor all allowed.
    let least = usize::try_from(LISTS * CALLS / 10).unwrap();
    assert!(
        denials > least && permissions > least,
        "{denials} {permissions}"
    );
}

/// Checks a call and the same call with less information; returns whether the call is denied by a rule,
/// and whether it is allowed.
async fn check(rules: &Rules, whole: &Parts, less: &Parts, case: (u64, u64)) -> (bool, bool) {
    let (denied, allowed) = judged(rules, whole).await;
    if denied {
        for (what, hidden) in whole.hidden() {
            let (_, allowed) = judged(rules, &hidden).await;
            assert!(!allowed, "{case:?}: {what} of {whole:?} with {rules:#?}");
        }
    }
    let (less_denied, _) = judged(rules, less).await;
    assert!(
        !(less_denied && allowed),
        "{case:?}: {less:?} of {whole:?} with {rules:#?}"
    );
    // An object around the input changes nothing.
    let mut wrapped = whole.clone();
    let inner = std::mem::take(&mut wrapped.input);
    wrapped
        .input
        .insert("arguments".to_owned(), Value::Object(inner));
    let wrapped = judged(rules, &wrapped).await;
    assert_eq!(
        wrapped,
        (denied, allowed),
        "{case:?}: {whole:?} with {rules:#?}"
    );
    (denied, allowed)
}
