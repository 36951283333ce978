//! What the demo does in the owner's place: two requests, and a decision where
//! a member of its own script asks for one. Whatever else is asked (by a real
//! model in place of the scripted one) is left to a person.

use serde_json::{Value, json};

use super::super::view;

/// A request of the owner.
pub struct Request {
    pub title: &'static str,
    pub request_id: &'static str,
    pub text: &'static str,
}

pub const NOTE: Request = Request {
    title: "A request is handed on, and each result returns to its asker",
    request_id: "demo-request",
    text: "Please prepare a short note that explains to our readers how agents work together here.",
};

pub const CHECK: Request = Request {
    title: "The task board: one task waits for another",
    request_id: "demo-board",
    text: "Please have the note checked against the facts, and then put into a file.",
};

/// What a member may ask the owner.
enum Asked {
    Question(&'static str),
    Call { tool: &'static str, path: &'static str },
}

/// The owner's answer to one thing that the script asks.
pub struct Decision {
    /// Empty: it belongs to what is being told.
    pub title: &'static str,
    /// The request id of the job that asks.
    job: &'static str,
    asked: Asked,
    /// Names the answer: a demo that was killed in between answers once.
    pub request_id: &'static str,
    /// `answers`, `denies`, `approves`.
    pub verb: &'static str,
    pub words: &'static str,
}

const DECISIONS: [Decision; 3] = [
    Decision {
        title: "A member asks, and its job waits for the answer",
        job: "text",
        asked: Asked::Question("Who will read the note?"),
        request_id: "demo-answer",
        verb: "answers",
        words: "People who are new to it.",
    },
    Decision {
        title: "A call that needs approval is denied, and the member continues without it",
        job: "text",
        asked: Asked::Call { tool: "write_file", path: "note.md" },
        request_id: "demo-denial",
        verb: "denies",
        words: "Not before it is checked. Give me the text instead.",
    },
    Decision {
        title: "",
        job: "file",
        asked: Asked::Call { tool: "write_file", path: "note.md" },
        request_id: "demo-approval",
        verb: "approves",
        words: "It is checked now.",
    },
];

impl Decision {
    /// The decision on what this job asks now, if it is the script's.
    pub fn on(job: &Value) -> Option<&'static Self> {
        DECISIONS.iter().find(|decision| view::asks(job) && decision.fits(job))
    }

    fn fits(&self, job: &Value) -> bool {
        let asked = match self.asked {
            Asked::Question(text) => job["question"]["text"] == text,
            Asked::Call { tool, path } => {
                let open = job["interrupts"].as_array().map(Vec::as_slice).unwrap_or_default();
                let call = open.first().map(|one| &one["value"]);
                open.len() == 1 && call.is_some_and(|c| c["tool"] == tool && c["arguments"]["path"] == path)
            }
        };
        asked && job["request_id"] == self.job && job["requester"]["kind"] == "member"
    }

    /// What is sent to the job.
    pub fn response(&self) -> Value {
        match self.asked {
            Asked::Question(_) => json!(self.words),
            Asked::Call { .. } => json!({ "approved": self.verb == "approves", "note": self.words }),
        }
    }

    /// The id of what is answered, so that nothing else can be.
    pub fn question_id(job: &Value) -> &Value {
        if job["question"].is_null() { &job["interrupts"][0]["id"] } else { &job["question"]["id"] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(request_id: &str, tool: &str) -> Value {
        json!({"request_id": request_id, "requester": {"kind": "member"}, "completed_at": null, "question": null,
               "interrupts": [{"id": "i", "value": {"tool": tool, "arguments": {"path": "note.md", "text": "t"}}}]})
    }

    #[test]
    fn only_what_the_script_asks_is_decided() {
        let denied = Decision::on(&asking("text", "write_file")).expect("the script's");
        assert_eq!(denied.response()["approved"], false);
        let approved = Decision::on(&asking("file", "write_file")).expect("the script's");
        assert_eq!(approved.response()["approved"], true);
        assert!(Decision::on(&asking("text", "delete_everything")).is_none());
        assert!(Decision::on(&asking("other", "write_file")).is_none());
        let mut by_a_person = asking("text", "write_file");
        by_a_person["requester"]["kind"] = json!("owner");
        assert!(Decision::on(&by_a_person).is_none());
        let mut two = asking("text", "write_file");
        let one = two["interrupts"][0].clone();
        two["interrupts"].as_array_mut().expect("a list").push(one);
        assert!(Decision::on(&two).is_none(), "two at once were not shown");
        let question = json!({"request_id": "text", "requester": {"kind": "member"}, "completed_at": null,
            "question": {"id": "q", "text": "Who will read the note?"}, "interrupts": []});
        assert_eq!(Decision::on(&question).map(Decision::response), Some(json!("People who are new to it.")));
        assert_eq!(Decision::question_id(&question), "q");
    }
}
