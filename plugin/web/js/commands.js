// What a person does. Each command has a key that a repetition repeats, so
// that sending twice, or again after a lost answer, is the same command.

import { action, newId } from './api.js';
import { forgetTeam, load, save } from './drafts.js';
import { errorText, t } from './i18n.js';
import { readBoard, refreshAll, refreshTeam, state, take, takeJob, tell, update, viewOf } from './store.js';
import { BOUNDS, fault } from './text.js';

const running = new Set();

/** Whether the command with this name is under way. */
export const busy = (name) => running.has(name);

async function once(name, work) {
  if (running.has(name)) return undefined;
  running.add(name);
  update();
  try {
    return await work();
  } finally {
    running.delete(name);
    update();
  }
}

/** Calls an action; after a lost answer once more, which its key makes safe. */
async function safely(name, payload) {
  try {
    return await action(name, payload);
  } catch (error) {
    if (!error.unknown) throw error;
    await new Promise((resolve) => setTimeout(resolve, 700));
    return action(name, payload);
  }
}

const NO_DRAFT = { text: '', to: [], keys: {} };

/** The unsent request of a team: text, recipients, and a key for each. */
export const draftOf = (team) => load(`team/${team}/draft`, NO_DRAFT);

export function setDraft(team, draft) {
  const empty = !draft.text && !draft.to.length;
  save(`team/${team}/draft`, empty ? null : draft);
  update();
}

/** Per team: the last failure of a send, by member, and of the whole. */
export const sendErrors = new Map();

/**
 * Sends the draft to each recipient as a request of its own. Recipients that
 * took it leave the draft; the others stay, with the reason and the text.
 */
export function sendDraft(team) {
  return once(`send/${team}`, async () => {
    const view = viewOf(team);
    const draft = structuredClone(draftOf(team));
    const text = draft.text.trim();
    sendErrors.delete(team);
    const wrong = fault(draft.text, BOUNDS.text);
    if (wrong || !draft.to.length) {
      sendErrors.set(team, { code: wrong ? `text_${wrong}` : 'nobody' });
      return false;
    }
    // The keys are stored before anything is sent.
    for (const member of draft.to) {
      if (draft.keys[member]?.text !== text) draft.keys[member] = { id: newId(), text };
    }
    setDraft(team, draft);
    const failures = {};
    const sent = [];
    await Promise.all(
      draft.to.map(async (member) => {
        try {
          const reply = await safely('send', { team_id: team, member_id: member, request_id: draft.keys[member].id, text });
          takeJob(view, reply.job);
          sent.push(member);
        } catch (error) {
          failures[member] = error;
        }
      }),
    );
    const now = structuredClone(draftOf(team));
    now.to = now.to.filter((member) => !sent.includes(member));
    for (const member of sent) delete now.keys[member];
    // What was typed meanwhile is not what was sent: it stays.
    if (!Object.keys(failures).length && now.text.trim() === text) now.text = '';
    setDraft(team, now);
    if (Object.keys(failures).length) sendErrors.set(team, { failures });
    else tell(t('sent', { n: sent.length }), 'good');
    refreshTeam(team);
    return !Object.keys(failures).length;
  });
}

/** The unsent answer to what a job asks now. */
export const answerKey = (job) =>
  `${job.id}/${job.question ? job.question.id : job.interrupts.map((one) => one.id).join('+')}`;
const NO_ANSWER = { text: '', key: null };
export const answerOf = (team, job) => load(`team/${team}/answers`, {})[answerKey(job)] ?? NO_ANSWER;

export function setAnswer(team, job, answer) {
  const all = load(`team/${team}/answers`, {});
  if (answer) all[answerKey(job)] = answer;
  else delete all[answerKey(job)];
  save(`team/${team}/answers`, Object.keys(all).length ? all : null);
  update();
}

/** By job: why the last command about it failed. */
export const jobErrors = new Map();

function aboutJob(team, job, name, work) {
  return once(`${name}/${job.id}`, async () => {
    jobErrors.delete(job.id);
    try {
      const reply = await work();
      if (reply?.job) takeJob(viewOf(team), reply.job);
      refreshTeam(team);
      return true;
    } catch (error) {
      jobErrors.set(job.id, error);
      refreshTeam(team);
      return false;
    }
  });
}

/** Answers a question or interrupts with exactly this value. */
export function sendAnswer(team, job, value) {
  const answer = { ...answerOf(team, job) };
  const given = JSON.stringify(value);
  if (answer.given !== given || !answer.key) Object.assign(answer, { key: newId(), given });
  setAnswer(team, job, answer);
  return aboutJob(team, job, 'answer', async () => {
    // Names what is answered: a question that took its place is not.
    const asked = job.question?.id ?? job.interrupts[0]?.id;
    const reply = await safely('resume', { team_id: team, job_id: job.id, request_id: answer.key, response: value, ...(asked ? { question_id: asked } : {}) });
    setAnswer(team, job, null);
    tell(t('answer.sent'), 'good');
    return reply;
  });
}

export const cancelJob = (team, job) =>
  aboutJob(team, job, 'cancel', () => safely('cancel', { team_id: team, job_id: job.id }));

export const settleJob = (team, job, outcome) =>
  aboutJob(team, job, 'settle', () => safely('settle', { team_id: team, job_id: job.id, outcome }));

/** Gives the team this process's capability again; its work continues. */
export function reconnect(team) {
  return once(`connect/${team}`, async () => {
    try {
      const reply = await safely('connect', { team_id: team });
      if (reply.team && reply.jobs) take(viewOf(team), reply, false);
      tell(reply.team?.connected ? t('team.reconnected') : (reply.team?.reason?.message ?? ''), reply.team?.connected ? 'good' : 'bad');
    } catch (error) {
      tell(errorText(error), 'bad');
    }
    await refreshTeam(team, true);
    refreshAll();
  });
}

/** Deletes the team's records. Gives the refusal, or nothing. */
export function deleteTeam(team) {
  return once(`delete/${team}`, async () => {
    try {
      await safely('delete', { team_id: team });
    } catch (error) {
      if (error.code !== 'team_not_found') return error;
    }
    forgetTeam(team);
    state.views.delete(team);
    state.teams = state.teams?.filter((row) => row.id !== team) ?? null;
    tell(t('team.deleted'), 'good');
    refreshAll();
    return null;
  });
}

const NO_TEAM = { name: '', goal: '', members: [], lead: '', key: null, earlier: null };

/** The team that is being put together. */
export const newTeamOf = () => load('new-team', NO_TEAM);

export function setNewTeam(draft) {
  save('new-team', draft);
  update();
}

export const createError = { current: null };

/** Makes the team of the draft. Gives its id, or nothing, and the error stays. */
export function createTeam() {
  return once('create', async () => {
    createError.current = null;
    const draft = structuredClone(newTeamOf());
    const payload = {
      name: draft.name.trim(),
      goal: draft.goal.trim(),
      members: draft.members.map(({ name, agent }) => ({ name: name.trim(), agent })),
      ...(draft.earlier ? { successor_of: draft.earlier.id } : {}),
      ...(draft.members[draft.lead] ? { lead: draft.members[draft.lead].name.trim() } : {}),
    };
    const content = JSON.stringify(payload);
    if (draft.content !== content || !draft.key) Object.assign(draft, { key: newId(), content });
    setNewTeam(draft);
    try {
      const reply = await safely('create', { request_id: draft.key, ...payload });
      take(viewOf(reply.team.id), reply, false);
      setNewTeam(null);
      await refreshAll();
      return reply.team.id;
    } catch (error) {
      createError.current = error;
      return null;
    }
  });
}

/** By task id, or 'new': why the last change failed. */
export const taskErrors = new Map();

function aboutTask(team, id, work) {
  return once(`task/${id}`, async () => {
    taskErrors.delete(id);
    const board = viewOf(team).board;
    let reply = null;
    try {
      reply = await work();
    } catch (error) {
      taskErrors.set(id, error);
    }
    board.seen = -1;
    board.revision = undefined;
    board.history.delete(id);
    board.whole.delete(id);
    await readBoard(viewOf(team));
    refreshTeam(team);
    return reply;
  });
}

export const createTask = (team, task) =>
  aboutTask(team, 'new', () => action('create_task', { team_id: team, ...task }));

export const updateTask = (team, task, change, fields = {}) =>
  aboutTask(team, task.id, () =>
    action('update_task', { team_id: team, task_id: task.id, expected_revision: task.revision, action: change, ...fields }),
  );

/** Continues from the last valid state of an import that failed. */
export const acceptImport = (team) => aboutTask(team, 'import', () => action('import_tasks', { team_id: team, accept: true }));

/** Reads one task whole, tombstones too, and its versions, into the view. */
export function readTask(team, id) {
  return once(`read/${id}`, async () => {
    const { board } = viewOf(team);
    try {
      const [whole, history] = await Promise.all([
        action('tasks', { team_id: team, task_id: id }),
        action('task_history', { team_id: team, task_id: id, limit: 100 }),
      ]);
      board.whole.set(id, whole.task);
      board.history.set(id, { events: history.events, more: Boolean(history.nextCursor) });
    } catch (error) {
      board.history.set(id, { error });
    }
  });
}
