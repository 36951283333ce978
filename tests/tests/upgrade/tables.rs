//! The database after the upgrade, beside the frozen one. These look at the
//! tables of format 1 themselves.

use rusqlite::{Connection, OpenFlags, params};
use serde_json::Value;

use crate::frozen::Frozen;
use crate::program::Folder;

/// What never changes in the host's tables once it is written: table, columns,
/// and which rows.
const KEPT: [(&str, &str, &str); 11] = [
    ("users", "id, automatic, created_at", "true"),
    ("user_tokens", "id, user, name, hash, created_at", "true"),
    // The command line's own token is revoked: it is made anew at each start.
    ("user_tokens", "id, revoked_at", "user <> 'local'"),
    ("user_sessions", "id, user, hash, created_at", "true"),
    ("agent_threads", "key, owner, id, agent, title, created_ms", "true"),
    (
        "agent_messages",
        "thread, number, id, role, text, run, tool_calls, tool, question, answers, provenance, created_ms",
        "true",
    ),
    ("agent_runs", "id, thread, key, message, started_ms", "true"),
    ("agent_runs", "id, status, error, ended_ms", "ended_ms IS NOT NULL"),
    ("agent_keys", "thread, key, digest, run", "true"),
    ("agent_approvals", "id, run, checkpoint, tool, arguments, digest", "true"),
    ("agent_approvals", "id, decision, decided_ms", "decision IS NOT NULL"),
];

/// The present database as `main`, the frozen one as `before`.
pub struct Tables<'f> {
    frozen: &'f Frozen,
    db: Connection,
}

impl<'f> Tables<'f> {
    pub fn open(frozen: &'f Frozen, folder: &Folder) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let db = Connection::open_with_flags(folder.database(), flags).expect("the database");
        // Immutable: no file is made beside the frozen one.
        let before = format!("file:{}?immutable=1", frozen.database().display());
        db.execute("ATTACH ?1 AS before", [before]).expect("the frozen database");
        Self { frozen, db }
    }

    fn count(&self, sql: &str, given: &[&str]) -> i64 {
        let given = rusqlite::params_from_iter(given);
        self.db.query_row(sql, given, |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    /// Rows of two columns of text.
    fn pairs(&self, sql: &str) -> Vec<(String, String)> {
        let mut query = self.db.prepare(sql).expect(sql);
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    }

    pub fn nothing_is_lost(&self) {
        for (table, columns, which) in KEPT {
            let before = format!("SELECT {columns} FROM before.{table} WHERE {which}");
            assert!(self.count(&format!("SELECT count(*) FROM ({before})"), &[]) > 0, "{table}: {which}");
            let lost = format!("SELECT count(*) FROM ({before} EXCEPT SELECT {columns} FROM main.{table})");
            assert_eq!(self.count(&lost, &[]), 0, "{table} has lost rows: {columns}");
        }
    }

    /// No slot, no unfinished work, no input, no answer.
    pub fn nothing_is_left(&self) {
        for rest in ["work/%", "slot/%", "team/%/job/%/input", "team/%/job/%/answer"] {
            let found = self.pairs(&format!("SELECT key, value FROM main.kv WHERE key LIKE '{rest}'"));
            assert!(found.is_empty(), "left over: {found:?}");
        }
        let open = self.pairs("SELECT id, key FROM main.agent_runs WHERE status = 'running'");
        assert!(open.is_empty(), "runs without an end: {open:?}");
    }

    /// Each job that ended with a result ran under the key, and with the bytes,
    /// that it had before, and once.
    pub fn each_input_ran_once(&self, after: &Value) {
        for promise in self.frozen.promises() {
            let (id, key) = (&promise["job"], promise["key"].as_str().expect("a key"));
            let owner = promise["owner"].as_str().expect("an owner");
            let mut jobs = after[owner].as_array().expect("teams").iter().flat_map(|team| {
                let here = team["team"]["id"] == promise["team"];
                team["jobs"].as_array().filter(|_| here).into_iter().flatten()
            });
            let job = jobs.find(|job| job["id"] == *id).expect("the job");
            let thread = job["thread"].as_str().expect("a conversation");
            let runs = "SELECT count(*) FROM main.agent_keys k JOIN main.agent_threads t ON t.key = k.thread
                WHERE t.owner = ?1 AND t.id = ?2 AND k.key = ?3";
            let ran = self.count(runs, &[owner, thread, key]);
            let messages = "SELECT count(*) FROM main.agent_messages m JOIN main.agent_threads t ON t.key = m.thread
                WHERE t.owner = ?1 AND t.id = ?2 AND m.role = 'human' AND m.provenance ->> 'job_id' = ?3
                AND m.answers IS NULL";
            let told = self.count(messages, &[owner, thread, id.as_str().expect("an id")]);
            assert!(ran <= 1 && told <= 1, "{owner}/{}: {ran} runs, {told} messages", job["request_id"]);
            if job["status"] == "completed" {
                assert_eq!(ran, 1, "{owner}/{} ran under its key", job["request_id"]);
                self.input_is_kept(promise, thread);
            }
        }
        let twice = "SELECT count(*) FROM (SELECT 1 FROM main.agent_messages WHERE role = 'human'
            AND provenance ->> 'job_id' IS NOT NULL GROUP BY thread, provenance ->> 'job_id', answers
            HAVING count(*) > 1)";
        assert_eq!(self.count(twice, &[]), 0, "no request and no answer was said twice");
    }

    /// An input that was frozen was sent as it was.
    fn input_is_kept(&self, promise: &Value, thread: &str) {
        let record = |key: &str| -> Option<String> {
            self.db.query_row("SELECT value FROM before.kv WHERE key = ?1", [key], |row| row.get(0)).ok()
        };
        let text = |field: &str| promise[field].as_str().expect("text");
        let team = format!("team/{}/{}", text("owner"), text("team"));
        let number = record(&format!("{team}/id/{}", text("job"))).expect("the frozen job");
        let key = format!("{team}/job/{number:0>4}/input");
        let Some(input) = record(&key) else { return };
        let input: Value = serde_json::from_str(&input).expect("JSON");
        let message = &input["input"]["message"];
        if message.is_null() {
            return;
        }
        let sent = "SELECT count(*) FROM main.agent_messages m JOIN main.agent_threads t ON t.key = m.thread
            WHERE t.owner = ?1 AND t.id = ?2 AND m.id = ?3 AND m.text = ?4";
        let field = |name: &str| message[name].as_str().expect("text");
        let found = self.count(sent, &[text("owner"), thread, field("id"), field("text")]);
        assert_eq!(found, 1, "{key}: the frozen input was sent as it was");
    }

    /// A call that took effect before the kill was repeated after it, with the
    /// same id, and got the first reply.
    pub fn repeated_calls_are_the_same(&self) {
        let memos = self.pairs("SELECT key, value FROM before.kv WHERE key LIKE 'team/%/call/%'");
        let mut repeated = 0;
        for (key, memo) in memos {
            let call = key.rsplit('/').next().expect("a call");
            let known = self.count("SELECT count(*) FROM before.agent_messages WHERE id = ?1", &[call]);
            if known > 0 {
                continue;
            }
            repeated += 1;
            let sql = "SELECT text FROM main.agent_messages WHERE id = ?1 AND role = 'tool'";
            let result: String = self.db.query_row(sql, [call], |row| row.get(0)).expect("the call has its result");
            let memo: Value = serde_json::from_str(&memo).expect("JSON");
            let first: Value = serde_json::from_str(memo["reply"].as_str().expect("a reply")).expect("JSON");
            let result: Value = serde_json::from_str(&result).expect("JSON");
            assert_eq!(result, first, "{call}");
        }
        assert_eq!(repeated, 3, "calls that were under way");
    }

    /// A notice that waited is told with the next turn of its conversation, or
    /// with the one whose input carried it already, and never again.
    pub fn notices_are_told_once(&self) {
        let notices = self.pairs("SELECT key, value FROM before.kv WHERE key LIKE 'team/%/note/%'");
        assert_eq!(notices.len(), 3);
        for (key, notice) in notices {
            let parts: Vec<&str> = key.split('/').collect();
            let sql = "SELECT count(*) FROM main.agent_messages m JOIN main.agent_threads t ON t.key = m.thread
                WHERE t.owner = ?1 AND t.id = ?2 AND instr(m.text, ?3) > 0";
            let told = self.count(sql, &[parts[1], parts[4], &notice]);
            let waits = self.count("SELECT count(*) FROM main.kv WHERE key = ?1", &[&key]);
            assert_eq!(told + waits, 1, "{key}: told {told} times, waits {waits}");
        }
    }

    /// Only approvals of ended jobs are withdrawn.
    pub fn an_approval_without_a_job_stays_open(&self) {
        let sql = "SELECT count(*) FROM main.agent_approvals a JOIN main.agent_runs r ON r.id = a.run
            WHERE r.key = 'post:own' AND r.status = 'interrupted' AND a.decision IS NULL";
        assert_eq!(self.count(sql, &[]), 1);
    }

    pub fn run_is(&self, run: &str, status: &str) {
        let sql = "SELECT status FROM main.agent_runs WHERE id = ?1";
        let found: String = self.db.query_row(sql, params![run], |row| row.get(0)).expect("the run");
        assert_eq!(found, status, "the run {run}");
    }
}
