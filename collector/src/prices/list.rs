//! Reads price lists in common forms: LiteLLM's map (dollars per token), lists of dollars per million tokens under
//! several names, the catalogue of models.dev, and OpenRouter's answer.
//!
//! All of them are nested objects. An object that has a price is a model. Nothing else is read.

use std::collections::BTreeMap;

use hookspan_core::price::Price;
use serde_json::{Map, Value};

use super::ListError;

/// Maximum depth at which models are searched.
const DEPTH: usize = 6;
/// Maximum price per million tokens. A larger number is not a price.
const MOST: f64 = 100_000.0;

/// Names of each price, with the factor that converts its number.
const INPUT: &[(&str, f64)] = &[
    ("input_cost_per_token", 1e6),
    ("prompt", 1e6),
    ("input_per_million", 1.0),
    ("input_mtok", 1.0),
    ("input", 1.0),
];
const OUTPUT: &[(&str, f64)] = &[
    ("output_cost_per_token", 1e6),
    ("completion", 1e6),
    ("output_per_million", 1.0),
    ("output_mtok", 1.0),
    ("output", 1.0),
];
const CACHE_READ: &[(&str, f64)] = &[
    ("cache_read_input_token_cost", 1e6),
    ("input_cache_read", 1e6),
    ("cache_read_per_million", 1.0),
    ("cache_read_mtok", 1.0),
    ("cached_input", 1.0),
    ("cacheRead", 1.0),
    ("cache_read", 1.0),
];
const CACHE_WRITE: &[(&str, f64)] = &[
    ("cache_creation_input_token_cost", 1e6),
    ("input_cache_write", 1e6),
    ("cache_write_per_million", 1.0),
    ("cache_write_mtok", 1.0),
    ("cacheWrite", 1.0),
    ("cache_write", 1.0),
];
/// Names of objects that contain the prices of the model around them, and of objects that contain models.
const OF_MODEL: [&str; 3] = ["cost", "pricing", "prices"];
const OF_MODELS: [&str; 3] = ["models", "data", "prices"];
/// Names of objects whose numbers are not prices, and of an entry that explains the list.
const OTHERS: [&str; 5] = ["limit", "limits", "modalities", "sample_spec", "fast_multipliers"];
/// Sources whose prices count as list prices: the makers. All others resell.
const MAKERS: [&str; 14] = [
    "anthropic",
    "openai",
    "google",
    "gemini",
    "xai",
    "x-ai",
    "deepseek",
    "mistral",
    "mistralai",
    "moonshot",
    "moonshotai",
    "zai",
    "z-ai",
    "cursor",
];

/// The prices of each model in a list, in dollars per million tokens.
///
/// # Errors
///
/// The text is not JSON, or no model in it has a price.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Price>, ListError> {
    let list: Value = serde_json::from_str(text).map_err(ListError::Json)?;
    let mut found = Found::default();
    found.walk(&list, "", None, DEPTH);
    if found.models.is_empty() {
        return Err(ListError::Empty);
    }
    Ok(found.models.into_iter().map(|(name, (_, price))| (name, price)).collect())
}

/// Models by name, each with the rank of its source.
#[derive(Default)]
struct Found {
    models: BTreeMap<String, (u8, Price)>,
}

impl Found {
    fn walk(&mut self, value: &Value, name: &str, seller: Option<&str>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| self.walk(item, name, seller, depth));
            }
            Value::Object(object) => self.object(object, name, seller, depth),
            _ => {}
        }
    }

    fn object(
        &mut self,
        object: &Map<String, Value>,
        name: &str,
        seller: Option<&str>,
        depth: usize,
    ) {
        let said = ["id", "model"].iter().find_map(|key| object.get(*key)?.as_str());
        let name = said.unwrap_or(name);
        if let Some(price) = price(object) {
            self.note(name, seller, price);
            return;
        }
        for (key, inner) in object {
            let is_price_of_model = OF_MODEL.contains(&key.as_str()) && !name.is_empty();
            match key.as_str() {
                other if OTHERS.contains(&other) => {}
                _ if is_price_of_model => self.walk(inner, name, seller, depth),
                "models" if !name.is_empty() => self.walk(inner, "", Some(name), depth),
                models if OF_MODELS.contains(&models) || OF_MODEL.contains(&models) => {
                    self.walk(inner, "", seller, depth);
                }
                model => self.walk(inner, model, seller, depth),
            }
        }
    }

    fn note(&mut self, name: &str, seller: Option<&str>, price: Price) {
        let (before, bare) = name.rsplit_once('/').map_or((None, name), |(b, n)| (Some(b), n));
        let seller = before.or(seller);
        let rank = match seller {
            None => 2,
            Some(seller) if MAKERS.contains(&seller) => 1,
            Some(_) => return,
        };
        let bare = bare.trim();
        if !bare.is_empty() && self.models.get(bare).is_none_or(|(known, _)| *known < rank) {
            self.models.insert(bare.to_owned(), (rank, price));
        }
    }
}

fn price(object: &Map<String, Value>) -> Option<Price> {
    let find = |names: &[(&str, f64)]| {
        names.iter().find_map(|(name, times)| {
            let value = object.get(*name)?;
            let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
            // Rounded to a millionth of a cent, which is finer than any list.
            let price = (number * times * 1e8).round() / 1e8;
            (0.0..=MOST).contains(&price).then_some(price)
        })
    };
    let price = Price {
        input: find(INPUT),
        output: find(OUTPUT),
        cache_read: find(CACHE_READ),
        cache_write: find(CACHE_WRITE),
    };
    (price.input.is_some() || price.output.is_some()).then_some(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Price {
        let [input, output] = [input, output].map(Some);
        Price { input, output, cache_read: Some(cache_read), cache_write: Some(cache_write) }
    }

    #[test]
    fn every_form_gives_the_same_prices() {
        let litellm = r#"{"sample_spec": {"input_cost_per_token": 0.1, "output_cost_per_token": 1},
            "claude-x": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "mode": "chat",
                "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06},
            "azure/claude-x": {"input_cost_per_token": 9e-06, "output_cost_per_token": 9e-05}}"#;
        let million = r#"{"updated_at": "2026-09-11", "pricing": {"claude-x": {"input_per_million": 3,
            "output_per_million": 15, "cache_read_per_million": 0.3, "cache_write_per_million": 3.75}},
            "fast_multipliers": {"claude-x": 2}}"#;
        let plain =
            r#"{"claude-x": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}"#;
        let array = r#"[{"model": "claude-x", "input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}]"#;
        let models_dev = r#"{"reseller": {"models": {"claude-x": {"cost": {"input": 8, "output": 80}}}},
            "anthropic": {"id": "anthropic", "models": {"claude-x": {"id": "claude-x", "limit": {"output": 64000},
            "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}}}}"#;
        let openrouter = r#"{"data": [{"id": "anthropic/claude-x", "pricing": {"prompt": "0.000003",
            "completion": "0.000015", "input_cache_read": "0.0000003", "input_cache_write": "0.00000375"}}]}"#;
        for text in [litellm, million, plain, array, models_dev, openrouter] {
            let found = read(text).unwrap();
            let expected = BTreeMap::from([("claude-x".to_owned(), full(3.0, 15.0, 0.3, 3.75))]);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused_and_odd_numbers_are_no_prices() {
        for text in ["", "[", "null", "{}", r#"{"a": {"input": -1}}"#, r#"{"a": {"input": "x"}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(read(&deep).is_err());
        let some = read(r#"{"a": {"input": 2, "output": 1e99}}"#).unwrap();
        assert_eq!(some["a"], Price { input: Some(2.0), ..Price::default() });
    }
}
