//! The operator: a person who may read the data folder. While no server runs, the
//! commands `users`, `tokens` and `backup` need nothing else; what asks the running
//! server presents a secret that it wrote into the folder when it started.
//!
//! The secret belongs to no user. It opens the operator's routes and no other, and no
//! user's token or session opens them. It ends with the process.

use std::path::Path;

use super::process_secret::ProcessSecret;

/// The name of the secret's file in the data folder; its mode is 0600.
pub const OPERATOR_TOKEN_FILE: &str = "operator-token";
const PREFIX: &str = "ato_";

/// The operator of one serving process.
pub struct Operator(ProcessSecret);

impl Operator {
    /// A new operator, and its secret in the only moment in which it is known.
    /// Fails only where the system has no random numbers.
    pub fn generate() -> anyhow::Result<(Self, String)> {
        let (secret, text) = ProcessSecret::generate(PREFIX)?;
        Ok((Self(secret), text))
    }

    /// A new operator whose secret is in the data folder, in the place of the
    /// one that a killed process left there.
    pub fn in_folder(data: &Path) -> anyhow::Result<Self> {
        Ok(Self(ProcessSecret::in_file(PREFIX, data.join(OPERATOR_TOKEN_FILE))?))
    }

    /// Whether this is the operator's secret; compared in constant time.
    pub fn admits(&self, presented: &str) -> bool {
        self.0.admits(presented)
    }

    /// Takes the secret's file away when the process stops.
    pub fn leave(&self) {
        self.0.leave();
    }
}
