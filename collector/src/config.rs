//! Flags, file and environment become one [`Config`]. Nothing else reads the environment.

/// What a person may set.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Reconstruction.
    pub core: hookspan_core::Config,
}
