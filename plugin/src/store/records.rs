//! The stored records. Those that hold what people and members wrote carry the
//! version of their format, and one of another version does not parse; entries of
//! indexes have the store's. `lifecycle.init` makes a store ready before anything
//! else reads a record.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::domain::hold_code::one_kind;
use crate::domain::job::{Answer, Failure, Hold, JobKind, Phase, Source};
use crate::domain::state::Entry;

/// The format of the whole store. 2: jobs remember the run that asked, and that
/// they were cancelled while their outcome is unknown.
pub const STORE_FORMAT: u32 = 2;

/// The mark of format 1 in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V1;

impl Serialize for V1 {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(1)
    }
}

impl<'de> Deserialize<'de> for V1 {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match u8::deserialize(d)? {
            1 => Ok(V1),
            other => Err(D::Error::custom(alloc::format!("record format {other}, expected 1"))),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub format: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub id: String,
    pub name: String,
    pub agent: String,
    pub thread: String,
}

/// What never changes about a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    pub v: V1,
    pub id: String,
    pub name: String,
    pub goal: String,
    /// 16 random bytes in hexadecimal: a team that is deleted and made again
    /// has other jobs, conversations and run keys.
    pub nonce: String,
    pub members: Vec<Member>,
    /// The member marked as lead. Absent: only the owner leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// The team whose public state this one began with. It may be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor_of: Option<String>,
    pub request_id: String,
    /// Digest of what was asked, so that the same request id with another
    /// roster is a conflict.
    pub digest: String,
    /// Milliseconds since the epoch.
    pub created_at: u64,
}

impl Team {
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|m| m.id == id)
    }

    pub fn member_of_thread(&self, thread: &str) -> Option<&Member> {
        self.members.iter().find(|m| m.thread == thread)
    }
}

/// Why a team is not connected, as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnect {
    pub code: String,
    pub message: String,
    /// Disconnects in a row, without a run in between that the host told of.
    pub tries: u32,
    /// When a host that reconnects by itself tries again.
    pub next_at: u64,
}

/// A member whose agent the host no longer gives, as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    pub member: String,
    pub message: String,
}

/// What changes about a team with every command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub v: V1,
    /// Grows with every change that anyone can see.
    pub revision: u64,
    /// All members' conversations exist.
    pub ready: bool,
    /// Whether the last change of the connection was a connect. The process
    /// may have lost its capability since.
    pub connected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disconnect: Option<Disconnect>,
    /// The `tries` of the next disconnect, less one. A connect that succeeds
    /// proves little, so only what the host says of a run resets it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disconnects: u32,
    /// Members that cannot work, as the last connect found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<Gone>,
    /// Numbers of the newest job, message and notice.
    pub jobs: u32,
    pub messages: u32,
    pub notices: u32,
    pub requests: u32,
    pub receipts: u32,
    pub unfinished: u32,
    /// Unfinished jobs that need a person. Absent: not counted in this team,
    /// which an earlier version of this component made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
    /// Entries of the public state.
    #[serde(default)]
    pub entries: u32,
    /// Grows with every change of the public state.
    #[serde(default)]
    pub state_revision: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultMeta {
    /// Whether the stored answer was cut. Absent: unknown (imported).
    pub truncated: Option<bool>,
    /// The run whose turn gave the answer. Empty: unknown (imported).
    pub run: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub v: V1,
    pub id: String,
    pub n: u32,
    pub kind: JobKind,
    /// Absent for a receipt into a conversation that is not a member's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The conversation in which it runs.
    pub thread: String,
    pub source: Source,
    /// The number of the chain's first request.
    pub root: u32,
    /// The number of the job during which it was asked, or, for a receipt, of
    /// its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// Requests in the chain; kept at its root only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chain: u32,
    pub request_id: String,
    /// Digest of what was asked.
    pub digest: String,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The number of the slot that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Counted in the head as one that needs a person.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub waits: bool,
    /// Place in its conversation.
    pub seq: u32,
    /// The idempotency key of its run where it is not derived (imported).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Inputs that were sent and definitely not admitted. Each further one has
    /// other bytes, so it has another key.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u32,
    /// The human message that carried the newest input: where the turn begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The run that this message started, which a host that rewrites message
    /// ids stamps on it. A resumed interrupt continues in another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_run: Option<String>,
    /// The answer that the newest input carries; absent for the request itself
    /// and once the job is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Digest of the frozen input, kept when the input is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Request ids of answers given so far, with their digests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultMeta>,
    /// The run that ended without an answer, for readers of its
    /// conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Something a reader should know about a finished job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Zero: unknown (imported).
    pub created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<u64>,
}

/// What a new job is made of.
pub struct NewJob {
    pub id: String,
    pub kind: JobKind,
    pub member: Option<String>,
    pub thread: String,
    pub source: Source,
    pub request_id: String,
    pub digest: String,
    pub created_at: u64,
}

impl Job {
    /// Whether what it left in the shared record, as `kind`, is a part of its
    /// whole answer.
    pub fn answer_was_cut(&self, kind: MessageKind) -> bool {
        kind == MessageKind::Result && self.result.as_ref().is_some_and(|result| result.truncated == Some(true))
    }

    /// A job that nothing has happened to. It begins a chain of its own, counts
    /// nothing yet, and gets its number and place when it is added to its team.
    pub fn queued(new: NewJob) -> Self {
        let NewJob { id, kind, member, thread, source, request_id, digest, created_at } = new;
        Self {
            v: V1,
            id,
            n: 0,
            kind,
            member,
            thread,
            source,
            root: 0,
            parent: None,
            chain: 0,
            request_id,
            digest,
            phase: Phase::Queued,
            hold: None,
            slot: None,
            waits: false,
            seq: 0,
            key: None,
            refused: 0,
            message: None,
            message_run: None,
            answer: None,
            input: None,
            answers: Vec::new(),
            result: None,
            ended_run: None,
            failure: None,
            note: None,
            created_at,
            completed_at: None,
        }
    }

    /// As the rules know it. Format 1 could store a second attempt of an answer
    /// as one of the request, which would have sent the request again.
    pub fn read(mut self) -> Self {
        if let (Phase::Starting, Some(answer)) = (&self.phase, &self.answer) {
            let run = answer.asker.clone().unwrap_or_default();
            self.phase = Phase::Resuming { run, answer: answer.clone() };
        }
        self
    }

    /// The run that is at work, gave the answer, or ended without one.
    pub fn run(&self) -> Option<&str> {
        let answered = || self.result.as_ref().map(|r| r.run.as_str()).filter(|run| !run.is_empty());
        self.phase.run().or_else(answered).or(self.ended_run.as_deref())
    }

    /// Which refusal of this kind in a row the next one is, from 1.
    pub fn tries(&self, code: &str) -> u32 {
        self.hold.as_ref().filter(|h| one_kind(&h.code, code)).map_or(0, |h| h.tries).saturating_add(1)
    }
}

fn is_false(b: &bool) -> bool {
    !*b
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// An unfinished job as the planner sees it: all it needs, and no history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    pub team: String,
    pub job: u32,
    pub need: Need,
    /// When it asked for what it needs.
    pub since: u64,
    /// Not before; zero: at once.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub next_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

fn is_zero_u64(n: &u64) -> bool {
    *n == 0
}

/// What an unfinished job needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// A slot.
    Slot,
    /// A person.
    Person,
    /// The end of its run.
    End,
    /// To be asked of the host again.
    Host,
}

/// A job that a person settled while its run may live, or may have stopped at
/// interrupts: what is left of it in its conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlived {
    pub team: String,
    pub n: u32,
    /// The last run that is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The key of an attempt whose run the host has not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// An admitted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub v: V1,
    pub owner: String,
    pub team: String,
    /// The job's number in its team.
    pub n: u32,
    pub job: String,
    pub thread: String,
    pub since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A request was made.
    Request,
    /// It ended with an answer.
    Result,
    /// It ended without one (failed or cancelled).
    Notice,
}

/// A line of the shared record. Its text is that of the job, so that nothing
/// is stored twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub v: V1,
    pub seq: u32,
    pub kind: MessageKind,
    pub job: u32,
    pub at: u64,
    /// What it says, where that is not the job's own text (imported).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An entry of the public state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEntry {
    pub v: V1,
    pub n: u32,
    pub entry: Entry,
}

/// The exact input of a run, stored before the host is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub v: V1,
    pub key: String,
    pub input: FrozenInput,
    /// Notices that this input carries; dropped once the run is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<u32>,
    /// A person wants it sent once more although the host cannot tell whether
    /// it was admitted before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insist: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenInput {
    Message {
        id: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<String>,
        provenance: String,
    },
    Interrupts {
        answers: Vec<FrozenAnswer>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    pub id: String,
    /// JSON text.
    pub value: String,
}

/// The reply to a mutating tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMemo {
    pub v: V1,
    pub digest: String,
    /// JSON text.
    pub reply: String,
}
