//! A small builder for attributes. It keeps the code that names attributes readable.

use std::borrow::Cow;
use std::cmp::Ordering;

use smol_str::SmolStr;

use crate::correlate::fact::Fact;
use crate::model::content::Field;
use crate::model::span::{Attribute, Class, ContentRef, Value};

/// Attributes under construction, always sorted. Callers add them mostly in order, so a new attribute usually belongs
/// behind the last one.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    sorted: Vec<Attribute>,
    /// The index after the last added attribute.
    next: usize,
}

impl Attributes {
    /// Capacity for the attributes of a span.
    pub(crate) fn of_span() -> Self {
        Self { sorted: Vec::with_capacity(28), next: 0 }
    }

    fn push(&mut self, key: &'static str, value: Value, class: Class) {
        let mut at = self.next;
        if at.checked_sub(1).is_some_and(|last| compare(&self.sorted[last], key).is_gt()) {
            at = self.sorted.partition_point(|other| compare(other, key).is_lt());
        }
        loop {
            match self.sorted.get(at).map_or(Ordering::Greater, |other| compare(other, key)) {
                Ordering::Less => at += 1,
                Ordering::Equal => return,
                Ordering::Greater => break,
            }
        }
        self.sorted.insert(at, Attribute { key: Cow::Borrowed(key), value, class });
        self.next = at + 1;
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

    pub(crate) fn some_count(&mut self, key: &'static str, value: Option<u64>) {
        if let Some(value) = value {
            self.count(key, value);
        }
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

    pub(crate) fn detail_list(&mut self, key: &'static str, value: Vec<SmolStr>) {
        self.push(key, Value::StrList(value), Class::Detail);
    }

    /// Returns the attributes, sorted bytewise. Of two equal keys the first is kept.
    pub(crate) fn finish(self) -> Vec<Attribute> {
        self.sorted
    }
}

/// Compares the first letter first: most keys differ in it, and comparing one letter is cheaper.
fn compare(one: &Attribute, key: &str) -> Ordering {
    let (one, key) = (one.key.as_bytes(), key.as_bytes());
    one.first().cmp(&key.first()).then_with(|| one.cmp(key))
}

/// Adds a reference to content: the attribute's text is `field` of the hook that `fact` comes from.
pub(crate) fn content(
    contents: &mut Vec<ContentRef>,
    key: &'static str,
    fact: &Fact,
    field: Field,
) {
    contents.push(ContentRef { key, hook: fact.seq, field });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_whatever_order_they_are_named_they_are_sorted_and_the_first_of_equals_stays() {
        let mut own = Attributes::default();
        for (value, key) in ["m", "z", "b", "c", "n", "a", "m", "z", "zz", "b"].iter().enumerate() {
            own.count(key, value as u64);
        }
        let found: Vec<(String, Value)> =
            own.finish().into_iter().map(|one| (one.key.into_owned(), one.value)).collect();
        let expected = [("a", 5), ("b", 2), ("c", 3), ("m", 0), ("n", 4), ("z", 1), ("zz", 8)];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), Value::Int(value))));
    }
}
