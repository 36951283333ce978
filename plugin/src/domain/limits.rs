//! All bounds, in one place. Their source is the product's specification;
//! `lifecycle.info` reports them.

use serde_json::{Value, json};

/// A bound on a text: Unicode scalar values and UTF-8 bytes, both counted on
/// the trimmed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub chars: usize,
    pub bytes: usize,
}

const fn bound(chars: usize, bytes: usize) -> Bound {
    Bound { chars, bytes }
}

pub const TEAM_NAME: Bound = bound(80, 160);
pub const GOAL: Bound = bound(2_000, 4_000);
pub const MEMBER_NAME: Bound = bound(80, 160);
pub const AGENT_NAME: Bound = bound(128, 256);
/// Requests and clarification answers.
pub const TEXT: Bound = bound(4_000, 8_000);
pub const REQUEST_ID: Bound = bound(128, 256);
pub const ID: Bound = bound(64, 64);
pub const QUERY: Bound = bound(200, 800);

/// A structured answer to an interrupt, as compact JSON.
pub const RESPONSE_BYTES: usize = 8_000;
/// What is stored of everything that a run stopped at, as compact JSON; the
/// whole stays in the conversation.
pub const INTERRUPTS_BYTES: usize = 32_000;
/// Interrupts that one run may stop at.
pub const INTERRUPTS: usize = 64;
/// An interrupt's id and its checkpoint, each.
pub const INTERRUPT_ID_BYTES: usize = 512;
/// What is stored of a question, and of all its suggested answers together.
pub const QUESTION_BYTES: usize = 8_000;
/// Answers that one job may be given, one for each time that it asks.
pub const ANSWERS_PER_JOB: usize = 200;
/// A member's stored answer.
pub const ANSWER_BYTES: usize = 6_000;
pub const EXCERPT_BYTES: usize = 500;
/// An answer imported from an earlier plugin.
pub const IMPORTED_ANSWER_BYTES: usize = 8_000;
/// Any other text imported from an earlier plugin.
pub const IMPORTED_TEXT_BYTES: usize = 65_536;

/// Blockers and write scopes of all task records of an imported log together.
pub const IMPORTED_EDGE_BYTES: u64 = 8 * 1024 * 1024;

pub const MEMBERS_MIN: usize = 2;
pub const MEMBERS_MAX: usize = 8;
pub const TEAMS_PER_OWNER: usize = 20;
pub const REQUESTS_PER_TEAM: u32 = 100;
pub const RECEIPTS_PER_TEAM: u32 = 100;
pub const REQUESTS_PER_CHAIN: u32 = 12;

/// Shared messages that a team keeps.
pub const MESSAGES_KEPT: u32 = 100;
/// Recent messages in the shared context.
pub const CONTEXT_MESSAGES: usize = 8;
pub const CONTEXT_BYTES: usize = 24_000;
/// Kept free in the shared context for what is not known when public state is
/// written: the note on messages left out and the digest of the task board.
pub const CONTEXT_RESERVE: usize = 600;
/// Every page of history, results or tasks.
pub const PAGE_BYTES: usize = 24_000;
/// Records on a page of history or results.
pub const PAGE_DEFAULT: u32 = 8;
pub const PAGE_MAX: u32 = 20;

/// Entries of the public state, archived ones included.
pub const STATE_ENTRIES: usize = 20;
/// Compact JSON of all entries together, archived ones included.
pub const STATE_BYTES: usize = 16_000;
pub const STATE_TITLE: Bound = bound(80, 160);
pub const STATE_CONTENT: Bound = bound(1_000, 2_000);

/// Tasks of a board that are not deleted, unless the deployment sets another.
pub const BOARD_TASKS: u64 = 256;
pub const BOARD_BLOCKERS: usize = 64;
pub const BOARD_SCOPES: usize = 32;
pub const BOARD_SCOPE_BYTES: usize = 256;
/// Versions of tasks that a board's journal keeps.
pub const BOARD_EVENTS: u32 = 10_000;
/// From here on readers are told how many are left.
pub const BOARD_EVENTS_WARN: u32 = 1_000;
pub const TASKS_DEFAULT: u32 = 50;
pub const TASKS_MAX: u32 = 100;
/// The owner's page of tasks: a whole board of common size at once.
pub const OWNER_TASKS_MAX: u32 = 256;
pub const OWNER_PAGE_BYTES: usize = 500_000;
/// Bytes of one part of an import.
pub const IMPORT_BYTES: usize = 1024 * 1024;
pub const WAIT_MIN_MS: u64 = 10_000;
pub const WAIT_MAX_MS: u64 = 3_600_000;
pub const WAIT_DEFAULT_MS: u64 = 30_000;
/// A wait looks this often whether anybody can still make progress.
pub const WAIT_LOOK_MS: u64 = 10_000;

pub const FEED_DEFAULT: u32 = 20;
pub const FEED_MAX: u32 = 200;

/// Admitted jobs in the whole database, unless the deployment sets another.
pub const SLOTS: u32 = 8;
/// More slots than are ever held.
pub const MANY_SLOTS: u32 = 1_000;

pub const MENTION_HITS: usize = 16;
pub const MENTION_REFERENCES: usize = 16;
/// UTF-16 code units.
pub const MENTION_LABEL: usize = 120;

/// An owner's id as the host gives it, in bytes.
pub const OWNER_BYTES: usize = 256;
/// A conversation's id as the host gives it, in bytes.
pub const THREAD_BYTES: usize = 256;

/// Milliseconds between two looks at work that is under way, in case an event
/// was lost.
pub const SWEEP_MS: u64 = 15_000;
/// One step of one job takes no more of the host's time than this, all its
/// calls together.
pub const JOB_MS: u64 = 10_000;
/// The longest that a host lets one call take.
pub const CALL_MS: u64 = 9_000;
/// One call of `advance` takes no new job after this many milliseconds, so
/// that others do not wait long for the team.
pub const STEP_MS: u64 = 1_000;
/// A step that finds its team's lock taken leaves its jobs alone for so long.
pub const LOCKED_MS: u64 = 250;
/// Waiting for a lock of a team.
pub const LOCK_MS: u32 = 10_000;
/// How often a command decides again after a commit conflict.
pub const COMMIT_TRIES: u32 = 16;

/// Commits of one look at what deleted teams have left behind.
pub const PURGE_COMMITS: u32 = 32;

/// Growing pauses after a temporary refusal.
pub const PAUSE_FIRST_MS: u64 = 1_000;
pub const PAUSE_MAX_MS: u64 = 60_000;
/// Failures in a row after which a team is disconnected with the reason.
pub const FAILURES_TO_DISCONNECT: u32 = 6;
/// Steps of one job in a row that may fail by what is stored of it, before it
/// is given up.
pub const FAILURES_TO_GIVE_UP: u32 = 6;
/// Attempts to deliver a receipt into a conversation that is denied or gone.
pub const RECEIPT_TRIES: u32 = 5;

/// The bounds as `info` reports them, with those that the deployment set.
pub fn report(slots: u32, board_tasks: u64) -> Value {
    let text = |b: Bound| json!({"characters": b.chars, "bytes": b.bytes});
    json!({
        "team_name": text(TEAM_NAME), "goal": text(GOAL), "member_name": text(MEMBER_NAME),
        "agent_name": text(AGENT_NAME), "text": text(TEXT), "request_id": text(REQUEST_ID), "id": text(ID),
        "query": text(QUERY), "response_bytes": RESPONSE_BYTES, "question_bytes": QUESTION_BYTES,
        "interrupts": {"max": INTERRUPTS, "bytes": INTERRUPTS_BYTES}, "answers_per_job": ANSWERS_PER_JOB, "answer_bytes": ANSWER_BYTES,
        "excerpt_bytes": EXCERPT_BYTES, "members": {"min": MEMBERS_MIN, "max": MEMBERS_MAX},
        "teams_per_owner": TEAMS_PER_OWNER, "requests_per_team": REQUESTS_PER_TEAM,
        "receipts_per_team": RECEIPTS_PER_TEAM, "requests_per_chain": REQUESTS_PER_CHAIN,
        "messages_kept": MESSAGES_KEPT, "context_messages": CONTEXT_MESSAGES, "context_bytes": CONTEXT_BYTES,
        "page_bytes": PAGE_BYTES, "page": {"default": PAGE_DEFAULT, "max": PAGE_MAX},
        "state": {"entries": STATE_ENTRIES, "bytes": STATE_BYTES, "title": text(STATE_TITLE), "content": text(STATE_CONTENT)},
        "feed": {"default": FEED_DEFAULT, "max": FEED_MAX}, "slots": slots,
        "board": {
            "tasks": board_tasks, "subject_utf16": super::board::SUBJECT, "description_utf16": super::board::DESCRIPTION,
            "blockers": BOARD_BLOCKERS, "scopes": BOARD_SCOPES, "scope_bytes": BOARD_SCOPE_BYTES, "events": BOARD_EVENTS,
            "import_bytes": IMPORT_BYTES, "page": {"default": TASKS_DEFAULT, "max": TASKS_MAX},
            "wait_ms": {"default": WAIT_DEFAULT_MS, "min": WAIT_MIN_MS, "max": WAIT_MAX_MS},
        },
        "mention": {"hits": MENTION_HITS, "references": MENTION_REFERENCES, "label_utf16": MENTION_LABEL},
    })
}

/// The pause after the `tries`-th temporary refusal in a row (from 1).
pub fn pause_ms(tries: u32) -> u64 {
    let doublings = tries.saturating_sub(1).min(16);
    (PAUSE_FIRST_MS << doublings).min(PAUSE_MAX_MS)
}
