//! List prices from public collections, in dollars per million tokens. They were not compared with the makers' own
//! pages. The user's own prices take precedence.

use hookspan_core::price::Price;

/// When the list was made.
pub(crate) const AS_OF: &str = "2026-09-11";

/// Where the prices are from.
pub(crate) const SOURCE: &str =
    "public collections of list prices, not checked against the makers' own pages";

/// Model, input, output, cache read and cache write. `-` is a price that is not published: such tokens stay unpriced.
const LIST: &str = "
auto                1.25  6     0.25   1.25
composer-1          1.25  10    0.125  1.25
composer-1.5        3.5   17.5  0.35   3.5
composer-2          0.5   2.5   0.2    0.5
composer-2-fast     1.5   7.5   0.35   1.5
composer-2.5        0.5   2.5   0.2    0.5
composer-2.5-fast   3     15    0.5    3
claude-3-opus       15    75    1.5    18.75
claude-3-7-sonnet   3     15    0.3    3.75
claude-opus-4       15    75    1.5    18.75
claude-opus-4-1     15    75    1.5    18.75
claude-opus-4-5     5     25    0.5    6.25
claude-opus-4-6     5     25    0.5    6.25
claude-opus-4-7     5     25    0.5    6.25
claude-opus-4-7-fast 30   150   3      37.5
claude-opus-4-8     5     25    0.5    6.25
claude-opus-4-8-fast 10   50    1      12.5
claude-opus-5       5     25    0.5    6.25
claude-opus-5-fast  10    50    1      12.5
claude-sonnet-4     3     15    0.3    3.75
claude-sonnet-4-5   3     15    0.3    3.75
claude-sonnet-4-6   3     15    0.3    3.75
claude-sonnet-5     2     10    0.2    2.5
claude-haiku-4-5    1     5     0.1    1.25
claude-fable-5      10    50    1      12.5
claude-fable-5-1    10    50    0.25   12.5
gpt-4.1             2     8     0.5    -
gpt-4.1-mini        0.4   1.6   0.1    -
gpt-5               1.25  10    0.125  -
gpt-5-mini          0.25  2     0.025  -
gpt-5-codex         1.25  10    0.125  -
gpt-5.1             1.25  10    0.125  -
gpt-5.1-codex       1.25  10    0.125  -
gpt-5.1-codex-max   1.25  10    0.125  -
gpt-5.1-codex-mini  0.25  2     0.025  -
gpt-5.2             1.75  14    0.175  -
gpt-5.2-codex       1.75  14    0.175  -
gpt-5.3-codex       1.75  14    0.175  -
gpt-5.4             2.5   15    0.25   -
gpt-5.4-mini        0.75  4.5   0.075  -
gpt-5.5             5     30    0.5    -
gpt-5.6-sol         5     30    0.5    6.25
gpt-5.6-terra       2     12    0.2    2.5
gpt-5.6-luna        0.2   1.2   0.02   0.25
o3                  2     8     0.5    -
o4-mini             1.1   4.4   0.275  -
gemini-3.6-flash    1.5   7.5   0.15   -
gemini-3.7-flash    0.75  3.75  0.075  -
grok-4.5            2     6     0.5    -
grok-4.5-fast       4     12    1      -
grok-4.6            2     6     0.5    -
grok-4.6-fast       4     12    1      -
kimi-k2.7-code      0.95  4     0.19   -
";

/// The list.
pub(super) fn list() -> impl Iterator<Item = (String, Price)> {
    LIST.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut price = || words.next().and_then(|word| word.parse().ok());
        let (input, output) = (price(), price());
        Some((name, Price { input, output, cache_read: price(), cache_write: price() }))
    })
}

#[cfg(test)]
mod tests {
    use hookspan_core::price::Prices;

    use super::*;

    #[test]
    fn every_line_has_its_prices_and_the_caches_lie_between_nothing_and_the_output() {
        let all: Vec<(String, Price)> = list().collect();
        assert_eq!(all.len(), LIST.lines().filter(|line| !line.is_empty()).count());
        for (name, price) in &all {
            let (input, output) = (price.input.unwrap(), price.output.unwrap());
            assert!(input > 0.0 && output > input, "{name}");
            assert!(price.cache_read.is_some_and(|read| read > 0.0 && read < input), "{name}");
            assert!(
                price.cache_write.is_none_or(|write| write >= input && write < output),
                "{name}"
            );
        }
        let lines = LIST.lines().filter(|line| !line.is_empty());
        assert!(lines.clone().all(|line| line.split_whitespace().count() == 5));
        let mut names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len(), "a model stands twice");
    }

    #[test]
    fn labels_of_hooks_find_their_price_and_others_none() {
        let prices = crate::prices::with_public(Prices::new("USD".to_owned(), []));
        let input = |label: &str| prices.price(label).and_then(|price| price.input);
        for (label, expected) in [
            ("gpt-5.5-medium", Some(5.0)),
            ("composer-2.5-fast", Some(3.0)),
            ("claude-4.6-sonnet-medium-thinking", Some(3.0)),
            ("claude-4-sonnet", Some(3.0)),
            ("claude-opus-4-8[1m]", Some(5.0)),
            ("claude-4.7-opus-high-thinking-fast", Some(30.0)),
            ("gpt-5.1-codex-max-high", Some(1.25)),
            ("default", Some(1.25)),
            ("gpt-5.5-fast", None),
            ("tab", None),
            ("model-x", None),
        ] {
            assert_eq!(input(label), expected, "{label}");
        }
    }
}
