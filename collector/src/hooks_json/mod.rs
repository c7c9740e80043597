//! Editing hooks.json without changing a byte that is not ours.
