//! How many calls of one user run at once, so that no user takes the whole
//! engine; and calls that end whole even when their client goes away. A call
//! has its place before its body is read, so that the bound holds for all that
//! it costs.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Problem;

pub(super) struct Calls {
    per_user: usize,
    wait: Duration,
    /// One entry a user that ever called; users are few.
    users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Calls {
    pub(super) fn new(per_user: usize, wait: Duration) -> Self {
        Self { per_user, wait, users: Mutex::default() }
    }

    /// Waits until this user has a call free.
    pub(super) async fn enter(&self, user: &str) -> Result<Turn, Problem> {
        let semaphore = {
            let mut users = self.users.lock().unwrap_or_else(|e| e.into_inner());
            match users.get(user) {
                Some(semaphore) => semaphore.clone(),
                None => users.entry(user.to_owned()).or_insert(Arc::new(Semaphore::new(self.per_user))).clone(),
            }
        };
        match tokio::time::timeout(self.wait, semaphore.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn { _permit: permit }),
            _ => Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_calls",
                format!("At most {} of your calls run at once. Nothing happened; try again soon.", self.per_user),
            )
            .retry(1)),
        }
    }
}

/// One of a user's calls. It counts until this is dropped, or the work that it
/// ran has ended.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turn {
    /// Runs `work`. It comes to its end also if the client goes away: a command
    /// that has committed must still tell those who wait for it.
    pub(super) async fn run<T, E, F>(self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let task = tokio::spawn(async move {
            let result = work.await;
            drop(self);
            result
        });
        match task.await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => {
                tracing::error!(%error, "a call failed inside the host");
                Err(Problem::internal())
            }
        }
    }

    /// Runs a reading of the database off the asynchronous threads.
    pub(super) async fn read<T, E>(self, read: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        self.run(blocking(read)).await
    }
}

/// Runs a reading of the database off the asynchronous threads.
pub(super) async fn blocking<T, E>(read: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Into<Problem> + Send + 'static,
{
    match tokio::task::spawn_blocking(read).await {
        Ok(result) => result.map_err(Into::into),
        Err(error) => {
            tracing::error!(%error, "a reading failed inside the host");
            Err(Problem::internal())
        }
    }
}
