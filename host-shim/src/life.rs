//! Whether a task or a thread that should never end is still there.

use tokio::sync::watch;

/// Kept by the task or thread; its end, also by a panic, drops this.
pub struct Living(#[allow(dead_code, reason = "only its end is of interest")] watch::Sender<()>);

/// Sees that end.
#[derive(Clone, Debug)]
pub struct Life(watch::Receiver<()>);

/// The two sides.
pub fn life() -> (Living, Life) {
    let (living, life) = watch::channel(());
    (Living(living), Life(life))
}

impl Life {
    pub fn has_ended(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Waits until it has ended.
    pub async fn end(&self) {
        // Nothing is ever sent: an error says that the sender is gone.
        let _ = self.0.clone().changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_end_is_seen_however_it_came() {
        let (living, of_task) = life();
        let task = tokio::spawn(async move {
            let _living = living;
            panic!("on purpose")
        });
        of_task.end().await;
        assert!(of_task.has_ended() && task.await.is_err());

        let (living, of_thread) = life();
        assert!(!of_thread.has_ended());
        std::thread::spawn(move || drop(living)).join().unwrap();
        of_thread.clone().end().await;
        assert!(of_thread.has_ended());
    }
}
