//! The list at `/api/v1`: a short form of the OpenAPI document for people.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every endpoint.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct Index {
    /// Version of the collector.
    version: &'static str,
    items: Vec<Endpoint>,
}

/// One endpoint.
#[derive(Serialize, JsonSchema)]
struct Endpoint {
    method: String,
    url: String,
    /// Parameters of the query or fields of the body, each as `name=word|word (description)`.
    parameters: Vec<String>,
    answers: String,
}

#[derive(Deserialize)]
struct Document {
    paths: BTreeMap<String, BTreeMap<String, Operation>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    summary: String,
    parameters: Vec<Parameter>,
    #[serde(default)]
    request_body: Option<Body>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    r#in: String,
    description: String,
    schema: Field,
}

#[derive(Deserialize)]
struct Body {
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize)]
struct Media {
    schema: Schema,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: BTreeMap<String, Field>,
}

#[derive(Deserialize)]
struct Field {
    /// The words of an optional field end with a null.
    #[serde(default)]
    r#enum: Vec<Option<String>>,
    #[serde(default)]
    description: String,
}

/// Reads the list from the served document. Empty if the document is not ours.
pub(in crate::api) fn index(document: &str) -> Index {
    let document = serde_json::from_str(document).unwrap_or(Document { paths: BTreeMap::new() });
    let mut items = Vec::new();
    for (url, methods) in document.paths {
        for (method, operation) in methods {
            items.push(operation.endpoint(method.to_uppercase(), url.clone()));
        }
    }
    Index { version: env!("CARGO_PKG_VERSION"), items }
}

impl Operation {
    fn endpoint(self, method: String, url: String) -> Endpoint {
        let asked = self.parameters.into_iter().filter(|parameter| parameter.r#in == "query");
        let asked = asked.map(|one| line(&one.name, &one.schema.r#enum, &one.description));
        let media = self.request_body.into_iter().flat_map(|body| body.content.into_values());
        let fields = media.flat_map(|media| media.schema.properties);
        let fields = fields.map(|(name, field)| line(&name, &field.r#enum, &field.description));
        let parameters = asked.chain(fields).collect();
        Endpoint { method, url, parameters, answers: self.summary }
    }
}

fn line(name: &str, words: &[Option<String>], description: &str) -> String {
    let mut line = name.to_owned();
    let words: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
    if !words.is_empty() {
        line.push('=');
        line.push_str(&words.join("|"));
    }
    if !description.is_empty() {
        line.push_str(&format!(" ({description})"));
    }
    line
}
