//! One operation: what its handler takes, and what it returns.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// An operation that is being described.
pub(crate) struct Operation<'a> {
    path: &'a str,
    asked: &'a mut SchemaGenerator,
    answered: &'a mut SchemaGenerator,
    parameters: Vec<Value>,
    body: Option<Value>,
    content: Map<String, Value>,
    details: &'static str,
}

impl<'a> Operation<'a> {
    pub(in crate::api) fn new(
        path: &'a str,
        asked: &'a mut SchemaGenerator,
        answered: &'a mut SchemaGenerator,
    ) -> Self {
        let (parameters, body, content) = (Vec::new(), None, Map::new());
        Self { path, asked, answered, parameters, body, content, details: "" }
    }

    /// The segments of the path that are parameters.
    pub(crate) fn segments(&mut self) {
        for name in self.path.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = name.trim_end_matches('}');
            self.parameters.push(json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": segment(name),
                "schema": { "type": "string" },
            }));
        }
    }

    /// The fields of `T` as parameters of the query.
    pub(crate) fn query<T: JsonSchema>(&mut self) {
        let mut schema = T::json_schema(self.asked).to_value();
        let required = schema["required"].take();
        let Value::Object(fields) = schema["properties"].take() else { return };
        for (name, mut field) in fields {
            let description = field.as_object_mut().and_then(|field| field.remove("description"));
            without_null(&mut field);
            self.parameters.push(json!({
                "required": required.as_array().is_some_and(|names| names.contains(&json!(name))),
                "name": name,
                "in": "query",
                "description": description.unwrap_or_else(|| json!("")),
                "schema": field,
            }));
        }
    }

    /// `T` as the body.
    pub(crate) fn body<T: JsonSchema>(&mut self) {
        let schema = T::json_schema(self.asked);
        self.body = Some(json!({ "content": { "application/json": { "schema": schema } } }));
    }

    /// `T` as the JSON of an answer.
    pub(crate) fn answer<T: JsonSchema>(&mut self) {
        let schema = self.answered.subschema_for::<T>().to_value();
        self.content.insert("application/json".to_owned(), json!({ "schema": schema }));
    }

    /// An answer that is not JSON of one of our types.
    pub(crate) fn media(&mut self, media_type: &str, schema: &Value) {
        let essence = media_type.split(';').next().unwrap_or_default();
        self.content.insert(essence.to_owned(), json!({ "schema": schema }));
    }

    /// A longer description of the answer.
    pub(crate) fn details(&mut self, text: &'static str) {
        self.details = text;
    }

    pub(in crate::api) fn finish(self, answers: &str) -> Value {
        let Self { parameters, body, content, details, .. } = self;
        let description = if details.is_empty() { answers } else { details };
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let mut operation = json!({
            "summary": answers,
            "parameters": parameters,
            "responses": {
                "200": { "description": description, "content": content },
                "default": {
                    "description": "What was wrong, and what to do",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        });
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }
}

/// Optional parameters are omitted, never null: a query cannot express null.
fn without_null(schema: &mut Value) {
    if let Value::Array(kinds) = &mut schema["type"] {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Value::Array(words) = &mut schema["enum"] {
        words.retain(|word| !word.is_null());
    }
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|_, value| !value.is_null());
    if let Some(Value::Array(mut choices)) = fields.remove("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let Some(Value::Object(choice)) = choices.pop() {
            fields.extend(choice);
        }
    }
}

/// What a name in a path stands for.
fn segment(name: &str) -> &'static str {
    match name {
        "session" => "id of a session: the id of its root conversation",
        "span" => "hex id of a span, or its row key",
        "part" => "name of a part of the span's content, as the span lists it",
        "trace" => "hex id of a trace",
        "name" => "name of a destination, as the configuration has it",
        "code" => "id of a code: the part before its dot",
        _ => "",
    }
}

/// An argument of a handler.
pub(crate) trait Input {
    /// Adds the argument to the description of the request.
    fn describe(operation: &mut Operation<'_>);
}

impl<S> Input for State<S> {
    fn describe(_: &mut Operation<'_>) {}
}

/// What the guard found out about the sender.
impl<T> Input for Extension<T> {
    fn describe(_: &mut Operation<'_>) {}
}

impl Input for HeaderMap {
    fn describe(_: &mut Operation<'_>) {}
}

/// The answer of a handler.
pub(crate) trait Output {
    /// Adds the answer to the description.
    fn describe(operation: &mut Operation<'_>);
}

impl<T: JsonSchema> Output for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer::<T>();
    }
}

impl<T: Output> Output for Result<T, Problem> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
    }
}

/// A handler whose signature tells what it takes and returns. `M` distinguishes numbers of arguments, as in axum's
/// `Handler`.
pub(crate) trait Described<M> {
    /// Adds all arguments and the answer.
    fn describe(operation: &mut Operation<'_>);
}

impl<F, R> Described<((),)> for F
where
    F: Fn() -> R,
    R: Future,
    R::Output: Output,
{
    fn describe(operation: &mut Operation<'_>) {
        R::Output::describe(operation);
    }
}

macro_rules! described {
    ($($input:ident),+) => {
        impl<F, R, M, $($input),+> Described<(M, $($input),+)> for F
        where
            F: Fn($($input),+) -> R,
            R: Future,
            R::Output: Output,
            $($input: Input),+
        {
            fn describe(operation: &mut Operation<'_>) {
                $($input::describe(operation);)+
                R::Output::describe(operation);
            }
        }
    };
}

described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);
