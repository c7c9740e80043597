//! An independent model of what hookspan must answer. It decides what happened ([`truth`]), writes the hooks that
//! Cursor would send for it ([`emit`]), hands them over in each possible way ([`run`]), and compares every endpoint,
//! command and export with what it decided ([`check`]). It also compares the derived tables of live, rebuilt and
//! imported stores ([`tables`]). It shares no code with the product.

pub mod truth;
pub mod emit;
pub mod check;
pub mod commands;
mod outcome;
pub mod tables;
pub mod run;
