//! Make the store ready before anything is served.

use alloc::format;

use crate::domain::error::{Error, Result};
use crate::host::Host;
use crate::store::records::{Meta, STORE_FORMAT};
use crate::store::{keys, transact};

/// Checks the settings; marks a store with its format; refuses a newer one.
/// Harmless when repeated.
///
/// Format 1 is read as it is: what format 2 added is optional in its records.
/// An older component would drop what it does not know, so it must refuse the
/// store from its first change on.
pub fn open(host: &dyn Host) -> Result<()> {
    crate::app::settings::settings(host)?;
    transact(host, "open", |db| match db.get::<Meta>(keys::META)? {
        Some(Meta { format: STORE_FORMAT }) => Ok(()),
        None | Some(Meta { format: 1 }) => db.put(keys::META, &Meta { format: STORE_FORMAT }),
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
