//! The host's time of one job in one step. No call begins once it might not
//! end within the job's bound: it is refused here, and the host is not asked.
//! What the host has said until then is kept, and the next step continues there.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::domain::limits;
use crate::host::{Cancellation, Host, Input, InterruptAnswer, NotOwner, Run, RunError, Runs, ThreadState};

/// The host's agents for one step of one job.
pub struct Timed<'a> {
    runs: &'a dyn Runs,
    host: &'a dyn Host,
    /// Milliseconds that its calls have taken.
    used: Cell<u64>,
    cut: Cell<bool>,
    sent: Cell<bool>,
    named: RefCell<Option<Run>>,
}

/// What is known of a job whose time was over before all was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The host named this run, and was not asked what it left behind.
    Named(Run),
    /// The input was not sent.
    NotSent,
    /// The input was sent; what became of it is to be looked up.
    Sent,
}

type Reply<T> = Result<T, RunError>;

impl<'a> Timed<'a> {
    pub fn new(host: &'a dyn Host, runs: &'a dyn Runs) -> Self {
        Self {
            runs,
            host,
            used: Cell::new(0),
            cut: Cell::new(false),
            sent: Cell::new(false),
            named: RefCell::new(None),
        }
    }

    /// Nothing: all that was to be asked was asked.
    pub fn cut(&self) -> Option<Cut> {
        let named = self.named.borrow();
        match () {
            () if !self.cut.get() => None,
            () if named.is_some() => named.clone().map(Cut::Named),
            () if self.sent.get() => Some(Cut::Sent),
            () => Some(Cut::NotSent),
        }
    }

    /// Asks the host, if there is time.
    fn ask<T>(&self, call: impl FnOnce(&dyn Runs) -> Reply<T>) -> Reply<T> {
        if self.used.get() > limits::JOB_MS - limits::CALL_MS {
            self.cut.set(true);
            return Err(RunError::Unavailable(String::from("the time of this step is over")));
        }
        let began = self.host.now_ms();
        let reply = call(self.runs);
        self.used.set(self.used.get().saturating_add(self.host.now_ms().saturating_sub(began)));
        reply
    }

    fn named(&self, run: Reply<Run>) -> Reply<Run> {
        if let Ok(run) = &run {
            self.named.replace(Some(run.clone()));
        }
        run
    }

    fn send(&self, call: impl FnOnce(&dyn Runs) -> Reply<Run>) -> Reply<Run> {
        self.named(self.ask(|runs| {
            self.sent.set(true);
            call(runs)
        }))
    }
}

impl Runs for Timed<'_> {
    fn bind(&self, owner: &str, team: &str) -> Result<(), NotOwner> {
        self.runs.bind(owner, team)
    }

    fn agents(&self) -> Reply<Vec<String>> {
        self.ask(|runs| runs.agents())
    }

    fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Reply<()> {
        self.ask(|runs| runs.create_thread(id, agent, title, group))
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Reply<Run> {
        self.send(|runs| runs.start(thread, input, key))
    }

    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Reply<Run> {
        self.send(|runs| runs.resume(thread, answers, key))
    }

    fn find(&self, thread: &str, key: &str) -> Reply<Run> {
        self.named(self.ask(|runs| runs.find(thread, key)))
    }

    fn get(&self, thread: &str, run: &str) -> Reply<Run> {
        self.named(self.ask(|runs| runs.get(thread, run)))
    }

    fn state(&self, thread: &str, since: Option<(&str, Option<&str>)>, after: Option<&str>) -> Reply<ThreadState> {
        self.ask(|runs| runs.state(thread, since, after))
    }

    fn cancel(&self, thread: &str, run: &str) -> Reply<Cancellation> {
        self.ask(|runs| runs.cancel(thread, run))
    }
}
