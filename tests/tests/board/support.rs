//! Short ways to do what most tests do with a board.

use agent_teams_host::contract::Caller;
use agent_teams_tests::harness::{Answer, Team, World};
use serde_json::{Value, json};

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The owner, by actions.
    Lead,
    /// A member by its place, by tools.
    M(usize),
}

pub use Who::{Lead, M};

/// A team and its board.
pub struct Board<'w> {
    pub world: &'w World,
    pub team: Team,
}

impl<'w> Board<'w> {
    /// Of a new team of `a`, `b` and `c`.
    #[track_caller]
    pub fn new(world: &'w World) -> Self {
        Self { team: world.team("ann", &["a", "b", "c"]), world }
    }

    /// Any call; a task of the lead's replies is taken out of them.
    pub fn call(&self, who: Who, tool: &str, action: &str, mut payload: Value) -> Answer {
        payload["team_id"] = json!(self.team.id);
        match who {
            Lead => {
                let mut reply = self.world.action(&self.team.owner, action, payload)?;
                Ok(if reply["task"].is_object() { reply["task"].take() } else { reply })
            }
            M(n) => self.world.tool(&self.caller(n), tool, payload),
        }
    }

    pub fn caller(&self, n: usize) -> Caller {
        Caller { owner: self.team.owner.clone(), thread: Some(self.team.thread(n).into()), ..Caller::default() }
    }

    pub fn create(&self, who: Who, payload: Value) -> Answer {
        self.call(who, "create_team_task", "create_task", payload)
    }

    /// A task of the lead with these blockers and scopes; its id.
    #[track_caller]
    pub fn add(&self, blocked_by: &[&str], write_scopes: &[&str]) -> String {
        let payload =
            json!({"subject": "Task", "description": "Do it.", "blocked_by": blocked_by, "write_scopes": write_scopes});
        let task = self.create(Lead, payload).expect("create");
        task["id"].as_str().expect("id").to_owned()
    }

    pub fn update(&self, who: Who, id: &str, revision: u64, action: &str, more: Value) -> Answer {
        let mut payload = json!({"task_id": id, "expected_revision": revision, "action": action});
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        self.call(who, "update_team_task", "update_task", payload)
    }

    /// At the revision that the task has now.
    pub fn act(&self, who: Who, id: &str, action: &str, more: Value) -> Answer {
        self.update(who, id, self.revision(id), action, more)
    }

    /// The same without further fields, and it must succeed.
    #[track_caller]
    pub fn must(&self, who: Who, id: &str, action: &str) -> Value {
        self.act(who, id, action, json!({})).unwrap_or_else(|e| panic!("{action} of {id}: {e:?}"))
    }

    pub fn get(&self, who: Who, id: &str) -> Answer {
        self.call(who, "get_team_task", "tasks", json!({"task_id": id}))
    }

    #[track_caller]
    pub fn task(&self, id: &str) -> Value {
        self.get(Lead, id).expect("get")
    }

    pub fn revision(&self, id: &str) -> u64 {
        self.get(Lead, id).ok().and_then(|t| t["revision"].as_u64()).unwrap_or(1)
    }

    pub fn list(&self, who: Who, filter: Value) -> Answer {
        self.call(who, "list_team_tasks", "tasks", filter)
    }

    /// The ids of the tasks that are not deleted.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        ids(&self.list(Lead, json!({})).expect("list"))
    }

    /// The `ownerId` of a member's own conversation.
    pub fn owner(&self, n: usize) -> &str {
        self.team.thread(n)
    }
}

/// The ids on a page.
pub fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().expect("tasks").iter().filter_map(|t| t["id"].as_str()).map(Into::into).collect()
}

/// A task's status.
pub fn status(task: &Value) -> &str {
    task["status"].as_str().unwrap_or_else(|| panic!("no task: {task}"))
}
