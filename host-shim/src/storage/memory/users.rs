//! The tables of users in memory.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::tables::MemoryRows;
use crate::storage::tables::users::{LinkRow, SessionRow, TokenRow, UserRow, UserRows};

#[derive(Clone, Default)]
pub(super) struct UserState {
    users: BTreeMap<String, UserRow>,
    tokens: BTreeMap<String, TokenRow>,
    sessions: BTreeMap<String, SessionRow>,
    links: BTreeMap<String, LinkRow>,
}

impl UserState {
    /// A row for `user` may be inserted: `taken` says whether its id exists.
    fn check(&self, user: &str, taken: bool) -> anyhow::Result<()> {
        ensure!(!taken, "there is such a row already");
        ensure!(self.users.contains_key(user), "there is no user {user:?}");
        Ok(())
    }
}

impl UserRows for MemoryRows<'_> {
    fn user(&self, id: &str) -> anyhow::Result<Option<UserRow>> {
        Ok(self.look().users.users.get(id).cloned())
    }

    fn users(&self) -> anyhow::Result<Vec<UserRow>> {
        Ok(self.look().users.users.values().cloned().collect())
    }

    fn insert_user(&self, user: &UserRow) -> anyhow::Result<()> {
        let state = &mut self.change()?.users;
        ensure!(!state.users.contains_key(&user.id), "there is such a user already");
        state.users.insert(user.id.clone(), user.clone());
        Ok(())
    }

    fn set_disabled(&self, user: &str, since_ms: Option<i64>) -> anyhow::Result<()> {
        if let Some(user) = self.change()?.users.users.get_mut(user) {
            user.disabled_ms = since_ms;
        }
        Ok(())
    }

    fn token(&self, id: &str) -> anyhow::Result<Option<TokenRow>> {
        Ok(self.look().users.tokens.get(id).cloned())
    }

    fn tokens(&self, user: Option<&str>) -> anyhow::Result<Vec<TokenRow>> {
        let of = |token: &&TokenRow| user.is_none_or(|user| token.user == user);
        let mut tokens: Vec<TokenRow> = self.look().users.tokens.values().filter(of).cloned().collect();
        tokens.sort_by_key(|token| token.created_ms);
        Ok(tokens)
    }

    fn insert_token(&self, token: &TokenRow) -> anyhow::Result<()> {
        let state = &mut self.change()?.users;
        state.check(&token.user, state.tokens.contains_key(&token.id))?;
        state.tokens.insert(token.id.clone(), token.clone());
        Ok(())
    }

    fn set_token_used(&self, id: &str, at_ms: i64) -> anyhow::Result<()> {
        if let Some(token) = self.change()?.users.tokens.get_mut(id) {
            token.last_used_ms = Some(at_ms);
        }
        Ok(())
    }

    fn revoke_token(&self, id: &str, at_ms: i64) -> anyhow::Result<bool> {
        let state = &mut self.change()?.users;
        let Some(token) = state.tokens.get_mut(id) else { return Ok(false) };
        token.revoked_ms = token.revoked_ms.or(Some(at_ms));
        Ok(true)
    }

    fn session(&self, id: &str) -> anyhow::Result<Option<SessionRow>> {
        Ok(self.look().users.sessions.get(id).cloned())
    }

    fn sessions(&self, user: Option<&str>) -> anyhow::Result<Vec<SessionRow>> {
        let of = |session: &&SessionRow| user.is_none_or(|user| session.user == user);
        let mut sessions: Vec<SessionRow> = self.look().users.sessions.values().filter(of).cloned().collect();
        sessions.sort_by_key(|session| session.created_ms);
        Ok(sessions)
    }

    fn insert_session(&self, session: &SessionRow) -> anyhow::Result<()> {
        let state = &mut self.change()?.users;
        state.check(&session.user, state.sessions.contains_key(&session.id))?;
        state.sessions.insert(session.id.clone(), session.clone());
        Ok(())
    }

    fn set_session_used(&self, id: &str, at_ms: i64, expires_ms: i64) -> anyhow::Result<()> {
        if let Some(session) = self.change()?.users.sessions.get_mut(id) {
            session.last_used_ms = Some(at_ms);
            session.expires_ms = expires_ms;
        }
        Ok(())
    }

    fn delete_session(&self, id: &str) -> anyhow::Result<()> {
        self.change()?.users.sessions.remove(id);
        Ok(())
    }

    fn delete_sessions_of(&self, user: &str) -> anyhow::Result<()> {
        self.change()?.users.sessions.retain(|_, session| session.user != user);
        Ok(())
    }

    fn delete_sessions_expired(&self, at_ms: i64) -> anyhow::Result<()> {
        self.change()?.users.sessions.retain(|_, session| session.expires_ms > at_ms);
        Ok(())
    }

    fn link(&self, id: &str) -> anyhow::Result<Option<LinkRow>> {
        Ok(self.look().users.links.get(id).cloned())
    }

    fn insert_link(&self, link: &LinkRow) -> anyhow::Result<()> {
        let state = &mut self.change()?.users;
        state.check(&link.user, state.links.contains_key(&link.id))?;
        state.links.insert(link.id.clone(), link.clone());
        Ok(())
    }

    fn delete_link(&self, id: &str) -> anyhow::Result<()> {
        self.change()?.users.links.remove(id);
        Ok(())
    }

    fn delete_links_of(&self, user: &str) -> anyhow::Result<()> {
        self.change()?.users.links.retain(|_, link| link.user != user);
        Ok(())
    }

    fn delete_links_expired(&self, at_ms: i64) -> anyhow::Result<()> {
        self.change()?.users.links.retain(|_, link| link.expires_ms > at_ms);
        Ok(())
    }
}
