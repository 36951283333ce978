//! Where each record is stored. All keys of a team share one prefix, so that what
//! belongs together is stored together; a number has a fixed width, so that keys
//! sort as numbers do.
//!
//! ```text
//! meta                             store format
//! round                            order in which owners are served
//! slot/NN                          one slot, and the admitted job that holds it
//! work/OWNER/THREAD/SEQ            an unfinished job, in its conversation's order
//! list/OWNER/CREATED-TEAM          an owner's teams
//! ran/OWNER/THREAD/RUN             the job (team and number) that this run executes
//! outlived/OWNER/THREAD/TEAM-N     a job that was settled while its run may live
//! gone/OWNER/TEAM                  a deleted team of which records are left
//! team/OWNER/TEAM/team             roster and goal (written once)
//! team/OWNER/TEAM/head             revision, counters, connection
//! team/OWNER/TEAM/id/JOBID         job id → number
//! team/OWNER/TEAM/job/NNNN         a job
//! team/OWNER/TEAM/job/NNNN/…       its text, frozen input, answer, result
//! team/OWNER/TEAM/msg/NNNNNN       a shared message
//! team/OWNER/TEAM/state/NN         an entry of the public state
//! team/OWNER/TEAM/board …          the task board: see `store::board`
//! team/OWNER/TEAM/note/THREAD/N    a notice for the next turn of a conversation
//! team/OWNER/TEAM/call/THREAD/RUN/CALL   reply to a tool call, for its repetition
//! team/OWNER/TEAM/call-run/THREAD  the run whose replies alone are left there
//! ```

use alloc::format;
use alloc::string::String;

pub const META: &str = "meta";
pub const ROUND: &str = "round";

/// A part of a key: everything but plain characters is percent-encoded, so
/// that no id from outside reaches beyond its place.
pub fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'@') {
            out.push(b as char);
        } else {
            out.push_str(&format!("%{b:02x}"));
        }
    }
    out
}

/// The inverse of [`part`].
pub fn unpart(text: &str) -> String {
    let mut out = alloc::vec::Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let hex = (bytes[i] == b'%').then(|| text.get(i + 1..i + 3)).flatten();
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(b) => {
                out.push(b);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The end of the range of all keys that begin with `prefix`, which must end
/// with a plain separator.
pub fn end(prefix: &str) -> String {
    // '/' + 1 == '0': the first key after every key under "…/".
    let mut end = String::from(prefix.strip_suffix('/').unwrap_or(prefix));
    end.push('0');
    end
}

pub fn slots() -> &'static str {
    "slot/"
}

/// A slot by its number. Who takes one looks at that one alone, so that two
/// admissions disturb each other only where both want the same.
pub fn slot(number: u32) -> String {
    format!("slot/{number:02}")
}

pub fn work() -> &'static str {
    "work/"
}

pub fn work_owner(owner: &str) -> String {
    format!("work/{}/", part(owner))
}

pub fn work_thread(owner: &str, thread: &str) -> String {
    format!("work/{}/{}/", part(owner), part(thread))
}

pub fn work_entry(owner: &str, thread: &str, seq: u32) -> String {
    format!("work/{}/{}/{seq:08}", part(owner), part(thread))
}

/// The runs that executed jobs in a conversation, whatever their team: a
/// member's conversation may have asked another team.
pub fn rans(owner: &str, thread: &str) -> String {
    format!("ran/{}/{}/", part(owner), part(thread))
}

pub fn ran(owner: &str, thread: &str, run: &str) -> String {
    format!("ran/{}/{}/{}", part(owner), part(thread), part(run))
}

/// The jobs of a conversation, whatever their team, whose runs may have outlived
/// them.
pub fn outlived_in(owner: &str, thread: &str) -> String {
    format!("outlived/{}/{}/", part(owner), part(thread))
}

pub fn outlived(owner: &str, thread: &str, team: &str, n: u32) -> String {
    format!("outlived/{}/{}/{}-{n:04}", part(owner), part(thread), part(team))
}

pub fn list(owner: &str) -> String {
    format!("list/{}/", part(owner))
}

pub fn list_entry(owner: &str, created_at: u64, team: &str) -> String {
    format!("list/{}/{created_at:014}-{team}", part(owner))
}

/// The team of an entry of the list: what follows the first dash.
pub fn listed_team(key: &str) -> Option<&str> {
    key.rsplit('/').next()?.split_once('-').map(|(_, team)| team)
}

/// The deleted teams of which something is left.
pub fn gone() -> &'static str {
    "gone/"
}

pub fn gone_team(owner: &str, team: &str) -> String {
    format!("gone/{}/{}", part(owner), part(team))
}

/// The owner and the team of such a key.
pub fn gone_names(key: &str) -> Option<(String, String)> {
    let (owner, team) = key.strip_prefix(gone())?.split_once('/')?;
    Some((unpart(owner), unpart(team)))
}

/// The keys of one team.
#[derive(Clone, Debug)]
pub struct TeamKeys {
    prefix: String,
}

impl TeamKeys {
    pub fn new(owner: &str, team: &str) -> Self {
        Self { prefix: format!("team/{}/{}/", part(owner), part(team)) }
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    pub fn team(&self) -> String {
        self.key("team")
    }

    pub fn head(&self) -> String {
        self.key("head")
    }

    pub fn job_id(&self, id: &str) -> String {
        self.key(&format!("id/{}", part(id)))
    }

    pub fn jobs(&self) -> String {
        self.key("job/")
    }

    pub fn job(&self, n: u32) -> String {
        self.key(&format!("job/{n:04}"))
    }

    pub fn text(&self, n: u32) -> String {
        self.key(&format!("job/{n:04}/text"))
    }

    pub fn input(&self, n: u32) -> String {
        self.key(&format!("job/{n:04}/input"))
    }

    pub fn answer(&self, n: u32) -> String {
        self.key(&format!("job/{n:04}/answer"))
    }

    pub fn result(&self, n: u32) -> String {
        self.key(&format!("job/{n:04}/result"))
    }

    pub fn messages(&self) -> String {
        self.key("msg/")
    }

    pub fn message(&self, seq: u32) -> String {
        self.key(&format!("msg/{seq:06}"))
    }

    pub fn state(&self) -> String {
        self.key("state/")
    }

    pub fn state_entry(&self, n: u32) -> String {
        self.key(&format!("state/{n:02}"))
    }

    pub fn notices(&self, thread: &str) -> String {
        self.key(&format!("note/{}/", part(thread)))
    }

    pub fn notice(&self, thread: &str, n: u32) -> String {
        self.key(&format!("note/{}/{n:04}", part(thread)))
    }

    pub fn newest_run(&self, thread: &str) -> String {
        self.key(&format!("call-run/{}", part(thread)))
    }

    pub fn calls(&self, thread: &str) -> String {
        self.key(&format!("call/{}/", part(thread)))
    }

    pub fn call(&self, thread: &str, run: &str, call: &str) -> String {
        self.key(&format!("call/{}/{}/{}", part(thread), part(run), part(call)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_leaves_its_place_and_comes_back() {
        for text in ["a/b", "..", "%2f", "研究员", "a\0b", "", "plain-id_1.x@y"] {
            assert!(!part(text).contains('/'));
            assert_eq!(unpart(&part(text)), text);
        }
        assert_ne!(part("a%2fb"), part("a/b"));
    }

    #[test]
    fn a_range_holds_its_prefix_and_nothing_else() {
        let (start, end) = (list("o"), end(&list("o")));
        let key = list_entry("o", 1, "t");
        assert!(start < key && key < end);
        assert!(list_entry("o2", 1, "t") > end || list_entry("o2", 1, "t") < start);
        assert!(list_entry("o-", 1, "t") > end || list_entry("o-", 1, "t") < start);
    }
}
