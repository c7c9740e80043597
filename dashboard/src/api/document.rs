//! Makes the OpenAPI document from the list of endpoints. The collector never runs this code: it serves the committed
//! `openapi.json`, and a test compares that file with [`document`].

use axum::handler::Handler;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::description::{Described, Operation};
use super::endpoints::endpoints;
use super::{Shared, Table};
use crate::problem;

/// The parts of the description that no type contains.
const ABOUT: &str = "Sessions, turns and spans of what Cursor's agent did. Times are integer microseconds (`*_us`), \
since the epoch or durations. Lists are `{items, next}`: pass `next` as `cursor`; it is null at the end. \
Version 1 only grows: ignore fields that you do not know.";

/// The document as it is in the file: sorted, indented, with a newline at its end.
pub(super) fn document() -> String {
    let mut document = Document::new();
    endpoints(&mut document);
    let mut text = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut text, indent);
    // Writing a `Value` to memory cannot fail.
    let _ = serde::Serialize::serialize(&document.finish(), &mut writer);
    text.push(b'\n');
    String::from_utf8_lossy(&text).into_owned()
}

struct Document {
    /// Schemas of requests. Optional fields may be left out.
    asked: SchemaGenerator,
    /// Schemas of answers. A field is always there, unless it is skipped when it is written.
    answered: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Document {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        let mut asked = settings.clone().for_deserialize();
        asked.inline_subschemas = true;
        Self {
            asked: asked.into_generator(),
            answered: settings.for_serialize().into_generator(),
            paths: Map::new(),
        }
    }

    fn add<M, H: Described<M>>(&mut self, method: &str, path: &str, answers: &str) {
        let mut operation = Operation::new(path, &mut self.asked, &mut self.answered);
        H::describe(&mut operation);
        let mut value = operation.finish(answers);
        if method == "post" && value.get("requestBody").is_none() {
            // Every POST has a body, because a foreign page cannot send this content type without permission.
            value["requestBody"] =
                json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
        }
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        item[method] = value;
    }

    fn finish(mut self) -> Value {
        self.answered.subschema_for::<problem::Body<'static>>();
        json!({
            "openapi": "3.1.0",
            "info": { "title": "hookspan", "version": "1", "description": ABOUT },
            "servers": [{ "url": "http://127.0.0.1:4329" }],
            "security": [{ "token": [] }],
            "paths": self.paths,
            "components": {
                "schemas": self.answered.take_definitions(true),
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            },
        })
    }
}

impl Table for Document {
    fn get<M, H>(&mut self, path: &'static str, answers: &'static str, _: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static,
    {
        self.add::<M, H>("get", path, answers);
    }

    fn post<M, H>(&mut self, path: &'static str, answers: &'static str, _: H)
    where
        H: Handler<M, Shared> + Described<M>,
        M: 'static,
    {
        self.add::<M, H>("post", path, answers);
    }
}
