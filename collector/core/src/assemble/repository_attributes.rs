//! Attributes for the state of a repository, with OpenTelemetry's names.

use smol_str::SmolStr;

use crate::assemble::attributes::Attributes;
use crate::model::repository::Repository;

/// Hosts of repositories whose provider has its own name in the conventions.
const PROVIDERS: [(&str, &str); 4] = [
    ("github.com", "github"),
    ("gitlab.com", "gitlab"),
    ("bitbucket.org", "bitbucket"),
    ("gitea.com", "gitea"),
];

/// Adds `vcs.*` attributes. Head is the state at the end, base the state at the start. All of them can name something
/// of the project, so their class is `Detail`.
pub(crate) fn repository(attributes: &mut Attributes, seen: Option<&Repository>) {
    let Some(seen) = seen else { return };
    if !seen.commits.is_empty() {
        let commits = seen.commits.iter().map(|commit| SmolStr::from(&**commit)).collect();
        attributes.detail_list("hookspan.vcs.commits", commits);
    }
    let parts = seen.url.as_deref().and_then(parts);
    attributes.detail("vcs.owner.name", parts.and_then(|parts| parts.owner));
    let provider = parts.and_then(|parts| {
        PROVIDERS.iter().find(|(host, _)| *host == parts.host).map(|(_, name)| *name)
    });
    attributes.detail("vcs.provider.name", provider);
    attributes.detail("vcs.ref.base.name", seen.from_branch.as_deref());
    attributes.detail("vcs.ref.base.revision", seen.from_commit.as_deref());
    attributes.detail("vcs.ref.base.type", seen.from_branch.as_ref().map(|_| "branch"));
    attributes.detail("vcs.ref.head.name", seen.branch.as_deref());
    attributes.detail("vcs.ref.head.revision", seen.commit.as_deref());
    attributes.detail("vcs.ref.head.type", seen.branch.as_ref().map(|_| "branch"));
    attributes.detail("vcs.repository.name", parts.map(|parts| parts.name));
    attributes.detail("vcs.repository.url.full", seen.url.as_deref());
}

/// The parts of a repository's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts<'a> {
    host: &'a str,
    owner: Option<&'a str>,
    name: &'a str,
}

fn parts(url: &str) -> Option<Parts<'_>> {
    let (_, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let (owner, name) = match path.rsplit_once('/') {
        Some((owner, name)) => (Some(owner), name),
        None => (None, path),
    };
    (!name.is_empty()).then_some(Parts { host, owner, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_host_owner_and_repository() {
        let of = |url| parts(url).map(|parts| (parts.host, parts.owner, parts.name));
        assert_eq!(of("https://github.com/o/r"), Some(("github.com", Some("o"), "r")));
        assert_eq!(of("https://git.example/a/b/r"), Some(("git.example", Some("a/b"), "r")));
        assert_eq!(of("https://git.example/r"), Some(("git.example", None, "r")));
        assert_eq!(of("https://git.example/"), None);
        assert_eq!(of("r"), None);
    }
}
