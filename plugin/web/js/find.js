// Search in one team: the server looks through everything that the team keeps,
// page by page; what is found stays current with the team.

import { action } from './api.js';
import { readBoard, state, update } from './store.js';

const PAGE = 20;
/** A pause in typing after which is looked. */
const PAUSE = 250;

const NOTHING = { query: '', member: '', status: '' };

/** By team: what is looked for, and what was found. */
const searches = new Map();

/**
 * The search of a team: `ask`, and once it was looked, `results` with whether
 * there are `more`, or `error`.
 */
export function searchOf(team) {
  let search = searches.get(team);
  if (!search) {
    search = { ask: { ...NOTHING }, asked: null, revision: undefined, pages: 1, results: [], more: false, loading: false, again: false, error: null };
    searches.set(team, search);
  }
  return search;
}

/** Whether anything is looked for. */
export const asks = ({ query, member, status }) => Boolean(query.trim() || member || status);

let typing = 0;

/** Changes what is looked for; looks once the person pauses. */
export function ask(view, part) {
  const search = searchOf(view.id);
  search.ask = { ...search.ask, ...part };
  search.pages = 1;
  update();
  clearTimeout(typing);
  typing = setTimeout(() => look(view), 'query' in part ? PAUSE : 0);
}

/** Shows a page more. */
export function more(view) {
  searchOf(view.id).pages += 1;
  return look(view, true);
}

/** Looks again where the team changed since. */
export async function refreshSearch(view) {
  if (state.route.tab !== 'search' || !view.team) return;
  const search = searchOf(view.id);
  if (asks(search.ask) && search.revision !== view.team.revision) await look(view);
}

async function look(view, further = false) {
  const search = searchOf(view.id);
  if (!asks(search.ask)) {
    Object.assign(search, { asked: null, revision: undefined, results: [], more: false, error: null });
    update();
    return;
  }
  if (search.loading) {
    search.again = true;
    return;
  }
  search.loading = true;
  update();
  const wanted = JSON.stringify(search.ask);
  // The same question on an unchanged team has the same answer.
  const known = !further && search.asked === wanted && !search.error ? search.revision : undefined;
  try {
    const found = await pages(view.id, search.ask, search.pages, known);
    if (found) Object.assign(search, found, { asked: wanted });
    search.error = null;
    if (view.board.seen < 0 && !view.board.missing) await readBoard(view);
  } catch (error) {
    search.error = error;
  }
  search.loading = false;
  update();
  if (search.again || JSON.stringify(search.ask) !== wanted) {
    search.again = false;
    await look(view);
  }
}

/** The first pages of what is found, newest first. Nothing: unchanged. */
async function pages(team, { query, member, status }, count, revision) {
  const ask = { team_id: team, limit: PAGE };
  if (query.trim()) ask.query = query.trim();
  if (member) ask.member_id = member;
  if (status) ask.status = status;
  const results = [];
  let now;
  for (let read = 0; read < count; read += 1) {
    const reply = await action('results', read || revision === undefined ? ask : { ...ask, revision });
    if (reply.unchanged) return null;
    now ??= reply.revision;
    results.push(...reply.results);
    ask.cursor = reply.next_cursor;
    if (!ask.cursor) break;
  }
  return { results, more: Boolean(ask.cursor), revision: now };
}
