// What a person has typed and not sent, and what they opened: kept in this
// browser, per user and per team, across reloads and restarts.

let owner = '';
const memory = new Map();

/** Drafts belong to the signed-in user. */
export function useOwner(user) {
  owner = user;
}

const keyOf = (name) => `agent-teams/${owner}/${name}`;

/** A stored value, or `fallback`. */
export function load(name, fallback) {
  const key = keyOf(name);
  try {
    const text = localStorage.getItem(key) ?? memory.get(key);
    return text === undefined || text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

/** Stores a value; `null` forgets it. Where storage is refused or full, it is kept for this visit. */
export function save(name, value) {
  const key = keyOf(name);
  const text = value === null ? null : JSON.stringify(value);
  if (text === null) memory.delete(key);
  else memory.set(key, text);
  try {
    if (text === null) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
  } catch {
    // The copy in memory serves until the page is closed.
  }
}

/** Forgets everything of a team that is gone. */
export function forgetTeam(team) {
  const prefix = keyOf(`team/${team}/`);
  for (const key of [...memory.keys()]) if (key.startsWith(prefix)) memory.delete(key);
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) localStorage.removeItem(key);
  } catch {
    // Nothing is stored then.
  }
}

/** Calls `changed(name)` when another tab stored something. */
export function onOtherTab(changed) {
  addEventListener('storage', (event) => {
    const prefix = keyOf('');
    if (event.key?.startsWith(prefix)) changed(event.key.slice(prefix.length));
  });
}
