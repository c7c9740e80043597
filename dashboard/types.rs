/// A script without the lines that hold types alone, which browsers do not need. Such a line becomes an empty one, so that
/// the lines of an error are those of the repository.
fn without_types(script: &str) -> String {
    let is_type = |line: &str| line.trim().starts_with("/** @") && line.trim().ends_with("*/");
    let lines = script.split('\n').map(|line| if is_type(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}
