//! Estimates what tokens cost, from a price table that the user or a public list provides. The estimate is not a bill:
//! Cursor decides what it charges, and no hook reports what subagents used.

use std::collections::BTreeMap;

use crate::model::model_name::{names, plain};
use crate::model::summary::{Tokens, TurnSummary};

/// Prices per million tokens. Tokens of a kind without a price are not counted in an amount; they are reported as
/// unpriced.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Input that was neither read from the cache nor written to it.
    pub input: Option<f64>,
    /// Output.
    pub output: Option<f64>,
    /// Read from the cache.
    pub cache_read: Option<f64>,
    /// Written to the cache.
    pub cache_write: Option<f64>,
}

/// A table of prices by model. With an empty table no amount is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// `USD` or the like; one for all.
    pub currency: String,
    /// The user's patterns with their prices, the most specific first.
    rows: Vec<(String, Price)>,
    /// Price lists by model name. A list earlier in this order takes precedence.
    lists: Vec<BTreeMap<String, Price>>,
}

/// Tokens by how they are priced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input without both cache parts.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}

/// What tokens come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// In the table's currency.
    pub amount: f64,
    /// Tokens without a price, which are not in `amount`.
    pub unpriced_tokens: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        // A count that was not reported is 0 here: it cannot be priced.
        let said = Option::unwrap_or_default;
        let (input, output) = (said(tokens.input), said(tokens.output));
        let (cache_read, cache_write) = (said(tokens.cache_read), said(tokens.cache_write));
        // More cached tokens than input: then the reported input does not include the cached tokens.
        let cached = cache_read.saturating_add(cache_write);
        let input = input.checked_sub(cached).unwrap_or(input);
        Self { input, output, cache_read, cache_write }
    }
}

impl Prices {
    /// Makes a table. A pattern is a model's label in which `*` stands for any text. If several patterns match, the one
    /// with the most other characters is used.
    #[must_use]
    pub fn new(currency: String, rows: impl IntoIterator<Item = (String, Price)>) -> Self {
        let mut rows: Vec<(String, Price)> = rows.into_iter().collect();
        let said = |pattern: &str| pattern.chars().filter(|c| *c != '*').count();
        rows.sort_by(|(a, _), (b, _)| said(b).cmp(&said(a)).then_with(|| a.cmp(b)));
        Self { currency, rows, lists: Vec::new() }
    }

    /// Adds a list by the makers' model names. Lists that were added earlier take precedence.
    #[must_use]
    pub fn with_list(mut self, list: impl IntoIterator<Item = (String, Price)>) -> Self {
        let mut named = BTreeMap::new();
        for (name, price) in list {
            // A model name with a release date also gives the price of the name without the date, unless the list has
            // that name itself.
            let plain = plain(&name).into_owned();
            match plain == name {
                true => drop(named.insert(plain, price)),
                false => drop(named.entry(plain).or_insert(price)),
            }
        }
        self.lists.push(named);
        self
    }

    /// Whether there is no table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.lists.is_empty()
    }

    /// All patterns of the user, with their prices.
    pub fn rows(&self) -> impl Iterator<Item = (&str, Price)> {
        self.rows.iter().map(|(pattern, price)| (pattern.as_str(), *price))
    }

    /// What `usage` of a model costs; `None` if the table is empty.
    #[must_use]
    pub fn estimate(&self, model: Option<&str>, usage: Usage) -> Option<Estimate> {
        if self.is_empty() {
            return None;
        }
        let price = model.and_then(|model| self.price(model)).unwrap_or_default();
        let mut estimate = Estimate::default();
        for (tokens, price) in [
            (usage.input, price.input),
            (usage.output, price.output),
            (usage.cache_read, price.cache_read),
            (usage.cache_write, price.cache_write),
        ] {
            match price {
                Some(price) => estimate.amount += tokens as f64 * price / 1e6,
                None => estimate.unpriced_tokens = estimate.unpriced_tokens.saturating_add(tokens),
            }
        }
        Some(estimate)
    }

    /// The price of the model that a label means. Looked up in this order: the user's pattern for the label, the user's
    /// patterns for the names that the label may stand for, the lists.
    #[must_use]
    pub fn price(&self, label: &str) -> Option<Price> {
        let row = |name: &str| {
            let row = self.rows.iter().find(|(pattern, _)| fits(pattern, name));
            row.map(|(_, price)| *price)
        };
        if let Some(price) = row(label) {
            return Some(price);
        }
        let names = names(label);
        names.iter().find_map(|name| row(name)).or_else(|| {
            self.lists.iter().find_map(|list| names.iter().find_map(|name| list.get(name).copied()))
        })
    }

    /// The name that a list uses for the model of a label.
    #[must_use]
    pub fn name(&self, label: &str) -> Option<&str> {
        let names = names(label);
        let mut lists = self.lists.iter();
        lists
            .find_map(|list| names.iter().find_map(|name| list.get_key_value(name.as_str())))
            .map(|(name, _)| name.as_str())
    }

    /// What the tokens of a turn cost; `None` if the table is empty or the turn reported no tokens.
    #[must_use]
    pub fn of_turn(&self, turn: &TurnSummary) -> Option<Estimate> {
        self.estimate(turn.model.as_deref(), turn.tokens?.into())
    }

    /// The sum over turns, each by its own model.
    #[must_use]
    pub fn of_turns<'a>(
        &self,
        turns: impl IntoIterator<Item = &'a TurnSummary>,
    ) -> Option<Estimate> {
        turns.into_iter().filter_map(|turn| self.of_turn(turn)).reduce(Estimate::plus)
    }
}

impl Estimate {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            amount: self.amount + other.amount,
            unpriced_tokens: self.unpriced_tokens.saturating_add(other.unpriced_tokens),
        }
    }
}

/// Whether `text` matches `pattern`. The time is proportional to the length of the text times the number of stars in
/// the pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Prices {
        let price = |input, output| Price {
            input: Some(input),
            output: Some(output),
            cache_read: Some(input / 10.0),
            cache_write: None,
        };
        Prices::new(
            "USD".to_owned(),
            [
                ("claude-*".to_owned(), price(3.0, 15.0)),
                ("claude-*-opus*".to_owned(), price(5.0, 25.0)),
                ("gpt-5.5".to_owned(), price(1.0, 8.0)),
            ],
        )
    }

    #[test]
    fn cache_tokens_are_inside_the_input_and_priced_as_what_they_are() {
        let tokens = Tokens {
            input: Some(1_000_000),
            output: Some(100_000),
            cache_read: Some(600_000),
            cache_write: Some(100_000),
        };
        let estimate = table().estimate(Some("claude-4.6-sonnet"), tokens.into()).unwrap();
        let expected = 0.3 * 3.0 + 0.6 * 0.3 + 0.1 * 15.0;
        assert!((estimate.amount - expected).abs() < 1e-9, "{estimate:?}");
        assert_eq!(estimate.unpriced_tokens, 100_000);
        let exclusive = Tokens { input: Some(10), cache_read: Some(600), ..Tokens::default() };
        assert_eq!(Usage::from(exclusive).input, 10);
    }

    #[test]
    fn a_model_that_no_row_names_is_unpriced_and_without_a_table_there_is_no_estimate() {
        let usage = Usage { input: 7, output: 5, cache_read: 1, cache_write: 0 };
        for model in [None, Some("default"), Some("gpt-5.5-fast"), Some("")] {
            let estimate = table().estimate(model, usage).unwrap();
            assert_eq!(estimate, Estimate { amount: 0.0, unpriced_tokens: 13 }, "{model:?}");
        }
        assert_eq!(Prices::default().estimate(Some("gpt-5.5"), usage), None);
    }

    #[test]
    fn the_pattern_that_says_most_holds() {
        let usage = Usage { output: 1_000_000, ..Usage::default() };
        let amount = |model| table().estimate(Some(model), usage).unwrap().amount;
        assert_eq!([amount("claude-4.6-opus-high"), amount("claude-5")], [25.0, 15.0]);
    }

    #[test]
    fn a_persons_price_holds_before_a_list_and_a_list_before_the_next() {
        let only = |output| Price { output: Some(output), ..Price::default() };
        let prices = table()
            .with_list([("gpt-5.5-fast".to_owned(), only(2.0)), ("gpt-5.5".to_owned(), only(3.0))])
            .with_list([
                ("gpt-5.5-fast".to_owned(), only(4.0)),
                ("gemini/gemini-3-pro-preview".to_owned(), only(6.0)),
                ("o3-2025-04-16".to_owned(), only(7.0)),
            ]);
        let output = |label: &str| prices.price(label).and_then(|price| price.output);
        assert_eq!(output("gpt-5.5-medium"), Some(8.0), "a person's, by the name it stands for");
        assert_eq!(output("gpt-5.5-high-fast"), Some(2.0));
        assert_eq!(output("gemini-3-pro-preview-high"), Some(6.0));
        assert_eq!(output("o3"), Some(7.0));
        assert_eq!(output("unheard-of"), None);
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("*b", "ab", true),
            ("a*a", "a", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("**x**", "axb", true),
            ("é*", "éa", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
