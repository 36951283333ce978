//! Make the store ready before anything is served.

use alloc::format;

use crate::domain::error::{Error, Result};
use crate::host::Host;
use crate::store::records::{Meta, STORE_FORMAT};
use crate::store::{keys, transact};

/// Checks the settings; marks a new store with its format; refuses a newer
/// one. Harmless when repeated.
pub fn open(host: &dyn Host) -> Result<()> {
    super::settings(host)?;
    transact(host, "open", |db| match db.get::<Meta>(keys::META)? {
        None => db.put(keys::META, &Meta { format: STORE_FORMAT }),
        Some(Meta { format: STORE_FORMAT }) => Ok(()),
        Some(Meta { format }) => Err(Error::conflict(
            "store_format",
            format!(
                "The store has format {format}; this component ({}) reads and writes format {STORE_FORMAT}. Use a component that \
                 knows format {format}.",
                env!("CARGO_PKG_VERSION")
            ),
        )),
    })
}
