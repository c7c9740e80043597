//! The one HTML document. It holds no data, so it is the same for every page and everybody.

use axum::response::Html;
use maud::{DOCTYPE, html};

use crate::assets::BUILD;

pub(crate) async fn page() -> Html<String> {
    let asset = |name: &str| format!("/a/{}/app/{name}", *BUILD);
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="dark light";
                title { "hookspan" }
                link rel="icon" type="image/svg+xml" href=(asset("icon.svg"));
                // Not a module: theme and blur must be in force before the first paint.
                script src=(asset("boot.js")) {}
                link rel="stylesheet" href=(asset("app.css"));
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
