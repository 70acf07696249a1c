//! The OpenAPI document.

use std::collections::{BTreeSet, HashSet};

use acp_server_remote::internal::rest_routes;

use super::*;

const METHODS: [&str; 5] = ["get", "post", "delete", "put", "patch"];

#[tokio::test]
async fn the_document_names_the_routes_and_no_others() {
    let site = Site::start().await;
    let document = site.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let routes = rest_routes().into_iter().map(|(_, path, _)| path);
    let expected: BTreeSet<_> = routes.chain(["/healthz", "/metrics", "/readyz"]).collect();
    let found: BTreeSet<_> = paths.keys().map(String::as_str).collect();
    assert_eq!(found, expected);
    for (path, item) in paths {
        for method in METHODS {
            let path = path.replace("{id}", "none").replace("{name}", "none");
            let is_documented = item.get(method).is_some();
            let method = method.to_uppercase();
            let answer = site
                .request(&method, &path, Some(&site.master), &[], "")
                .await;
            assert_eq!(answer.status != 405, is_documented, "{method} {path}");
            assert!(!answer.body.contains("\"not_found\""), "{method} {path}");
            let status = answer.status.to_string();
            let documented = &item[method.to_lowercase()]["responses"];
            if is_documented {
                assert!(
                    documented.get(&status).is_some(),
                    "{method} {path} {status}"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_document_is_complete_in_itself() {
    let site = Site::start().await;
    let document = site.get("/openapi.json").await.json();
    let mut names = HashSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} twice");
            assert!(operation["summary"].is_string(), "{method} {path}");
            for parameter in path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let name = parameter.trim_end_matches('}');
                let parameters = operation["parameters"].as_array().unwrap();
                let is_it = |entry: &&Value| entry["name"] == name && entry["in"] == "path";
                assert_eq!(
                    parameters.iter().filter(is_it).count(),
                    1,
                    "{method} {path}"
                );
            }
        }
    }
    let text = document.to_string();
    let references = text.split("\"$ref\":\"#").skip(1);
    for reference in references.map(|rest| rest.split('"').next().unwrap()) {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
    assert_eq!(
        document["components"]["securitySchemes"]["token"]["scheme"],
        "bearer"
    );
}

#[tokio::test]
async fn what_fits_the_schema_of_share_names_a_sink_and_what_it_needs() {
    let site = Site::start().await;
    let document = site.get("/openapi.json").await.json();
    let mut schema = document["components"]["schemas"]["Share"].clone();
    schema["components"] = document["components"].clone();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for (body, fits) in [
        (json!({ "sink": "stdout" }), true),
        (json!({ "sink": "stdout", "format": "md" }), true),
        (json!({ "sink": "file", "format": "json" }), true),
        (json!({ "sink": "http", "url": "http://localhost/" }), true),
        (json!({ "sink": "http" }), false),
        (json!({ "sink": "mail" }), false),
        (json!({ "sink": "stdout", "format": "pdf" }), false),
        (json!({}), false),
    ] {
        assert_eq!(schema.is_valid(&body), fits, "{body}");
    }
}
