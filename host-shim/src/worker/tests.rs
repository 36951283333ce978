//! The worker against a component that answers only when the test says so.

use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::agents::runs::{AgentRuns, Cancellation, Input, InterruptAnswer, Marker, Run, RunError, ThreadState};
use crate::contract::{ErrorKind, Refusal, Step};

/// One call into the fake, held open until the test answers it.
enum Call {
    Plan { ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>, reply: oneshot::Sender<Result<Plan, CallError>> },
    Advance { team: TeamRef, permit: Vec<u8>, reply: oneshot::Sender<Result<bool, CallError>> },
    Connect { team: TeamRef, reply: oneshot::Sender<Result<(), CallError>> },
}

struct Fake(mpsc::UnboundedSender<Call>);

#[async_trait]
impl Team for Fake {
    async fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>) -> Result<Plan, CallError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.send(Call::Plan { ended, sweep, resting, reply });
        answer.await.expect("the test let go of the call: a panic")
    }
    async fn advance(&self, team: &TeamRef, permit: &[u8]) -> Result<bool, CallError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.send(Call::Advance { team: team.clone(), permit: permit.into(), reply });
        answer.await.expect("the test let go of the call: a panic")
    }
    async fn connect(&self, team: &TeamRef, _runs: Capability) -> Result<(), CallError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.send(Call::Connect { team: team.clone(), reply });
        answer.await.expect("the test let go of the call: a panic")
    }
}

/// Runs that nobody starts.
struct NoRuns;

#[async_trait]
impl AgentRuns for NoRuns {
    async fn create_thread(&self, _: &str, _: &str, _: &str, _group: &str) -> Result<(), RunError> {
        Ok(())
    }
    async fn start(&self, _: &str, _: &Input, _: &str) -> Result<Run, RunError> {
        Err(RunError::TimedOut)
    }
    async fn resume(&self, _: &str, _: &[InterruptAnswer], _: &str) -> Result<Run, RunError> {
        Err(RunError::TimedOut)
    }
    async fn find(&self, _: &str, _: &str) -> Result<Run, RunError> {
        Err(RunError::TimedOut)
    }
    async fn get(&self, _: &str, _: &str) -> Result<Run, RunError> {
        Err(RunError::TimedOut)
    }
    async fn state(&self, _: &str, _: Option<&Marker>, _: Option<&str>) -> Result<ThreadState, RunError> {
        Err(RunError::TimedOut)
    }
    async fn cancel(&self, _: &str, _: &str) -> Result<Cancellation, RunError> {
        Err(RunError::TimedOut)
    }
}

struct Bench {
    calls: mpsc::UnboundedReceiver<Call>,
    ended: broadcast::Sender<EndedRun>,
    signals: broadcast::Sender<SignalEvent>,
    worker: Worker,
}

/// No pause and no sweep unless the test asks for one.
fn options() -> Options {
    Options {
        sweep: Duration::from_secs(3600),
        step_time: Duration::from_secs(3600),
        pause_min: Duration::from_millis(1),
        pause_max: Duration::from_millis(1),
        ..Options::default()
    }
}

impl Bench {
    fn start(options: Options) -> Self {
        Self::with_capabilities(options, None)
    }

    fn with_capabilities(options: Options, reconnect: Option<CapabilityOf>) -> Self {
        let (tx, calls) = mpsc::unbounded_channel();
        let ended = broadcast::channel(4).0;
        let signals = broadcast::channel(4).0;
        let worker = Worker::start(Arc::new(Fake(tx)), ended.subscribe(), signals.subscribe(), reconnect, options);
        Self { calls, ended, signals, worker }
    }

    async fn next(&mut self) -> Call {
        self.calls.recv().await.expect("the worker lives")
    }

    async fn plan(&mut self) -> (Vec<EndedRun>, bool, oneshot::Sender<Result<Plan, CallError>>) {
        match self.next().await {
            Call::Plan { ended, sweep, reply, .. } => (ended, sweep, reply),
            Call::Advance { team, .. } | Call::Connect { team, .. } => panic!("no plan but a call for {}", team.team),
        }
    }

    /// Answers the next plan with one that names these teams.
    async fn plans(&mut self, teams: &[&str]) {
        let (_, _, reply) = self.plan().await;
        let _ = reply.send(Ok(plan(teams)));
    }

    async fn step(&mut self) -> (String, Vec<u8>, oneshot::Sender<Result<bool, CallError>>) {
        match self.next().await {
            Call::Advance { team, permit, reply } => (team.team, permit, reply),
            Call::Plan { .. } => panic!("no step but a plan"),
            Call::Connect { team, .. } => panic!("no step but a connect of {}", team.team),
        }
    }

    async fn connect(&mut self) -> (String, oneshot::Sender<Result<(), CallError>>) {
        match self.next().await {
            Call::Connect { team, reply } => (team.team, reply),
            Call::Plan { .. } => panic!("no connect but a plan"),
            Call::Advance { team, .. } => panic!("no connect but a step of {}", team.team),
        }
    }

    fn signal(&self) {
        let _ = self.signals.send(SignalEvent { owner: "u".into(), topic: "t".into(), position: 1, revision: 1 });
    }

    fn run_ended(&self, run: &str) {
        let _ = self.ended.send(EndedRun { owner: "o".into(), thread: "th".into(), run: run.into() });
    }
}

fn team(name: &str) -> TeamRef {
    TeamRef { owner: "u".into(), team: name.into() }
}

fn plan(teams: &[&str]) -> Plan {
    let steps = teams.iter().map(|t| Step { team: team(t), permit: format!("permit-{t}").into_bytes() }).collect();
    Plan { batch: None, steps, connect: vec![], next_ms: 3_600_000 }
}

fn ids(runs: &[EndedRun]) -> Vec<&str> {
    runs.iter().map(|r| r.run.as_str()).collect()
}

fn refused() -> CallError {
    CallError::Refused(Refusal {
        kind: ErrorKind::Unavailable,
        code: "store_unavailable".into(),
        message: "Try again.".into(),
        field: None,
        detail: None,
    })
}

#[tokio::test]
async fn the_first_plan_is_a_sweep_and_a_change_is_planned_again() {
    let mut bench = Bench::start(options());
    let (ended, sweep, reply) = bench.plan().await;
    assert!(ended.is_empty() && sweep);
    let _ = reply.send(Ok(plan(&["a"])));
    let (name, permit, reply) = bench.step().await;
    assert_eq!((name.as_str(), permit.as_slice()), ("a", b"permit-a".as_slice()));
    let _ = reply.send(Ok(true));
    let (_, sweep, reply) = bench.plan().await;
    assert!(!sweep, "an ordinary event asks for no sweep");
    let _ = reply.send(Ok(plan(&["a"])));
    assert_eq!(bench.step().await.0, "a");
}

#[tokio::test]
async fn an_ended_run_is_handed_over_until_a_plan_with_it_succeeded() {
    let mut bench = Bench::start(options());
    let (_, _, first) = bench.plan().await;
    // Both arrive while a plan is being made that does not know of them.
    bench.run_ended("r1");
    bench.run_ended("r2");
    bench.run_ended("r1");
    let _ = first.send(Ok(plan(&[])));
    let (mut ended, _, mut reply) = bench.plan().await;
    if ended.len() < 2 {
        // The second event was read after this plan had begun.
        let _ = reply.send(Err(refused()));
        (ended, _, reply) = bench.plan().await;
    }
    assert_eq!(ids(&ended), ["r1", "r2"]);
    bench.run_ended("r3");
    let _ = reply.send(Err(refused()));
    let (mut ended, _, reply) = bench.plan().await;
    if ended.len() < 3 {
        let _ = reply.send(Err(refused()));
        let again = bench.plan().await;
        ended = again.0;
        drop(again.2); // a panic
    } else {
        drop(reply);
    }
    assert_eq!(ids(&ended), ["r1", "r2", "r3"], "a refused plan keeps its runs");
    let (ended, _, reply) = bench.plan().await;
    assert_eq!(ids(&ended), ["r1", "r2", "r3"], "a plan that broke down keeps its runs");
    let _ = reply.send(Ok(plan(&[])));
    bench.signal();
    let (ended, _, _reply) = bench.plan().await;
    assert!(ended.is_empty(), "handed over once it has succeeded");
}

#[tokio::test]
async fn one_step_a_team_and_a_hung_team_stops_no_other() {
    let mut bench = Bench::start(options());
    bench.plans(&["a", "b"]).await;
    let (first, _, hung) = bench.step().await;
    let (second, _, reply) = bench.step().await;
    assert_eq!((first.as_str(), second.as_str()), ("a", "b"));
    let _ = reply.send(Ok(true));
    for _ in 0..3 {
        bench.plans(&["a", "b"]).await;
        let (name, _, reply) = bench.step().await;
        assert_eq!(name, "b", "a has a step under way");
        let _ = reply.send(Ok(true));
    }
    bench.plans(&["a"]).await;
    let _ = hung.send(Ok(false));
    // Planned again meanwhile: its next step runs although the last one
    // changed nothing.
    bench.plans(&["a"]).await;
    assert_eq!(bench.step().await.0, "a");
}

#[tokio::test]
async fn a_step_that_changes_nothing_is_not_repeated_without_an_event() {
    let mut bench = Bench::start(options());
    bench.plans(&["a"]).await;
    let (_, _, reply) = bench.step().await;
    let _ = reply.send(Ok(false));
    // The rest of the plan may look different now, so it is asked for once.
    bench.plans(&["a", "b"]).await;
    let (name, _, _hung) = bench.step().await;
    assert_eq!(name, "b");
    bench.signal();
    bench.plans(&["a"]).await;
    assert_eq!(bench.step().await.0, "a", "an event gives it another try");
}

#[tokio::test]
async fn a_failing_team_is_retried_and_hurts_no_other() {
    let mut bench = Bench::start(options());
    bench.plans(&["a", "b"]).await;
    let (_, _, a) = bench.step().await;
    let (_, _, b) = bench.step().await;
    let _ = a.send(Err(refused()));
    let mut tried = 0;
    let mut b = Some(b);
    while tried < 3 {
        match bench.next().await {
            Call::Plan { reply, .. } => drop(reply.send(Ok(plan(&["a", "b"])))),
            Call::Advance { team, reply, .. } if team.team == "a" => {
                tried += 1;
                if tried == 2 {
                    drop(reply); // a panic
                } else {
                    let _ = reply.send(Err(refused()));
                }
            }
            Call::Advance { reply, .. } => b = Some(reply),
            Call::Connect { .. } => panic!("nothing to connect"),
        }
        if let Some(reply) = b.take() {
            let _ = reply.send(Ok(true));
        }
    }
}

#[tokio::test]
async fn a_run_that_ends_during_the_step_that_started_it_is_handed_over_again() {
    let mut bench = Bench::start(options());
    bench.plans(&["a"]).await;
    let (_, _, starting) = bench.step().await;
    // The run ends before the step has stored that it began.
    bench.run_ended("r");
    let (ended, _, reply) = bench.plan().await;
    assert_eq!(ids(&ended), ["r"]);
    let _ = reply.send(Ok(plan(&[])));
    let _ = starting.send(Ok(true));
    let (ended, _, reply) = bench.plan().await;
    assert_eq!(ids(&ended), ["r"], "now the records tell whose it is");
    let _ = reply.send(Ok(plan(&["a"])));
    let (_, _, collecting) = bench.step().await;
    let _ = collecting.send(Ok(true));
    assert!(bench.plan().await.0.is_empty(), "and not for ever");
}

#[tokio::test]
async fn missed_events_ask_for_a_sweep() {
    let mut bench = Bench::start(options());
    let (_, _, first) = bench.plan().await;
    // More than the channel holds, sent before the worker can read any.
    for n in 0..20 {
        bench.run_ended(&format!("r{n}"));
    }
    let _ = first.send(Ok(plan(&[])));
    let mut swept = false;
    while !swept {
        let (_, sweep, reply) = bench.plan().await;
        swept = sweep;
        let _ = reply.send(Ok(plan(&[])));
    }
}

#[tokio::test]
async fn a_sweep_comes_although_nothing_happens() {
    let mut bench = Bench::start(Options { sweep: Duration::from_millis(5), ..options() });
    bench.plans(&[]).await;
    for _ in 0..3 {
        let (_, sweep, reply) = bench.plan().await;
        assert!(sweep);
        let _ = reply.send(Ok(plan(&[])));
    }
}

#[tokio::test]
async fn the_plan_names_the_time_of_the_next_one() {
    let mut bench = Bench::start(options());
    let (_, _, reply) = bench.plan().await;
    let _ = reply.send(Ok(Plan { next_ms: 1, ..Plan::default() }));
    let (_, sweep, _) = bench.plan().await;
    assert!(!sweep, "earlier than the sweep");
}

#[tokio::test]
async fn no_more_steps_at_once_than_allowed() {
    let mut bench = Bench::start(Options { steps: 2, ..options() });
    bench.plans(&["a", "b", "c"]).await;
    let (_, _, a) = bench.step().await;
    let (_, _, _b) = bench.step().await;
    bench.signal();
    // Were `c` started, its step would come before this plan's answer ends.
    bench.plans(&["c"]).await;
    let _ = a.send(Ok(true));
    loop {
        match bench.next().await {
            Call::Plan { reply, .. } => drop(reply.send(Ok(plan(&["c"])))),
            Call::Advance { team, .. } => return assert_eq!(team.team, "c"),
            Call::Connect { .. } => panic!("nothing to connect"),
        }
    }
}

#[tokio::test]
async fn named_teams_of_enabled_users_are_connected_and_retried() {
    let capability: CapabilityOf =
        Arc::new(|owner| Ok((owner == "u").then(|| Capability { owner: owner.into(), runs: Arc::new(NoRuns) })));
    let mut bench = Bench::with_capabilities(options(), Some(capability));
    let named = || {
        let disabled = TeamRef { owner: "gone".into(), team: "x".into() };
        Plan { connect: vec![disabled, team("a")], next_ms: 3_600_000, ..Plan::default() }
    };
    let (_, _, reply) = bench.plan().await;
    let _ = reply.send(Ok(named()));
    let (name, reply) = bench.connect().await;
    assert_eq!(name, "a");
    let _ = reply.send(Err(refused()));
    let reply = loop {
        match bench.next().await {
            Call::Plan { reply, .. } => drop(reply.send(Ok(named()))),
            Call::Connect { team, reply } => {
                assert_eq!(team.team, "a", "a disabled user's team stays alone");
                break reply;
            }
            Call::Advance { .. } => panic!("no steps"),
        }
    };
    let _ = reply.send(Ok(()));
    bench.plans(&["a"]).await;
    loop {
        match bench.next().await {
            Call::Plan { reply, .. } => drop(reply.send(Ok(plan(&["a"])))),
            Call::Advance { team, .. } => return assert_eq!(team.team, "a"),
            Call::Connect { .. } => panic!("connected already"),
        }
    }
}

#[tokio::test]
async fn without_leave_to_reconnect_nothing_is_connected() {
    let mut bench = Bench::start(options());
    let (_, _, reply) = bench.plan().await;
    let _ = reply.send(Ok(Plan { connect: vec![team("a")], ..plan(&["b"]) }));
    assert_eq!(bench.step().await.0, "b");
    bench.signal();
    bench.plans(&[]).await;
}

#[tokio::test]
async fn shutdown_waits_for_steps_and_starts_none() {
    let mut bench = Bench::start(options());
    bench.plans(&["a"]).await;
    let (_, _, reply) = bench.step().await;
    let stopping = tokio::spawn(bench.worker.shutdown(Duration::from_secs(3600)));
    bench.ended.send(EndedRun { owner: "o".into(), thread: "t".into(), run: "r".into() }).ok();
    let _ = reply.send(Ok(true));
    stopping.await.expect("the worker stops once its step has ended");
    assert!(bench.calls.recv().await.is_none(), "nothing was started after the stop");
}

#[tokio::test]
async fn shutdown_cancels_what_does_not_end() {
    let mut bench = Bench::start(options());
    bench.plans(&["a"]).await;
    let (_, _, mut reply) = bench.step().await;
    bench.worker.shutdown(Duration::ZERO).await;
    reply.closed().await;
}

#[test]
fn two_failed_plans_wait_longer_and_a_busy_team_is_not_lost() {
    let now = Instant::now();
    let pace = Options { pause_min: Duration::from_secs(1), pause_max: Duration::from_secs(60), ..options() };
    let mut state = State::new(&pace);
    let (took, sweep) = state.take_plan(now).expect("the first plan");
    state.plan_failed(took, sweep, now);
    assert!(state.take_plan(now).is_none(), "not before the pause is over");
    assert_eq!(state.wake_at(now), now + Duration::from_secs(1));
    let later = now + Duration::from_secs(1);
    let (took, sweep) = state.take_plan(later).expect("after the pause");
    assert!(sweep, "a failed sweep is still owed");
    state.plan_failed(took, sweep, later);
    assert_eq!(state.wake_at(later), later + Duration::from_secs(2));

    let later = later + Duration::from_secs(2);
    state.take_plan(later).expect("after the second pause");
    state.planned(plan(&["a"]), &[], later);
    assert!(matches!(state.take_start(later, false), Some(Start::Step { .. })));
    let pause = state.step_failed(&team("a"), later);
    assert_eq!(pause, Duration::from_secs(1));
    state.take_plan(later).expect("a failed step is planned again");
    state.planned(plan(&["a"]), &[], later);
    assert_eq!(state.take_start(later, false), None, "its pause is not over");
    assert_eq!(state.wake_at(later), later + pause);
}

#[tokio::test]
async fn a_plan_is_told_which_teams_rest() {
    let hour = Duration::from_secs(3600);
    let mut bench = Bench::start(Options { pause_min: hour, pause_max: hour, ..options() });
    bench.plans(&["a"]).await;
    let (_, _, a) = bench.step().await;
    let _ = a.send(Err(refused()));
    match bench.next().await {
        Call::Plan { resting, .. } => assert_eq!(resting, [team("a")]),
        _ => panic!("a failed step is planned again"),
    }
}

#[test]
fn nobody_is_planned_behind_a_team_that_rests() {
    let now = Instant::now();
    let pace = Options { pause_min: Duration::from_secs(2), pause_max: Duration::from_secs(60), ..options() };
    let mut state = State::new(&pace);
    assert!(state.resting(now).is_empty());
    state.take_plan(now).expect("the first plan");
    state.planned(plan(&["a"]), &[], now);
    assert!(matches!(state.take_start(now, false), Some(Start::Step { .. })));
    let pause = state.step_failed(&team("a"), now);
    assert_eq!(state.resting(now), [team("a")]);
    // A plan that leaves it out is followed by another one when its pause ends.
    state.take_plan(now).expect("a failed step is planned again");
    state.planned(Plan { next_ms: 3_600_000, ..plan(&["b"]) }, &[], now);
    assert_eq!(state.wake_at(now), now + pause);
    assert!(state.take_plan(now + pause).is_some());
    assert!(state.resting(now + pause).is_empty());
}

/// A slot that is offered to a team whose step takes long would wait for it.
#[test]
fn a_team_whose_step_is_under_way_is_offered_nothing() {
    let now = Instant::now();
    let mut state = State::new(&options());
    state.take_plan(now).expect("the first plan");
    state.planned(plan(&["a", "b"]), &[], now);
    assert!(matches!(state.take_start(now, false), Some(Start::Step { .. })));
    assert_eq!(state.resting(now), [team("a")]);
    assert!(matches!(state.take_start(now, false), Some(Start::Step { .. })));
    assert_eq!(state.resting(now), [team("a"), team("b")]);
    state.step_ended(&team("a"), Vec::new(), true);
    state.step_failed(&team("b"), now);
    assert_eq!(state.resting(now), [team("b")], "it pauses now");
}

#[test]
fn a_plan_that_always_asks_for_another_step_cannot_spin() {
    let now = Instant::now();
    let mut state = State::new(&options());
    let mut steps = 0;
    while state.take_plan(now).is_some() {
        // A permit that is new each time, and steps that change nothing.
        let step = Step { team: team("a"), permit: format!("p{steps}").into_bytes() };
        state.planned(Plan { steps: vec![step], next_ms: 0, ..Plan::default() }, &[], now);
        while let Some(Start::Step { team, permit }) = state.take_start(now, false) {
            steps += 1;
            assert!(steps < 10, "spinning");
            state.step_ended(&team, permit, false);
        }
    }
    assert!(state.wake_at(now) > now);
}

/// A plan that was given an end may name a step that is never made: because its
/// team is busy, or because the step fails. No end is lost with it.
#[test]
fn an_end_that_no_step_looked_at_is_handed_over_again() {
    let mut state = State::new(&options());
    let now = tokio::time::Instant::now();
    let run = EndedRun { owner: "o".into(), thread: "t".into(), run: "r".into() };
    state.take_plan(now).expect("the first plan");
    // It ends while the plan is made, and the plan's step begins without it.
    state.run_ended(run.clone());
    state.planned(plan(&["a"]), &[], now);
    assert!(matches!(state.take_start(now, true), Some(Start::Step { .. })));
    let (took, _) = state.take_plan(now).expect("something happened");
    assert_eq!(took, std::slice::from_ref(&run));
    // The team is busy: the step is not made, and the end is kept.
    state.planned(plan(&["a"]), &took, now);
    assert_eq!(state.take_start(now, true), None);
    state.step_ended(&team("a"), Vec::new(), true);
    let (took, _) = state.take_plan(now).expect("planned again");
    assert_eq!(took, std::slice::from_ref(&run));
    // Made, but it fails: the end is kept again.
    state.planned(plan(&["a"]), &took, now);
    assert!(matches!(state.take_start(now, true), Some(Start::Step { .. })));
    state.step_failed(&team("a"), now);
    let (took, _) = state.take_plan(now).expect("planned again");
    assert_eq!(took, [run]);
}

#[test]
fn a_step_that_ended_while_the_plan_was_made_has_overtaken_it() {
    let now = Instant::now();
    let mut state = State::new(&options());
    state.take_plan(now).expect("the first plan");
    state.planned(plan(&["a"]), &[], now);
    assert!(matches!(state.take_start(now, false), Some(Start::Step { .. })));
    let end = EndedRun { owner: "o".into(), thread: "t".into(), run: "r".into() };
    state.run_ended(end.clone());
    let (took, sweep) = state.take_plan(now).expect("an event is planned");
    assert!(!sweep);
    assert_eq!(took, std::slice::from_ref(&end));
    state.step_ended(&team("a"), "permit".into(), true);
    // It was made before that step had ended: what it says of the team is old.
    state.planned(plan(&["a", "b"]), &took, now);
    let started = state.take_start(now, false);
    assert!(matches!(started, Some(Start::Step { ref team, .. }) if team.team == "b"), "{started:?}");
    assert_eq!(state.take_start(now, false), None);
    // The next one decides, and is given the same end.
    let (took, _) = state.take_plan(now).expect("planned again");
    assert_eq!(took, [end]);
}

#[test]
fn a_rest_that_ends_between_two_looks_at_the_clock_is_not_slept_through() {
    let ms = Duration::from_millis;
    let begun = Instant::now();
    let mut state = State::new(&options());
    state.take_plan(begun).expect("the first plan");
    state.planned(plan(&["a"]), &[], begun + ms(10));
    assert!(matches!(state.take_start(begun + ms(10), false), Some(Start::Step { .. })));
    state.something_happened();
    assert_eq!(state.take_plan(begun + ms(19)), None, "planning rests for as long as it took");
    for later in [19, 20, 21] {
        assert!(state.wake_at(begun + ms(later)) <= begun + ms(later.max(20)));
    }
    assert!(state.take_plan(begun + ms(20)).is_some());
}
