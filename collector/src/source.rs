//! The store as the dashboard sees it.
