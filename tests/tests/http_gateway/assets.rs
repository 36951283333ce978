//! The page's files.

use sha2::{Digest, Sha256};

use crate::client::Request;
use crate::fakes::PAGE;
use crate::server::Server;

const ROOT: &str = "/workspace/extensions/community.agent-teams";

#[tokio::test]
async fn files_are_served_with_a_tag_and_kept_when_named_by_hash() {
    let s = Server::start().await;
    let hash: String = Sha256::digest(PAGE).iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    let home = s.get("/").send().await;
    assert_eq!((home.status, home.header("location")), (307, Some(&*format!("{ROOT}/teams"))));

    for path in [format!("{ROOT}/teams"), format!("{ROOT}/assets/index.html")] {
        let page = s.get(&path).send().await;
        assert_eq!((page.status, page.body.as_slice()), (200, PAGE.as_bytes()), "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(page.header("etag"), Some(tag.as_str()));
        assert_eq!(page.header("cache-control"), Some("no-cache"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert!(page.header("content-security-policy").unwrap().contains("script-src 'self';"));
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
            let same = s.get(&path).header("if-none-match", &known).send().await;
            assert_eq!((same.status, same.body.len()), (304, 0), "{known}");
            assert_eq!(same.header("etag"), Some(tag.as_str()));
        }
        assert_eq!(s.get(&path).header("if-none-match", "\"x\"").send().await.status, 200);
    }
    let asset = |query: &str| s.get(&format!("{ROOT}/assets/index.html?{query}"));
    for exact in [format!("v={hash}"), format!("v={}", &hash[..16])] {
        let kept = asset(&exact).send().await;
        assert_eq!(kept.header("cache-control"), Some("public, max-age=31536000, immutable"), "{exact}");
    }
    for other in [format!("v={}", &hash[..15]), "v=".into(), format!("v={}", "0".repeat(64))] {
        assert_eq!(asset(&other).send().await.header("cache-control"), Some("no-cache"), "{other}");
    }
    let script = s.get(&format!("{ROOT}/assets/js/app.js")).send().await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript")));
    let head = Request::new(s.addr, "HEAD", &format!("{ROOT}/teams")).send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn whatever_is_no_file_of_the_page_is_not_there() {
    let s = Server::start().await;
    for path in
        ["x", "..", "../index.html", "%2e%2e/index.html", "js/../index.html", "js%2fother.js", "%00", "%ff", "C:\\x"]
    {
        let answer = s.get(&format!("{ROOT}/assets/{path}")).send().await;
        assert_eq!(answer.refusal(), (404, "no_such_route".into()), "{path}");
    }
}
