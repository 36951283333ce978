//! A part that ends although it never should.

use super::*;
use crate::outbound::client_for;

async fn start(data: &std::path::Path) -> App {
    let config = Config::parse("[server]\nbind = \"127.0.0.1:0\"", "x").unwrap();
    App::start(Setup { data: data.to_owned(), config, component: None, any_port: false }).await.unwrap()
}

/// The status of `/healthz`.
async fn health(app: &App) -> u16 {
    let url: reqwest::Url = format!("{}/healthz", app.url()).parse().unwrap();
    client_for(&url).build().unwrap().get(url).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_end_of_any_part_is_noticed_and_the_next_start_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path()).await;
    assert_eq!(health(&app).await, 200);
    app.worker.break_down();
    assert_eq!(app.broken().await, Part::Worker);
    assert_eq!(health(&app).await, 503);
    app.stop().await;

    let app = start(folder.path()).await;
    assert_eq!(health(&app).await, 200);
    app.http.task.abort();
    assert_eq!(app.broken().await, Part::Http);
    app.stop().await;

    let app = start(folder.path()).await;
    app.db.close();
    assert_eq!(app.broken().await, Part::Writer);
    assert_eq!(health(&app).await, 503);
    app.stop().await;

    let app = start(folder.path()).await;
    assert_eq!(health(&app).await, 200);
    app.stop().await;
}

#[tokio::test]
async fn a_start_that_fails_leaves_nothing_that_leads_to_a_server() {
    let folder = tempfile::tempdir().unwrap();
    // As a killed server left it.
    drop(local::Socket::listen(folder.path()).unwrap());
    ServerFile { url: "http://127.0.0.1:1".into(), pid: 1, public: None }.write(folder.path()).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config::parse(&format!("[server]\nbind = \"{}\"", taken.local_addr().unwrap()), "x").unwrap();
    let setup = Setup { data: folder.path().to_owned(), config, component: None, any_port: false };
    assert_eq!(App::start(setup).await.err().unwrap().code(), "bind");
    assert!(ServerFile::read(folder.path()).is_none());
    assert!(!local::Socket::of(folder.path()).unwrap().path().exists());
}
