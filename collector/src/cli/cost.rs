//! Prints an estimate of what tokens cost.

use hookspan_core::price::{Estimate, Prices};
use serde::Serialize;

use crate::config::PriceLists;
use crate::prices::{AS_OF, SOURCE};
use crate::text;

/// In JSON, with the members that it has in the API.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    estimated: f64,
    currency: String,
    unpriced_tokens: u64,
}

impl Cost {
    pub(crate) fn of(prices: &Prices, estimate: Option<Estimate>) -> Option<Self> {
        let Estimate { amount, unpriced_tokens } = estimate?;
        let estimated = (amount * 1e6).round() / 1e6;
        Some(Self { estimated, currency: prices.currency.clone(), unpriced_tokens })
    }
}

/// The estimate in words, and which tokens it does not include.
pub(crate) fn words(prices: &Prices, estimate: Estimate) -> String {
    let Estimate { amount, unpriced_tokens } = estimate;
    let currency = text::visible(&prices.currency, 8);
    match unpriced_tokens {
        0 => format!("about {amount:.2} {currency}"),
        // Nothing was priced, so there is no amount.
        some if amount == 0.0 => format!("{} tokens unpriced", text::count(some)),
        some => format!("about {amount:.2} {currency}, {} tokens unpriced", text::count(some)),
    }
}

/// The source and date of prices that the user did not write.
pub(crate) fn source(lists: &PriceLists) -> String {
    match lists.public {
        true => {
            format!(
                "  for models without a price in your configuration, list prices of {AS_OF} ({SOURCE}) are used\n"
            )
        }
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_priced_is_said() {
        let prices = Prices::new("EUR".to_owned(), []);
        let said = |amount, unpriced_tokens| words(&prices, Estimate { amount, unpriced_tokens });
        assert_eq!(said(1.005_1, 0), "about 1.01 EUR");
        assert_eq!(said(0.25, 12_000), "about 0.25 EUR, 12.0k tokens unpriced");
        assert_eq!(said(0.0, 12_000), "12.0k tokens unpriced");
    }
}
