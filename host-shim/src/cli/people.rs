//! Who may sign in, and how, as the operator's commands manage it: at the server
//! that runs on the data folder, or, while none runs, in its database.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::offline::Offline;
use crate::users::{Ending, NewToken, Session, Token, User, UserError, check_id};

/// The operator's routes.
const USERS: &str = "/api/operator/users";
const TOKENS: &str = "/api/operator/tokens";
const LINKS: &str = "/api/operator/links";
const SESSIONS: &str = "/api/operator/sessions";

/// Where users, tokens and sessions are managed. Both do the same.
pub enum People {
    /// The running server, as its operator.
    Server(Client),
    /// The database, held by this process alone.
    Offline(Offline),
}

/// A new sign-in link.
pub struct Link {
    pub address: String,
    /// RFC 3339.
    pub expires_at: String,
}

impl People {
    /// The server of the data folder if it runs; else the database itself.
    pub async fn open(place: &Place) -> Result<Self, Fail> {
        let lost = match server(place).await {
            Ok(client) => return Ok(Self::Server(client)),
            // None runs, or it was killed and left what leads to it.
            Err(fail) if fail.exit == Exit::Unreachable => fail,
            Err(fail) => return Err(fail),
        };
        match Offline::open(place).await {
            Ok(offline) => Ok(Self::Offline(offline)),
            // A server has it: why that does not answer is the better news.
            Err(fail) if fail.code == "database_in_use" && lost.code != "server_unreachable" => Err(lost),
            Err(fail) => Err(fail),
        }
    }

    pub fn close(self) {
        if let Self::Offline(offline) = self {
            offline.close();
        }
    }

    pub async fn users(&self) -> Result<Vec<User>, Fail> {
        match self {
            Self::Server(client) => told(client.get(USERS).await?, "users"),
            Self::Offline(offline) => Ok(offline.users.list()?),
        }
    }

    pub async fn add(&self, user: &str) -> Result<User, Fail> {
        match self {
            Self::Server(client) => told(client.post(USERS, json!({ "user": user })).await?, "user"),
            Self::Offline(offline) => Ok(offline.users.add(user).await?),
        }
    }

    pub async fn set_enabled(&self, user: &str, enabled: bool) -> Result<User, Fail> {
        match self {
            Self::Server(client) => {
                // In a path only an id has a place.
                check_id(user)?;
                told(client.post(&format!("{USERS}/{user}"), json!({ "enabled": enabled })).await?, "user")
            }
            Self::Offline(offline) => Ok(offline.users.set_enabled(user, enabled).await?),
        }
    }

    pub async fn tokens(&self, user: Option<&str>) -> Result<Vec<Token>, Fail> {
        match self {
            Self::Server(client) => told(client.get(&of(TOKENS, user)?).await?, "tokens"),
            Self::Offline(offline) => Ok(offline.users.tokens(user)?),
        }
    }

    pub async fn add_token(&self, user: &str, name: &str) -> Result<NewToken, Fail> {
        match self {
            Self::Server(client) => told(client.post(TOKENS, json!({ "user": user, "name": name })).await?, "token"),
            Self::Offline(offline) => Ok(offline.users.add_token(user, name).await?),
        }
    }

    pub async fn revoke_token(&self, id: &str) -> Result<(), Fail> {
        match self {
            Self::Server(client) => {
                // Anything else cannot be in a path, and names no token.
                if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    return Err(UserError::NoToken(id.to_owned()).into());
                }
                client.post(&format!("{TOKENS}/{id}/revoke"), json!({})).await.map(drop)
            }
            Self::Offline(offline) => Ok(offline.users.revoke_token(id).await?),
        }
    }

    pub async fn sessions(&self, user: Option<&str>) -> Result<Vec<Session>, Fail> {
        match self {
            Self::Server(client) => told(client.get(&of(SESSIONS, user)?).await?, "sessions"),
            Self::Offline(offline) => Ok(offline.users.sessions(user)?),
        }
    }

    /// Ends all sessions of a user; says how many.
    pub async fn end_sessions(&self, user: &str) -> Result<usize, Fail> {
        match self {
            Self::Server(client) => {
                told(client.post(&format!("{SESSIONS}/end"), json!({ "user": user })).await?, "ended")
            }
            Self::Offline(offline) => Ok(offline.users.end_sessions(Some(user), Ending::All).await?),
        }
    }

    /// A sign-in link of the running server: without one it leads nowhere.
    pub async fn link(&self, user: &str) -> Result<Link, Fail> {
        let Self::Server(client) = self else {
            return Err(Fail::unreachable(
                "no server runs on the data folder, and a sign-in link leads to one; start it with `agent-teams serve` \
                 and repeat this",
            ));
        };
        let link = client.post(LINKS, json!({ "user": user })).await?;
        let path: String = told(link.clone(), "path")?;
        Ok(Link { address: format!("{}{path}", client.origin()), expires_at: told(link, "expires_at")? })
    }
}

/// The server that runs on the data folder, which has answered its operator.
async fn server(place: &Place) -> Result<Client, Fail> {
    let client = Client::operator(place)?;
    client.get(USERS).await?;
    Ok(client)
}

/// The address of a list, of one user or of all.
fn of(path: &str, user: Option<&str>) -> Result<String, Fail> {
    let Some(user) = user else { return Ok(path.to_owned()) };
    check_id(user)?;
    Ok(format!("{path}?user={user}"))
}

/// A member of the server's answer.
fn told<T: DeserializeOwned>(mut answer: Value, name: &str) -> Result<T, Fail> {
    serde_json::from_value(answer[name].take())
        .map_err(|_| Fail::refused("bad_answer", format!("the server's answer has no usable `{name}`")))
}
