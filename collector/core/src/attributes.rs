//! Collecting attributes: a small builder that keeps the code that names them readable.

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::{Attribute, Class, Value};

/// Attributes under construction.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<Attribute>);

impl Attributes {
    /// Room for those of a span.
    pub(crate) fn of_span() -> Self {
        Self(Vec::with_capacity(28))
    }

    fn push(&mut self, key: &'static str, value: Value, class: Class) {
        self.0.push(Attribute { key: Cow::Borrowed(key), value, class });
    }

    pub(crate) fn text(&mut self, key: &'static str, value: impl Into<SmolStr>) {
        self.push(key, Value::Str(value.into()), Class::Plain);
    }

    pub(crate) fn some_text(&mut self, key: &'static str, value: Option<impl Into<SmolStr>>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub(crate) fn detail(&mut self, key: &'static str, value: Option<impl Into<SmolStr>>) {
        if let Some(value) = value {
            self.push(key, Value::Str(value.into()), Class::Detail);
        }
    }

    pub(crate) fn detail_int(&mut self, key: &'static str, value: Option<i64>) {
        if let Some(value) = value {
            self.push(key, Value::Int(value), Class::Detail);
        }
    }

    pub(crate) fn path(&mut self, key: &'static str, value: Option<impl Into<SmolStr>>) {
        if let Some(value) = value {
            self.push(key, Value::Str(value.into()), Class::Path);
        }
    }

    pub(crate) fn int(&mut self, key: &'static str, value: Option<i64>) {
        if let Some(value) = value {
            self.push(key, Value::Int(value), Class::Plain);
        }
    }

    pub(crate) fn count(&mut self, key: &'static str, value: u64) {
        self.int(key, Some(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    /// Milliseconds and percentages, to three decimals.
    pub(crate) fn double(&mut self, key: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.push(key, Value::Double((value * 1e3).round() / 1e3), Class::Plain);
        }
    }

    pub(crate) fn flag(&mut self, key: &'static str, value: Option<bool>) {
        if let Some(value) = value {
            self.push(key, Value::Bool(value), Class::Plain);
        }
    }

    pub(crate) fn list(&mut self, key: &'static str, value: Vec<SmolStr>) {
        self.push(key, Value::StrList(value), Class::Plain);
    }

    /// Sorted bytewise, unique: of equal keys the first.
    pub(crate) fn finish(mut self) -> Vec<Attribute> {
        // Most pairs differ in their first letter, which is cheaper to compare than the rest.
        let order = |one: &Attribute| one.key.as_bytes().first().copied();
        self.0.sort_by(|a, b| {
            order(a).cmp(&order(b)).then_with(|| a.key.as_bytes().cmp(b.key.as_bytes()))
        });
        self.0.dedup_by(|a, b| a.key == b.key);
        self.0
    }
}
