//! SQLite: the only home of SQL, with `migrations/`.
