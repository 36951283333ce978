//! Users, tokens, links and sessions while the server runs: by the operator, and
//! by users for themselves.

use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::server::Server;

const DAY: i64 = 24 * 60 * 60 * 1000;

impl Server {
    async fn operator_get(&self, path: &str) -> Response {
        self.get(&format!("/api/operator/{path}")).bearer(&self.operator).send().await
    }
    async fn operator_post(&self, path: &str, body: Value) -> Response {
        self.post(&format!("/api/operator/{path}")).bearer(&self.operator).json(&body).send().await
    }
    async fn me(&self, request: impl FnOnce(Request) -> Request) -> u16 {
        request(self.get("/api/me")).send().await.status
    }
    /// Exchanges a path of a sign-in link for a cookie.
    async fn follow(&self, path: &str) -> String {
        let secret = path.strip_prefix("/sign-in#").expect("a sign-in link");
        let origin = format!("http://{}", self.addr);
        let answer =
            self.post("/api/sign-in").header("origin", &origin).json(&json!({ "secret": secret })).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }
}

/// The refusal, with the field at fault.
fn refused(answer: &Response) -> (u16, String, Option<String>) {
    let (status, code) = answer.refusal();
    (status, code, answer.json()["field"].as_str().map(str::to_owned))
}

fn refusal(status: u16, code: &str, field: &str) -> (u16, String, Option<String>) {
    (status, code.to_owned(), (!field.is_empty()).then(|| field.to_owned()))
}

/// The ids of a list.
fn ids(answer: &Response, list: &str) -> Vec<String> {
    let all = answer.json()[list].as_array().expect("a list").clone();
    all.iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn the_operator_adds_a_user_who_signs_in_at_once() {
    let s = Server::start().await;
    let added = s.operator_post("users", json!({ "user": "cleo" })).await;
    assert_eq!(added.status, 200, "{added:?}");
    let user = json!({
        "user": { "id": "cleo", "enabled": true, "created_at": "2027-01-15T08:00:00.000Z", "automatic": false }
    });
    assert_eq!(added.json(), user);
    assert_eq!(ids(&s.operator_get("users").await, "users"), ["ann", "bob", "cleo"]);
    let link = s.operator_post("links", json!({ "user": "cleo" })).await.json();
    assert_eq!(link["expires_at"], "2027-01-15T08:10:00.000Z");
    let cookie = s.follow(link["path"].as_str().unwrap()).await;
    let me = s.get("/api/me").header("cookie", &cookie).send().await;
    assert_eq!(me.json(), json!({ "user": "cleo", "via": "session" }));

    let again = s.operator_post("users", json!({ "user": "cleo" })).await;
    assert_eq!(refused(&again), refusal(409, "user_exists", "user"));
    let bad = s.operator_post("users", json!({ "user": "Cleo Z" })).await;
    assert_eq!(refused(&bad), refusal(400, "bad_user_id", "user"));
    for body in [json!({}), json!({ "user": 5 })] {
        assert_eq!(refused(&s.operator_post("users", body).await), refusal(400, "text_required", "user"));
    }
    let more = s.operator_post("users", json!({ "user": "dan", "admin": true })).await;
    assert_eq!(refused(&more), refusal(400, "unknown_field", "admin"));
    assert_eq!(refused(&s.operator_post("links", json!({ "user": "dan" })).await), refusal(404, "no_user", "user"));
}

#[tokio::test]
async fn a_user_whom_the_operator_disables_is_out_at_once_and_its_teams_lose_their_capabilities() {
    let s = Server::start().await;
    let (token, cookie) = (s.token("ann").await, s.cookie("ann").await);
    let disabled = s.operator_post("users/ann", json!({ "enabled": false })).await;
    assert_eq!((disabled.status, &disabled.json()["user"]["enabled"]), (200, &json!(false)));
    assert_eq!(*s.team.forgotten.lock().unwrap(), ["ann"]);
    assert_eq!(s.me(|r| r.bearer(&token)).await, 403);
    assert_eq!(s.me(|r| r.header("cookie", &cookie)).await, 401);
    for (path, body) in [("links", json!({ "user": "ann" })), ("tokens", json!({ "user": "ann", "name": "x" }))] {
        assert_eq!(refused(&s.operator_post(path, body).await), refusal(403, "user_disabled", "user"), "{path}");
    }
    let enabled = s.operator_post("users/ann", json!({ "enabled": true })).await;
    assert_eq!(enabled.json()["user"]["enabled"], true);
    assert_eq!(s.me(|r| r.bearer(&token)).await, 200);
    assert_eq!(s.me(|r| r.header("cookie", &cookie)).await, 401, "an ended session stays ended");
    assert_eq!(s.team.forgotten.lock().unwrap().len(), 1, "nothing is taken from a user who is let in");

    let stranger = s.operator_post("users/stranger", json!({ "enabled": false })).await;
    assert_eq!(refused(&stranger), refusal(404, "no_user", "user"));
    assert_eq!(s.team.forgotten.lock().unwrap().len(), 1);
    for body in [json!({}), json!({ "enabled": "no" })] {
        assert_eq!(refused(&s.operator_post("users/ann", body).await), refusal(400, "boolean_required", "enabled"));
    }
    assert_eq!(s.operator_post("users/%ff", json!({ "enabled": true })).await.refusal().0, 404);
}

#[tokio::test]
async fn a_tokens_secret_is_told_once_and_never_listed() {
    let s = Server::start().await;
    let made = s.operator_post("tokens", json!({ "user": "ann", "name": "laptop" })).await.json();
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["token"]["secret"].as_str().unwrap());
    s.token("bob").await;
    assert_eq!(s.me(|r| r.bearer(secret)).await, 200);
    let listed = s.operator_get("tokens?user=ann").await;
    assert_eq!(ids(&listed, "tokens"), [id]);
    let token = &listed.json()["tokens"][0];
    assert_eq!((&token["name"], &token["kind"], &token["user"]), (&json!("laptop"), &json!("user"), &json!("ann")));
    let all = s.operator_get("tokens").await;
    assert_eq!(ids(&all, "tokens").len(), 2);
    let proof = secret.split_once('.').unwrap().1;
    for listed in [listed, all] {
        let text = String::from_utf8(listed.body).unwrap();
        assert!(!text.contains(proof) && !text.contains("hash") && !text.contains("secret"), "{text}");
    }
    for _ in 0..2 {
        let revoked = s.operator_post(&format!("tokens/{id}/revoke"), json!({})).await;
        assert_eq!((revoked.status, revoked.json()), (200, json!({ "revoked": id })));
    }
    assert_eq!(s.me(|r| r.bearer(secret)).await, 401);

    assert_eq!(refused(&s.operator_get("tokens?user=stranger").await), refusal(404, "no_user", "user"));
    assert_eq!(refused(&s.operator_get("tokens?name=x").await), refusal(400, "invalid_query", ""));
    assert_eq!(refused(&s.operator_post("tokens/none/revoke", json!({})).await), refusal(404, "no_token", "id"));
    for (body, refusal) in [
        (json!({ "user": "ann", "name": "" }), refusal(400, "bad_token_name", "name")),
        (json!({ "user": "ann" }), refusal(400, "text_required", "name")),
        (json!({ "user": "stranger", "name": "x" }), refusal(404, "no_user", "user")),
    ] {
        assert_eq!(refused(&s.operator_post("tokens", body).await), refusal);
    }
}

#[tokio::test]
async fn the_operator_sees_all_sessions_and_ends_one_or_those_of_a_user() {
    let s = Server::start().await;
    let (one, two, bob) = (s.cookie("ann").await, s.cookie("ann").await, s.cookie("bob").await);
    let all = s.operator_get("sessions").await;
    assert_eq!(ids(&all, "sessions").len(), 3);
    let text = String::from_utf8(all.body).unwrap();
    for cookie in [&one, &two, &bob] {
        assert!(!text.contains(cookie.split_once('.').unwrap().1));
    }
    let of_ann = s.operator_get("sessions?user=ann").await;
    let session = &of_ann.json()["sessions"][0];
    let (now, end) = (json!("2027-01-15T08:00:00.000Z"), json!("2027-02-14T08:00:00.000Z"));
    assert_eq!((&session["user"], &session["created_at"], &session["expires_at"]), (&json!("ann"), &now, &end));
    assert_eq!(session["last_used_at"], now);

    let first = ids(&of_ann, "sessions").remove(0);
    let ended = s.operator_post("sessions/end", json!({ "id": first })).await;
    assert_eq!((ended.status, ended.json()), (200, json!({ "ended": 1 })));
    let again = s.operator_post("sessions/end", json!({ "id": first })).await;
    assert_eq!(refused(&again), refusal(404, "no_session", "id"));
    assert_eq!(s.operator_post("sessions/end", json!({ "user": "ann" })).await.json(), json!({ "ended": 1 }));
    assert_eq!(s.operator_post("sessions/end", json!({ "user": "ann" })).await.json(), json!({ "ended": 0 }));
    for (cookie, status) in [(&one, 401), (&two, 401), (&bob, 200)] {
        assert_eq!(s.me(|r| r.header("cookie", cookie)).await, status);
    }
    assert_eq!(refused(&s.operator_get("sessions?user=stranger").await), refusal(404, "no_user", "user"));
    let stranger = s.operator_post("sessions/end", json!({ "user": "stranger" })).await;
    assert_eq!(refused(&stranger), refusal(404, "no_user", "user"));
    for body in [json!({}), json!({ "id": "x", "user": "bob" })] {
        let answer = s.operator_post("sessions/end", body).await;
        assert_eq!(refused(&answer), refusal(400, "one_member_required", "id"));
    }
    assert_eq!(s.me(|r| r.header("cookie", &bob)).await, 200);
}

#[tokio::test]
async fn a_user_sees_and_ends_its_own_sessions_and_no_others() {
    let s = Server::start().await;
    let (here, there, far) = (s.cookie("ann").await, s.cookie("ann").await, s.cookie("ann").await);
    let (bob, token) = (s.cookie("bob").await, s.token("ann").await);
    let listed = s.get("/api/sessions").header("cookie", &here).send().await;
    let sessions = listed.json()["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), 3);
    let own = here.split_once('=').unwrap().1.split_once('.').unwrap();
    for session in &sessions {
        assert_eq!(session["current"], json!(session["id"] == own.0), "{session}");
        let mut names: Vec<&str> = session.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["created_at", "current", "expires_at", "id", "last_used_at"]);
    }
    assert!(!String::from_utf8(listed.body).unwrap().contains(own.1));
    let by_token = s.get("/api/sessions").bearer(&token).send().await.json();
    assert!(by_token["sessions"].as_array().unwrap().iter().all(|session| session["current"] == false), "{by_token}");

    let end = async |request: Request, body: Value| request.json(&body).send().await;
    let post = || s.post("/api/sessions/end");
    let bobs = ids(&s.get("/api/sessions").header("cookie", &bob).send().await, "sessions").remove(0);
    let others = end(post().session(&here), json!({ "id": bobs })).await;
    let none = end(post().session(&here), json!({ "id": "0000000000000000" })).await;
    assert_eq!(refused(&others), refusal(404, "no_session", "id"));
    assert_eq!(refused(&none), refusal(404, "no_session", "id"), "as one that does not exist");
    let unasked = end(post().header("cookie", &here), json!({ "others": true })).await;
    assert_eq!(refused(&unasked), refusal(403, "origin_required", ""));
    let there_id = there.split_once('=').unwrap().1.split_once('.').unwrap().0;
    assert_eq!(end(post().session(&here), json!({ "id": there_id })).await.json(), json!({ "ended": 1 }));
    assert_eq!(s.me(|r| r.header("cookie", &there)).await, 401);
    assert_eq!(end(post().session(&here), json!({ "others": true })).await.json(), json!({ "ended": 1 }));
    for (cookie, status) in [(&here, 200), (&far, 401), (&bob, 200)] {
        assert_eq!(s.me(|r| r.header("cookie", cookie)).await, status);
    }
    for (body, refusal) in [
        (json!({}), refusal(400, "one_member_required", "id")),
        (json!({ "id": own.0, "others": true }), refusal(400, "one_member_required", "id")),
        (json!({ "id": 5 }), refusal(400, "text_required", "id")),
        (json!({ "others": false }), refusal(400, "true_required", "others")),
        (json!({ "user": "bob" }), refusal(400, "unknown_field", "user")),
    ] {
        assert_eq!(refused(&end(post().session(&here), body).await), refusal);
    }
    assert_eq!(end(post().bearer(&token), json!({ "others": true })).await.json(), json!({ "ended": 1 }));
    assert_eq!(s.me(|r| r.header("cookie", &here)).await, 401, "to a token all are others");
    assert_eq!(s.me(|r| r.header("cookie", &bob)).await, 200);
}

#[tokio::test]
async fn a_browser_that_comes_back_within_thirty_days_stays_signed_in() {
    let s = Server::start().await;
    let (used, idle) = (s.cookie("ann").await, s.cookie("ann").await);
    for _ in 0..3 {
        s.pass(29 * DAY);
        assert_eq!(s.me(|r| r.header("cookie", &used)).await, 200);
        // The end moves by a commit for which the request did not wait.
        s.users.add_token("bob", "x").await.unwrap();
    }
    assert_eq!(s.me(|r| r.header("cookie", &idle)).await, 401);
    assert_eq!(ids(&s.operator_get("sessions").await, "sessions").len(), 1);
}
