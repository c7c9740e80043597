//! The one HTML document. It contains no data, so it is the same for every page and every reader.

use axum::response::Html;
use maud::{DOCTYPE, html};

use crate::assets::BUILD;

/// Style sheets in order. A later one overrides an earlier one.
const STYLES: &[&str] = &["theme", "base", "session", "conversation", "waterfall", "media"];

pub(crate) async fn page() -> Html<String> {
    let asset = |name: &str| format!("/a/{BUILD}/app/{name}");
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                title { "hookspan" }
                link rel="icon" type="image/svg+xml" href=(asset("icons/icon.svg"));
                // Not a module, because theme and blur must be applied before the first paint.
                script src=(asset("boot.js")) {}
                @for name in STYLES {
                    link rel="stylesheet" href=(asset(&format!("styles/{name}.css")));
                }
                script type="module" src=(asset("main.js")) {}
            }
            body {
                div id="app" {}
                noscript { "The hookspan dashboard needs JavaScript. `hookspan sessions` and `hookspan show` print the same in a terminal." }
            }
        }
    };
    Html(document.into_string())
}
