//! Who is let in, and who is not.

use serde_json::json;

use crate::server::{LOG, Server};

/// Every route that needs somebody, as method and path.
const PROTECTED: [(&str, &str); 15] = [
    ("GET", "/api/plugins/community.agent-teams/actions"),
    ("POST", "/api/plugins/community.agent-teams/actions/list"),
    ("GET", "/api/plugins/community.agent-teams/mentions?query=a"),
    ("GET", "/api/plugins/community.agent-teams/tools"),
    ("GET", "/api/agents"),
    ("GET", "/api/conversations"),
    ("POST", "/api/conversations"),
    ("GET", "/api/conversations/x"),
    ("POST", "/api/conversations/x/messages"),
    ("GET", "/api/events"),
    ("GET", "/api/me"),
    ("POST", "/api/sign-in-link"),
    ("POST", "/api/sign-out"),
    ("GET", "/api/sessions"),
    ("POST", "/api/sessions/end"),
];

/// Routes for everybody who reaches the server.
const OPEN: [(&str, &str); 8] = [
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/sign-in"),
    ("POST", "/api/sign-in"),
    ("GET", "/workspace/extensions/community.agent-teams/teams"),
    ("GET", "/no-such-route"),
];

#[tokio::test]
async fn every_protected_route_refuses_everybody_without_a_valid_token() {
    let s = Server::start().await;
    let good = s.token("ann").await;
    let revoked = s.users.add_token("ann", "old").await.unwrap();
    s.users.revoke_token(&revoked.id).await.unwrap();
    let disabled = s.token("bob").await;
    s.users.set_enabled("bob", false).await.unwrap();
    let last = if good.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &good[..good.len() - 1]);

    for (method, path) in PROTECTED {
        let request = || {
            let request = crate::client::Request::new(s.addr, method, path);
            if method == "POST" { request.json(&json!({})) } else { request }
        };
        let none = request().send().await;
        assert_eq!(none.refusal(), (401, "not_signed_in".into()), "{method} {path}");
        assert!(none.header("www-authenticate").unwrap().starts_with("Bearer"), "{method} {path}");
        for bad in [wrong.as_str(), &revoked.secret, "", "x", "Bearer", &good.to_uppercase()] {
            let answer = request().bearer(bad).send().await;
            assert_eq!(answer.refusal(), (401, "not_signed_in".into()), "{method} {path} {bad}");
        }
        let basic = request().header("authorization", &format!("Basic {good}")).send().await;
        assert_eq!(basic.status, 401, "{method} {path}");
        let twice = request().bearer(&good).bearer(&good).send().await;
        assert_eq!(twice.status, 401, "{method} {path}");
        let disabled = request().bearer(&disabled).send().await;
        assert_eq!(disabled.refusal(), (403, "user_disabled".into()), "{method} {path}");
    }
    assert!(s.team.calls().is_empty());
    // The same token is good where it is whole.
    assert_eq!(s.get("/api/me").bearer(&good).send().await.json(), json!({ "user": "ann", "via": "token" }));
}

#[tokio::test]
async fn sec_7_every_route_refuses_other_hosts_and_origins_before_anything_happens() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let cookie = s.cookie("ann").await;
    let own = format!("http://{}", s.addr);
    for (method, path) in PROTECTED.into_iter().chain(OPEN) {
        let request = || {
            let request = crate::client::Request::new(s.addr, method, path).bearer(&token);
            if method == "POST" { request.json(&json!({})) } else { request }
        };
        for host in [Some("evil.example"), Some("evil.example:80"), Some(""), None] {
            let answer = request().host(host).send().await;
            assert_eq!(answer.refusal(), (403, "host_not_allowed".into()), "{method} {path} {host:?}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1"] {
            let answer = request().header("origin", origin).send().await;
            assert_eq!(answer.refusal(), (403, "origin_not_allowed".into()), "{method} {path} {origin}");
        }
        let twice = request().header("origin", &own).header("origin", "http://evil.example").send().await;
        assert_eq!(twice.status, 403, "{method} {path}");
    }
    // What a page of another origin can send unasked: text/plain, with the
    // browser's cookie.
    let forged = s.action("create").header("cookie", &cookie).header("origin", "http://evil.example");
    assert_eq!(forged.text("text/plain", "{}").send().await.status, 403);
    // Another port of this machine is the same site, and another origin.
    for site in ["cross-site", "same-site"] {
        let answer = s.get("/api/events").header("cookie", &cookie).header("sec-fetch-site", site).send().await;
        assert_eq!(answer.refusal(), (403, "origin_not_allowed".into()), "{site}");
    }
    assert!(s.team.calls().is_empty());
    let own = s.get("/api/me").header("cookie", &cookie).header("sec-fetch-site", "same-origin").send().await;
    assert_eq!(own.json(), json!({ "user": "ann", "via": "session" }));
}

/// The operator's routes, as method and path.
const OPERATOR: [(&str, &str); 11] = [
    ("GET", "/api/operator/slots"),
    ("POST", "/api/operator/settle"),
    ("GET", "/api/operator/users"),
    ("POST", "/api/operator/users"),
    ("POST", "/api/operator/users/ann"),
    ("GET", "/api/operator/tokens"),
    ("POST", "/api/operator/tokens"),
    ("POST", "/api/operator/tokens/x/revoke"),
    ("POST", "/api/operator/links"),
    ("GET", "/api/operator/sessions"),
    ("POST", "/api/operator/sessions/end"),
];

#[tokio::test]
async fn the_operators_routes_are_for_the_operators_secret_and_it_is_for_nothing_else() {
    let s = Server::start().await;
    let (token, cookie) = (s.token("ann").await, s.cookie("ann").await);
    let payload = json!({ "owner": "bob", "team": "t", "job": "j" });
    for (method, path) in OPERATOR {
        let request = || {
            let request = crate::client::Request::new(s.addr, method, path);
            if method == "POST" { request.json(&payload) } else { request }
        };
        let cut = &s.operator[..s.operator.len() - 1];
        let refused = (403, "operator_only".into());
        assert_eq!(request().send().await.refusal(), refused, "{path}");
        assert_eq!(request().session(&cookie).send().await.refusal(), refused, "{path}");
        for bad in [token.as_str(), cut, "", &s.operator.replace("ato_", "att_")] {
            assert_eq!(request().bearer(bad).send().await.refusal(), refused, "{path} {bad}");
        }
        let twice = request().bearer(&s.operator).bearer(&s.operator).send().await;
        assert_eq!(twice.refusal(), refused, "{path}");
        let elsewhere = request().bearer(&s.operator).host(Some("evil.example")).send().await;
        assert_eq!(elsewhere.refusal(), (403, "host_not_allowed".into()), "{path}");
        let page = request().bearer(&s.operator).header("origin", "http://evil.example").send().await;
        assert_eq!(page.refusal(), (403, "origin_not_allowed".into()), "{path}");
    }
    for (method, path) in PROTECTED {
        let request = crate::client::Request::new(s.addr, method, path).bearer(&s.operator);
        let request = if method == "POST" { request.json(&json!({})) } else { request };
        assert_eq!(request.send().await.refusal(), (401, "not_signed_in".into()), "{method} {path}");
    }
    assert!(s.team.calls().is_empty());

    let slots = s.get("/api/operator/slots").bearer(&s.operator).send().await;
    assert_eq!(slots.json(), json!([{ "owner": "ann", "job": "job-1" }]));
    let settle = |payload: &serde_json::Value| s.post("/api/operator/settle").bearer(&s.operator).json(payload);
    let settled = settle(&payload).send().await;
    assert_eq!(settled.json(), json!({ "job": { "owner": "bob", "team": "t", "id": "j" } }));
    let wrong = settle(&json!({ "owner": "bob", "team": 1, "job": "j" })).send().await.refusal();
    assert_eq!(wrong, (400, "text_required".into()));
    let more = settle(&json!({ "owner": "b", "team": "t", "job": "j", "outcome": "retry" })).send().await.refusal();
    assert_eq!(more, (400, "unknown_field".into()));
}

#[tokio::test]
async fn a_session_changes_things_from_the_own_page_only() {
    let s = Server::start().await;
    let cookie = s.cookie("ann").await;
    let bare = s.action("list").header("cookie", &cookie).json(&json!({})).send().await;
    assert_eq!(bare.refusal(), (403, "origin_required".into()));
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"] {
        let answer = s.action("list").session(&cookie).text(media_type, "{}").send().await;
        assert_eq!(answer.refusal(), (415, "json_required".into()), "{media_type}");
    }
    assert_eq!(s.action("list").session(&cookie).body(b"{}").send().await.status, 415);
    assert!(s.team.calls().is_empty());
    assert_eq!(s.action("list").session(&cookie).json(&json!({})).send().await.status, 200);
    // A wrong token is not made good by a session beside it.
    let mixed = s.action("list").session(&cookie).bearer("att_wrong").json(&json!({})).send().await;
    assert_eq!(mixed.status, 401);
    assert_eq!(s.team.calls().len(), 1);
}

#[tokio::test]
async fn identity_and_capability_come_from_the_sign_in_alone() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let payload = json!({ "owner": "bob", "user": "bob", "caller": { "owner": "bob" }, "thread": "t" });
    let request = s.action("list").bearer(&token).header("x-user", "bob").header("x-forwarded-user", "bob");
    assert_eq!(request.json(&payload).send().await.status, 200);
    let call = s.team.calls().remove(0);
    assert_eq!(call.caller, agent_teams_host::contract::Caller::owner("ann"));
    assert_eq!(call.capability, "ann");
    assert_eq!(call.payload, payload.to_string());
}

#[tokio::test]
async fn a_sign_in_link_works_once_and_its_cookie_is_closed_to_scripts() {
    let s = Server::start().await;
    let origin = format!("http://{}", s.addr);
    let link = s.users.sign_in_link("ann").await.unwrap();
    let exchange = || s.post("/api/sign-in").json(&json!({ "secret": link.secret }));
    // Not from another place, and without using the link up.
    assert_eq!(exchange().send().await.refusal(), (403, "origin_required".into()));
    assert_eq!(exchange().header("origin", "http://evil.example").send().await.status, 403);
    let answer = exchange().header("origin", &origin).send().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["user"], "ann");
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=34560000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let again = exchange().header("origin", &origin).send().await;
    assert_eq!(again.refusal(), (403, "sign_in_link_invalid".into()));

    let late = s.users.sign_in_link("ann").await.unwrap();
    s.pass(10 * 60 * 1000);
    let answer = s.post("/api/sign-in").header("origin", &origin).json(&json!({ "secret": late.secret })).send().await;
    assert_eq!(answer.refusal(), (403, "sign_in_link_invalid".into()));
    assert!(answer.header("set-cookie").is_none());

    let none = s.post("/api/sign-in").header("origin", &origin).json(&json!({ "secret": 5 })).send().await;
    assert_eq!(none.refusal(), (400, "text_required".into()));
    assert_eq!(none.json()["field"], "secret");
}

#[tokio::test]
async fn signing_out_ends_the_session_and_only_a_token_makes_links() {
    let s = Server::start().await;
    let (cookie, other) = (s.cookie("ann").await, s.cookie("ann").await);
    let refused = s.post("/api/sign-in-link").session(&cookie).json(&json!({})).send().await;
    assert_eq!(refused.refusal(), (403, "token_required".into()));
    let answer = s.post("/api/sign-out").session(&cookie).json(&json!({})).send().await;
    assert_eq!(answer.status, 204);
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(s.get("/api/me").header("cookie", &cookie).send().await.status, 401);
    assert_eq!(s.get("/api/me").header("cookie", &other).send().await.status, 200);
    s.pass(30 * 24 * 60 * 60 * 1000);
    assert_eq!(s.get("/api/me").header("cookie", &other).send().await.status, 401);

    let token = s.token("ann").await;
    let link = s.post("/api/sign-in-link").bearer(&token).json(&json!({})).send().await.json();
    let secret = link["path"].as_str().unwrap().strip_prefix("/sign-in#").unwrap();
    assert_eq!(s.users.redeem(secret).await.unwrap().user, "ann");
}

#[tokio::test]
async fn the_sign_in_page_takes_the_secret_by_script_from_its_own_file() {
    let s = Server::start().await;
    let page = s.get("/sign-in").send().await;
    assert_eq!(page.status, 200);
    let html = String::from_utf8(page.body.clone()).unwrap();
    assert!(html.contains("<script src=\"/sign-in/sign-in.js\""));
    assert!(!html.contains("<script>") && !html.contains("<style") && !html.contains(" on"));
    let csp = page.header("content-security-policy").unwrap();
    assert!(csp.starts_with("default-src 'none'") && !csp.contains("unsafe"), "{csp}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let script = s.get("/sign-in/sign-in.js").send().await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    let text = String::from_utf8(script.body).unwrap();
    assert!(text.contains("location.hash") && text.contains("replaceState"));
    assert_eq!(s.get("/sign-in/sign-in.css").send().await.status, 200);
    assert_eq!(s.get("/sign-in/other").send().await.refusal(), (404, "no_such_route".into()));
}

#[tokio::test]
async fn sec_10_health_and_logs_hold_no_ids_and_no_secrets() {
    let s = Server::start().await;
    let alive = async || s.get("/livez").send().await.status;
    let health = s.get("/healthz").send().await;
    assert_eq!((health.status, health.json()), (200, json!({ "status": "ok" })));
    *s.agents.ill.lock().unwrap() = Some("The disk is away.");
    let health = s.get("/healthz").send().await;
    assert_eq!((health.refusal(), &health.json()["detail"]), ((503, "unhealthy".into()), &json!("The disk is away.")));
    assert_eq!((s.get("/readyz").send().await.status, alive().await), (503, 200), "the process itself is well");

    let token = s.token("ann").await;
    let link = s.users.sign_in_link("ann").await.unwrap();
    let origin = format!("http://{}", s.addr);
    let secret = json!({ "secret": link.secret });
    let answer = s.post("/api/sign-in").header("origin", &origin).json(&secret).send().await;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    s.post("/api/sign-in").header("origin", &origin).json(&secret).send().await;
    s.action("list").bearer(&token).json(&json!({ "text": "private words" })).send().await;
    s.action("list").bearer(&format!("{token}x")).json(&json!({})).send().await;
    s.get("/api/conversations/conversation-id-4711").header("cookie", &cookie).send().await;
    s.get("/api/events?team=team-id-4711").bearer("att_nobody").send().await;

    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    assert!(log.contains("answered") && log.contains("/api/conversations/{thread}"), "the log was looked at");
    for secret in [&token, &link.secret, cookie.split_once('=').unwrap().1] {
        let (id, proof) = secret.split_once('.').unwrap();
        assert!(!log.contains(proof) && !log.contains(id.trim_start_matches("att_")));
    }
    for word in ["private words", "conversation-id-4711", "team-id-4711"] {
        assert!(!log.contains(word), "{word}");
    }
}

#[tokio::test]
async fn other_machines_are_let_in_only_when_users_were_added() {
    use agent_teams_host::config::Config;
    use agent_teams_host::gateway::{BindError, check_bind};
    use agent_teams_host::users::Users;

    let folder = tempfile::tempdir().unwrap();
    let db = agent_teams_host::storage::database::Database::open(&folder.path().join("x.db")).unwrap();
    let clock = std::sync::Arc::new(agent_teams_host::clock::SystemClock);
    let tables = agent_teams_host::storage::SqliteTables::open(db, clock.clone()).await.unwrap();
    let users = Users::new(tables, clock);
    users.first_start().await.unwrap();
    let at = |bind: &str, origins: &str| {
        let text = format!("[server]\nbind = \"{bind}\"\npublic_origins = [{origins}]");
        check_bind(&Config::parse(&text, "x").unwrap().server, &users)
    };
    for local in ["127.0.0.1:0", "[::1]:80", "127.8.8.8:1"] {
        assert!(at(local, "").is_ok(), "{local}");
    }
    for open in ["0.0.0.0:8765", "[::]:8765", "192.0.2.1:8765"] {
        assert!(matches!(at(open, "\"https://a.example\""), Err(BindError::NoUsers(_))), "{open}");
    }
    users.add("ann").await.unwrap();
    assert!(at("192.0.2.1:8765", "").is_ok());
    assert!(matches!(at("0.0.0.0:8765", ""), Err(BindError::NoOrigin(_))));
    assert!(at("0.0.0.0:8765", "\"https://a.example\"").is_ok());
}
