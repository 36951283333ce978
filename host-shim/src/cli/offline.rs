//! Commands on the users of a database that no server has open.

use std::sync::Arc;

use super::Place;
use super::fail::Fail;
use crate::config::{DATABASE_NAME, prepare_data_folder};
use crate::engine::SystemClock;
use crate::storage::SqliteTables;
use crate::storage::database::{Database, InUse};
use crate::users::{UserError, Users};

/// The database, held by this process alone, and its users.
pub struct Offline {
    pub users: Arc<Users>,
    db: Database,
}

impl Offline {
    pub async fn open(place: &Place) -> Result<Self, Fail> {
        let db = open_database(place)?;
        let clock = Arc::new(SystemClock);
        let tables = SqliteTables::open(db.clone(), clock.clone()).await;
        let tables = tables.map_err(|e| Fail::open("database", format!("{e:#}")))?;
        let users = Users::new(tables, clock);
        Ok(Self { users, db })
    }

    pub fn close(self) {
        drop(self.users);
        self.db.close();
    }
}

/// Opens the database of the data folder and takes its process lock.
pub fn open_database(place: &Place) -> Result<Database, Fail> {
    if let Some(warning) = prepare_data_folder(&place.data).map_err(|e| Fail::open("data_folder", e.to_string()))? {
        tracing::warn!("{warning}");
    }
    Database::open(&place.data.join(DATABASE_NAME)).map_err(|error| match error.downcast_ref::<InUse>() {
        Some(in_use) => Fail::open("database_in_use", format!("{in_use}; stop that process first")),
        None => Fail::open("database", format!("{error:#}")),
    })
}

impl From<UserError> for Fail {
    fn from(error: UserError) -> Self {
        match &error {
            UserError::Database(source) => Self::open(error.code(), format!("{source:#}")),
            UserError::TokenFile(_) => Self::open(error.code(), error.to_string()),
            _ => Self { field: error.field().map(str::to_owned), ..Self::refused(error.code(), error.to_string()) },
        }
    }
}
