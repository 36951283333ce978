//! The page: static files that the component carries. They hold nothing of
//! anybody, so they need no sign-in; everything they show comes from the API.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::{App, PAGE_PATH, Problem};

/// The asset that is the page itself.
const PAGE: &str = "index.html";
/// Keep, but ask each time whether it is still the same.
const ASK: HeaderValue = HeaderValue::from_static("no-cache");
/// Keep for good: the address holds the content's hash.
const KEEP: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

struct File {
    media_type: HeaderValue,
    sha256: String,
    body: Bytes,
}

/// The component's files, read once: a loaded component never changes them.
#[derive(Default)]
pub(super) struct Assets {
    files: OnceCell<HashMap<String, File>>,
}

impl Assets {
    async fn files(&self, app: &App) -> Result<&HashMap<String, File>, Problem> {
        self.files
            .get_or_try_init(|| async {
                let mut files = HashMap::new();
                for info in app.parts.team.assets().await? {
                    let asset = app.parts.team.asset(&info.path).await?;
                    let media_type = HeaderValue::from_str(&asset.media_type).map_err(|_| Problem::internal())?;
                    let sha256 = Sha256::digest(&asset.body).iter().map(|byte| format!("{byte:02x}")).collect();
                    files.insert(info.path, File { media_type, sha256, body: asset.body.into() });
                }
                Ok(files)
            })
            .await
    }
}

/// `GET /`: to the page.
pub(super) async fn home() -> Redirect {
    Redirect::temporary(PAGE_PATH)
}

/// `GET …/teams`: the page.
pub(super) async fn page(State(app): State<App>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    answer(&app, PAGE, &headers, &uri).await
}

/// `GET …/assets/{path}`: one file of the page. With `?v=` and the first 16 or
/// more digits of its SHA-256 it may be kept for good.
pub(super) async fn asset(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let Ok(Path(path)) = path else { return Err(super::problem::no_such_route().await) };
    answer(&app, &path, &headers, &uri).await
}

async fn answer(app: &App, path: &str, headers: &HeaderMap, uri: &Uri) -> Result<Response, Problem> {
    let Some(file) = app.assets.files(app).await?.get(path) else {
        return Err(super::problem::no_such_route().await);
    };
    let version = uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("v=")));
    let exact = version.is_some_and(|version| version.len() >= 16 && file.sha256.starts_with(version));
    let tag = format!("\"{}\"", file.sha256);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
    });
    let tag = HeaderValue::from_str(&tag).map_err(|_| Problem::internal())?;
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, if exact { KEEP } else { ASK })];
    if known {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    Ok((caching, [(header::CONTENT_TYPE, file.media_type.clone())], file.body.clone()).into_response())
}
