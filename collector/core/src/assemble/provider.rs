//! Derives the provider from a model's label.

/// `gen_ai.provider.name` for a model label; `cursor` if the provider is not known.
#[must_use]
pub(crate) fn provider(model: Option<&str>) -> &'static str {
    const PREFIXES: [(&str, &str); 12] = [
        ("claude", "anthropic"),
        ("gpt", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex", "openai"),
        ("gemini", "gcp.gemini"),
        ("grok", "x_ai"),
        ("deepseek", "deepseek"),
        ("mistral", "mistral_ai"),
        ("codestral", "mistral_ai"),
        ("ministral", "mistral_ai"),
    ];
    let model = model.unwrap_or_default();
    let starts = |prefix: &str| {
        model.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    };
    PREFIXES
        .into_iter()
        .find(|(prefix, _)| starts(prefix))
        .map_or("cursor", |(_, provider)| provider)
}

#[cfg(test)]
mod tests {
    use super::provider;

    #[test]
    fn a_label_names_its_provider() {
        let cases = [
            ("claude-4.6-sonnet-medium-thinking", "anthropic"),
            ("gpt-5.5-medium", "openai"),
            ("o3-pro", "openai"),
            ("Gemini-2.5-pro", "gcp.gemini"),
            ("composer-2.5-fast", "cursor"),
            ("default", "cursor"),
            ("", "cursor"),
        ];
        for (model, expected) in cases {
            assert_eq!(provider(Some(model)), expected, "{model}");
        }
    }
}
