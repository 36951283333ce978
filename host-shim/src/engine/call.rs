//! One call into the component: a fresh instance, its bounds, and what comes
//! of a trap.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use super::bindings::{self, PluginPre};
use super::capabilities::connections::Connections;
use super::capabilities::{Shared, State};
use super::limits::{HOSTCALL_BYTES, Stopped};
use super::ticker::Ticker;
use super::{LoadError, Options, Parts, component};
use crate::contract::{CallError, FaultCode};

/// The loaded component and what its calls share.
pub struct Core {
    pub shared: Arc<Shared>,
    options: Options,
    engine: Engine,
    pre: PluginPre<State>,
    places: Places,
    closing: watch::Sender<bool>,
    /// Calls that were admitted and have not answered, parked ones included.
    admitted: watch::Sender<usize>,
    parked: AtomicUsize,
    _ticker: Ticker,
}

/// An admitted call; shutdown waits until it is dropped.
pub struct Admitted<'a>(&'a Core);

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.admitted.send_modify(|n| *n -= 1);
    }
}

/// A running instance. (Field order matters: the store goes before the permit
/// that counts it.)
pub struct Call {
    pub store: Store<State>,
    pub guest: bindings::Plugin,
    pub deadline: Instant,
    name: &'static str,
    _permit: OwnedSemaphorePermit,
}

impl Core {
    pub fn load(bytes: &[u8], parts: Parts, options: Options) -> Result<Self, LoadError> {
        let engine = component::engine(&options)?;
        let pre = component::load(&engine, bytes, &options)?;
        let ticker = Ticker::start(&engine).map_err(|e| LoadError::Engine(e.to_string()))?;
        let shared = Arc::new(Shared {
            parts,
            locks: Arc::default(),
            connections: Connections::default(),
            host_call_time: options.host_call_time,
        });
        Ok(Self {
            shared,
            engine,
            pre,
            places: Places::new(&options),
            closing: watch::Sender::new(false),
            admitted: watch::Sender::new(0),
            parked: AtomicUsize::new(0),
            _ticker: ticker,
            options,
        })
    }

    /// Lets a call in, unless the host is stopping.
    pub fn admit(&self) -> Result<Admitted<'_>, CallError> {
        // Counted first and looked at second: `shutdown` does it the other
        // way round, so that one of the two sees the other.
        self.admitted.send_modify(|n| *n += 1);
        let admitted = Admitted(self);
        if self.is_closing() { Err(stopping()) } else { Ok(admitted) }
    }

    /// A fresh instance, waiting in line for a free place.
    pub async fn instance(&self, name: &'static str) -> Result<Call, CallError> {
        self.unless_closing(self.begin(name, self.places.for_caller())).await
    }

    /// As `instance`, for the background worker, whose places no caller takes.
    pub async fn worker_instance(&self, name: &'static str) -> Result<Call, CallError> {
        self.unless_closing(self.begin(name, self.places.for_worker())).await
    }

    /// As `instance`, for calls that shutdown itself resumes.
    pub async fn instance_even_closing(&self, name: &'static str) -> Result<Call, CallError> {
        self.begin(name, self.places.for_caller()).await
    }

    async fn unless_closing<T>(&self, work: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
        tokio::select! {
            biased;
            () = self.closed() => Err(stopping()),
            done = work => done,
        }
    }

    /// Instantiates the component once there is a place.
    async fn begin(
        &self,
        name: &'static str,
        place: impl Future<Output = Option<OwnedSemaphorePermit>>,
    ) -> Result<Call, CallError> {
        let place = tokio::time::timeout(self.options.call_time, place);
        let permit = place.await.ok().flatten().ok_or_else(busy)?;
        let deadline = Instant::now() + self.options.call_time;
        let mut store = Store::new(&self.engine, State::new(self.shared.clone(), &self.options));
        store.limiter(|state| &mut state.limits);
        store.set_hostcall_fuel(HOSTCALL_BYTES);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().meter.tick()?;
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        // Instantiation runs guest code too.
        store.set_epoch_deadline(1);
        match within(deadline, self.pre.instantiate_async(&mut store)).await {
            Ok(guest) => Ok(Call { store, guest, deadline, name, _permit: permit }),
            Err(error) => {
                drop(store);
                Err(fault(name, &error))
            }
        }
    }

    pub fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until the host is stopping.
    pub async fn closed(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Refuses new calls and waits until the admitted ones have answered.
    pub async fn shutdown(&self) {
        self.closing.send_replace(true);
        let _ = self.admitted.subscribe().wait_for(|n| *n == 0).await;
    }

    /// Counts a call as parked until the answer is dropped.
    pub fn park(&self) -> Parked<'_> {
        self.parked.fetch_add(1, Ordering::Relaxed);
        Parked(self)
    }

    /// Calls that wait for an event now.
    pub fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    /// Instances that run now.
    pub fn running(&self) -> usize {
        self.places.taken()
    }
}

/// Instances that may run at once: most for callers, some for the worker
/// alone. Without them its plans and steps, and so all users' jobs, would wait
/// behind the user who calls most.
struct Places {
    callers: Arc<Semaphore>,
    worker: Arc<Semaphore>,
    total: usize,
}

impl Places {
    fn new(options: &Options) -> Self {
        let (all, worker) = (options.places() as usize, options.worker_places() as usize);
        let semaphore = |places| Arc::new(Semaphore::new(places));
        Self { callers: semaphore(all - worker), worker: semaphore(worker), total: all }
    }

    async fn for_caller(&self) -> Option<OwnedSemaphorePermit> {
        self.callers.clone().acquire_owned().await.ok()
    }

    /// One of its own, or whichever place is free first.
    async fn for_worker(&self) -> Option<OwnedSemaphorePermit> {
        let permit = tokio::select! {
            biased;
            permit = self.worker.clone().acquire_owned() => permit,
            permit = self.callers.clone().acquire_owned() => permit,
        };
        permit.ok()
    }

    fn taken(&self) -> usize {
        self.total.saturating_sub(self.callers.available_permits() + self.worker.available_permits())
    }
}

/// A call that waits for an event, for the count.
pub struct Parked<'a>(&'a Core);

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Call {
    /// Ends the call with what the guest answered. The store is gone when
    /// this returns: locks are free and open transactions undone before
    /// anybody learns of the answer.
    pub fn end<T>(self, answer: wasmtime::Result<T>) -> Result<T, CallError> {
        let name = self.name;
        drop(self);
        answer.map_err(|error| fault(name, &error))
    }
}

/// The time of the whole call is used up.
#[derive(Debug, thiserror::Error)]
#[error("the call took longer than it may")]
struct CallTime;

/// Awaits the guest until `deadline`.
pub async fn within<T>(deadline: Instant, work: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    match tokio::time::timeout_at(deadline, work).await {
        Ok(answer) => answer,
        Err(_) => Err(CallTime.into()),
    }
}

/// What the caller learns of a fault: a code and a fixed sentence. The rest,
/// which may name paths and data, goes to the operator's log alone.
fn fault(name: &'static str, error: &wasmtime::Error) -> CallError {
    const REST: &str = "Whether it took effect is not known: look before you repeat it. Other calls are not affected.";
    let (code, what) = if error.is::<CallTime>() || error.downcast_ref::<Stopped>() == Some(&Stopped::GuestTime) {
        (FaultCode::TimedOut, "The team component took too long in this call.")
    } else if error.downcast_ref::<Stopped>() == Some(&Stopped::Memory) {
        (FaultCode::OutOfMemory, "The team component needed more memory in this call than it may use.")
    } else {
        (FaultCode::Trapped, "The team component failed in this call.")
    };
    let trap = error.downcast_ref::<Trap>();
    tracing::error!(call = name, %code, ?trap, detail = format!("{error:?}"), "a call into the component failed");
    CallError::Fault { code, message: format!("{what} {REST}") }
}

/// The component answered something that its contract does not allow.
pub fn malformed(name: &'static str, what: &'static str) -> CallError {
    tracing::error!(call = name, what, "the component broke its contract");
    CallError::Fault {
        code: FaultCode::Trapped,
        message: "The team component answered this call with something unreadable. \
                  Whether it took effect is not known: look before you repeat it."
            .into(),
    }
}

/// A call that parks without end. Repeating it would only wait as long again.
pub fn waited_too_long() -> CallError {
    CallError::Fault {
        code: FaultCode::WaitedTooLong,
        message: "The call waited for as long as a call may wait.".into(),
    }
}

fn busy() -> CallError {
    CallError::Fault {
        code: FaultCode::Busy,
        message: "Too many calls at once, nothing happened. Try again in a moment.".into(),
    }
}

pub fn stopping() -> CallError {
    CallError::Fault { code: FaultCode::Stopping, message: "The host is stopping. Try again when it is back.".into() }
}

/// The longest that one call waits in all, over all its parks.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);
