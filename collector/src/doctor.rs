//! Checks every link of the chain and says what to do.
