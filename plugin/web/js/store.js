// What the page knows: read from the server, conditionally, and shared by all
// views. Views read `state` and call `update()` after changing it.

import { action, agents, ApiError, me } from './api.js';
import { load, save, useOwner } from './drafts.js';

export const state = {
  /** loading, ready, signed-out, failed */
  phase: 'loading',
  failure: null,
  user: '',
  /** How the page hears of changes: stream, poll, lost. */
  live: 'poll',
  teams: null,
  teamsError: null,
  agents: null,
  agentsError: null,
  agentsLoading: false,
  route: { name: 'now' },
  /** By team id; see `viewOf`. */
  views: new Map(),
  /** Set by the shell: shown once and read aloud. */
  notice: null,
  drawer: false,
};

let painter = () => {};
let due = false;

/** The shell gives the function that renders `state`. */
export function paintWith(paint) {
  painter = paint;
}

/** Renders soon; many calls make one. */
export function update() {
  if (due) return;
  due = true;
  const run = () => {
    if (!due) return;
    due = false;
    painter();
  };
  if (document.hidden) setTimeout(run, 0);
  else {
    requestAnimationFrame(run);
    // Frames stop in a covered window.
    setTimeout(run, 250);
  }
}

/** Says something, visibly and to screen readers. */
export function tell(text, kind = 'info') {
  state.notice = { text, kind, at: Date.now() };
  update();
  setTimeout(() => {
    if (state.notice && Date.now() - state.notice.at >= 5900) {
      state.notice = null;
      update();
    }
  }, 6000);
}

/** The page's knowledge of one team. */
export function viewOf(id) {
  let view = state.views.get(id);
  if (!view) {
    view = {
      id, team: null, jobs: [], detailed: false, error: null, gone: false, loading: false, again: false,
      state: { entries: null, error: null, missing: false, seen: -1, loading: false, left: null },
      board: { tasks: null, report: null, revision: undefined, error: null, missing: false, seen: -1, loading: false, history: new Map(), whole: new Map() },
    };
    state.views.set(id, view);
  }
  return view;
}

function failed(error) {
  if (error instanceof ApiError && (error.status === 401 || error.code === 'user_disabled')) {
    state.phase = 'signed-out';
    state.failure = error;
  }
  update();
}

/** Who is signed in; then everything else may be read. */
export async function signIn() {
  try {
    state.user = (await me()).user;
    useOwner(state.user);
    state.phase = 'ready';
    state.failure = null;
  } catch (error) {
    state.phase = error.status === 401 || error.status === 403 ? 'signed-out' : 'failed';
    state.failure = error;
  }
  update();
  return state.phase === 'ready';
}

/** The catalogue. A failure is shown with a retry and never replaced by guesses. */
export async function loadAgents() {
  if (state.agentsLoading) return;
  state.agentsLoading = true;
  state.agentsError = null;
  update();
  try {
    state.agents = await agents();
  } catch (error) {
    state.agentsError = error;
    failed(error);
  }
  state.agentsLoading = false;
  update();
}

let listing = null;
let listAgain = false;

export const rowOf = (id) => state.teams?.find((row) => row.id === id);

/** Whether what is shown now needs this team's jobs. */
const needed = (row) =>
  row.id === state.route.team || (state.route.name === 'now' && row.waiting > 0) || row.id === state.route.of;

/** Reads the list of teams, then each team that is shown and changed. */
export function refreshAll() {
  if (listing) {
    listAgain = true;
    return listing;
  }
  listing = readAll().finally(() => {
    listing = null;
    if (listAgain) {
      listAgain = false;
      refreshAll();
    }
  });
  return listing;
}

async function readAll() {
  let teams;
  try {
    teams = (await action('list')).teams;
  } catch (error) {
    state.teamsError = error;
    failed(error);
    return false;
  }
  state.teamsError = null;
  if (JSON.stringify(teams) !== JSON.stringify(state.teams)) {
    state.teams = teams;
    update();
  }
  const gone = [...state.views.keys()].filter((id) => !teams.some((row) => row.id === id));
  for (const id of gone) {
    if (id === state.route.team) await refreshTeam(id);
    else state.views.delete(id);
  }
  await readNeeded();
  return true;
}

/** Reads the teams that are shown, where the list tells of something newer. */
export async function readNeeded() {
  const reads = [];
  for (const row of state.teams ?? []) {
    if (!needed(row)) continue;
    const view = viewOf(row.id);
    // A read that is under way compares itself with this row when it ends.
    if (view.loading) continue;
    const known = view.team && view.team.revision === row.revision && view.team.connected === row.connected;
    if (!known || view.error || (row.id === state.route.team && !view.detailed)) reads.push(refreshTeam(row.id));
  }
  await Promise.all(reads);
}

/** Reads one team; conditional where the page has it already. */
export async function refreshTeam(id, force = false) {
  const view = viewOf(id);
  if (view.loading) {
    view.again = true;
    return;
  }
  view.loading = true;
  const open = state.route.team === id;
  // The open team is read whole; of another one the beginnings are enough.
  const details = open;
  try {
    const ask = { team_id: id, limit: 200, details };
    if (view.team && !force && (!details || view.detailed)) ask.revision = view.team.revision;
    const reply = await action('get', ask);
    if (!reply.unchanged) take(view, reply, details);
    view.error = null;
    view.gone = false;
  } catch (error) {
    if (error.code === 'team_not_found') view.gone = true;
    else view.error = error;
    failed(error);
  }
  view.loading = false;
  update();
  const newer = !view.error && view.team && rowOf(id)?.revision > view.team.revision;
  if (view.again || newer) {
    view.again = false;
    await refreshTeam(id);
  } else if (open) {
    await refreshParts(view);
  }
}

/** Takes a reply of get, create or connect. Unchanged jobs stay the same object. */
export function take(view, reply, details) {
  const before = new Map(view.jobs.map((job) => [job.id, job]));
  view.team = reply.team;
  view.jobs = reply.jobs.map((job) => {
    job.seal = JSON.stringify(job);
    const known = before.get(job.id);
    return known && known.seal === job.seal ? known : job;
  });
  view.detailed = details;
  const row = rowOf(view.id);
  if (row && row.revision <= reply.team.revision) {
    Object.assign(row, {
      revision: reply.team.revision, ready: reply.team.ready, connected: reply.team.connected, reason: reply.team.reason,
      unfinished: reply.team.counts.unfinished,
    });
  }
  update();
}

const needsPerson = (job) => Number(job.status === 'waiting_input' || job.status === 'unknown');

/** Puts a job that a command answered with into the view at once. */
export function takeJob(view, job) {
  job.seal = JSON.stringify(job);
  const at = view.jobs.findIndex((known) => known.id === job.id);
  const row = rowOf(view.id);
  if (row) row.waiting += needsPerson(job) - (at >= 0 ? needsPerson(view.jobs[at]) : 0);
  if (at >= 0) view.jobs[at] = job;
  else view.jobs.unshift(job);
  update();
}

const missing = (error) => error.code === 'action_not_found';

/** Reads public state and board if they are shown and may have changed. */
export async function refreshParts(view) {
  const { tab } = state.route;
  const mark = view.team?.state_revision ?? view.team?.revision ?? 0;
  const jobs = [];
  if (view.team && view.state.seen !== mark && !view.state.missing) jobs.push(readState(view, mark));
  if (view.team && (tab === 'board' || (tab === 'search' && view.board.seen >= 0)) && view.board.seen < view.team.revision) jobs.push(readBoard(view));
  await Promise.all(jobs);
}

async function readState(view, mark) {
  const part = view.state;
  if (part.loading) return;
  part.loading = true;
  try {
    const reply = await action('state', { team_id: view.id });
    part.entries = reply.entries;
    part.left = reply.entries_left ?? null;
    part.error = null;
    part.seen = mark;
  } catch (error) {
    part.missing = missing(error);
    part.error = part.missing ? null : error;
  }
  part.loading = false;
  update();
}

/** Reads the whole board, page by page. */
export async function readBoard(view) {
  const part = view.board;
  if (part.loading || part.missing) return;
  part.loading = true;
  let seen = view.team?.revision ?? 0;
  try {
    const tasks = [];
    let report = null;
    let cursor;
    // 256 tasks at most; the bound only guards against a server that never ends.
    for (let pages = 0; pages < 64; pages += 1) {
      const ask = { team_id: view.id, ...(cursor ? { cursor } : {}) };
      if (!cursor && part.tasks && part.revision !== undefined) ask.revision = part.revision;
      const reply = await action('tasks', ask);
      if (reply.unchanged) {
        tasks.push(...part.tasks);
        break;
      }
      tasks.push(...reply.tasks);
      report ??= reply.board;
      if (!cursor) part.revision = reply.revision;
      cursor = reply.nextCursor;
      if (!cursor) break;
    }
    seen = Math.max(seen, part.revision ?? 0);
    if (report) part.report = report;
    const before = new Map((part.tasks ?? []).map((task) => [task.id, task]));
    part.tasks = tasks.map((task) => {
      task.seal = JSON.stringify(task);
      const known = before.get(task.id);
      return known?.seal === task.seal ? known : task;
    });
    part.error = null;
    part.seen = seen;
  } catch (error) {
    part.missing = missing(error);
    part.error = part.missing ? null : error;
  }
  part.loading = false;
  update();
  if (!part.error && !part.missing && view.team && part.seen < view.team.revision) await readBoard(view);
}

/** Which cards and entries a person has opened, per team. */
export function opened(team, id) {
  return load(`team/${team}/open`, {})[id];
}

export function setOpened(team, id, value) {
  const all = load(`team/${team}/open`, {});
  if (value === undefined) delete all[id];
  else all[id] = value;
  save(`team/${team}/open`, all);
  update();
}

/** Whether the team can only go on when somebody reconnects it. */
const cutOff = (row) => !row.ready || (!row.connected && row.unfinished > 0);

/** How many things a person must do in this team. */
export const asksOf = (row) => row.waiting + Number(cutOff(row));

/** How many things a person must do now, across teams. */
export const asks = () => (state.teams ?? []).reduce((sum, row) => sum + asksOf(row), 0);

/** What a person must do now, across teams: as far as the teams' jobs were read. */
export function todo() {
  const items = [];
  for (const row of state.teams ?? []) {
    if (cutOff(row)) items.push({ kind: 'reconnect', team: row, reason: row.reason });
    if (!row.waiting) continue;
    const jobs = (state.views.get(row.id)?.jobs ?? []).filter(needsPerson);
    for (const job of jobs) items.push({ kind: job.status === 'unknown' ? 'settle' : 'answer', team: row, job });
    if (!jobs.length) items.push({ kind: 'loading', team: row, error: state.views.get(row.id)?.error });
  }
  return items;
}
