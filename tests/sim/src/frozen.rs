//! Whether what the host is asked to run was stored before, byte for byte.

use agent_teams_plugin::domain::ids;
use agent_teams_plugin::domain::job::Phase;
use agent_teams_plugin::host::Input;
use agent_teams_plugin::store::keys;
use agent_teams_plugin::store::records::{Frozen, FrozenInput, Job};

use super::check::Checker;
use super::store::Store;

impl Checker {
    /// Whether exactly this input was stored, by a job at work, before the host
    /// is asked. `forgets`: the host may have forgotten its keys, so that a
    /// person's leave to send again must be used up before. Says what is wrong.
    pub fn frozen(
        &self,
        store: &Store,
        owner: &str,
        thread: &str,
        (key, input): (&str, Option<&Input>),
        forgets: bool,
    ) -> Option<String> {
        let head = self.work.range(keys::work_thread(owner, thread)..).next();
        let head = head.filter(|(k, _)| k.starts_with(&keys::work_thread(owner, thread)));
        let Some((_, (_, work))) = head else {
            return Some(format!("a run is asked for in {thread}, where no job is unfinished"));
        };
        let mirror = self.team(owner, &work.team)?;
        let job = mirror.jobs.get(&work.job)?;
        if !matches!(job.phase, Phase::Starting | Phase::Resuming { .. }) {
            return Some(format!("a run is asked for while {} is {}", job.id, job.phase.status()));
        }
        let stored = store.get(&keys::TeamKeys::new(owner, &work.team).input(job.n));
        let frozen: Option<Frozen> = stored.and_then(|text| serde_json::from_str(text).ok());
        if forgets && frozen.as_ref().is_some_and(|f| f.insist) {
            return Some(format!("{} is sent again, and the leave to do so can be used once more", job.id));
        }
        let same = frozen.is_some_and(|f| {
            f.key == key
                && match (&f.input, input) {
                    (FrozenInput::Message { id, text, answers, provenance }, Some(i)) => {
                        (id, text, answers, provenance) == (&i.message_id, &i.text, &i.answers, &i.provenance)
                    }
                    (FrozenInput::Interrupts { .. }, None) => true,
                    _ => false,
                }
        });
        if !same {
            return Some(format!("the host is asked to run {} with something that was not frozen", job.id));
        }
        let nonce = mirror.team.as_ref().map_or("", |t| &t.nonce);
        let own = match &job.phase {
            Phase::Resuming { answer, .. } => key == answer.key,
            _ => key == own_key(nonce, job),
        };
        (!own).then(|| format!("{} runs under a key that is not its own", job.id))
    }
}

/// The key under which a job's request is sent now.
fn own_key(nonce: &str, job: &Job) -> String {
    let first = job.key.clone().unwrap_or_else(|| ids::run_key(nonce, &job.id));
    if job.refused == 0 { first } else { ids::run_key_again(&first, job.refused) }
}
