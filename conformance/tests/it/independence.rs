//! What judges shares no code with the implementations that it judges.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// The crates of this project that the judge may depend on: the protocol's documents, and the SDK for error
/// codes, limits, safe text, and the connection of an agent within a test. Neither can depend on a client
/// or a server, which depend on them.
const ALLOWED: [&str; 2] = ["acp-schema", "acp-sdk"];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Dependencies {
    #[serde(default)]
    dependencies: BTreeMap<String, Value>,
    #[serde(default)]
    build_dependencies: BTreeMap<String, Value>,
    #[serde(default)]
    target: BTreeMap<String, Dependencies>,
}

impl Dependencies {
    /// The crates of this project that are compiled into a package.
    fn own(&self) -> Vec<&str> {
        let both = self.dependencies.iter().chain(&self.build_dependencies);
        let names = both.map(|(key, value)| {
            let package = value.get("package").and_then(Value::as_str);
            package.unwrap_or(key)
        });
        let own = names.filter(|name| name.starts_with("acp-"));
        own.chain(self.target.values().flat_map(Self::own))
            .collect()
    }
}

/// The manifest in a folder beside the one of this crate.
fn manifest(folder: &str) -> Dependencies {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let text = fs::read_to_string(path.join("Cargo.toml")).unwrap();
    basic_toml::from_str(&text).unwrap()
}

#[test]
fn what_judges_depends_on_no_client_or_server() {
    assert_eq!(manifest("").own(), ALLOWED);
    for folder in ["fuzz", "proxy", "script"] {
        let manifest = manifest(folder);
        let mut others = manifest.own();
        others.retain(|name| !ALLOWED.contains(name));
        assert_eq!(others, ["acp-conformance"], "{folder}");
    }
}

#[test]
fn a_dependency_is_found_wherever_it_stands() {
    let manifest = r#"
        [dependencies]
        a = { package = "acp-client", version = "1" }
        [build-dependencies]
        acp-server.workspace = true
        [target.'cfg(unix)'.dependencies]
        acp-cli = "1"
        [dev-dependencies]
        acp-server-remote = "1""#;
    let found: Dependencies = basic_toml::from_str(manifest).unwrap();
    assert_eq!(found.own(), ["acp-client", "acp-server", "acp-cli"]);
}
