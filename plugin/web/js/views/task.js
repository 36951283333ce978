// One task: its text, its neighbours, what the lead may do, its history.

import { html, live, nothing } from '../../vendor/lit-html.js';
import { newId } from '../api.js';
import { busy, createTask, taskErrors, updateTask } from '../commands.js';
import { load, save } from '../drafts.js';
import { t } from '../i18n.js';
import { update } from '../store.js';
import { plain } from '../text.js';
import { alertBox, button, icon, said, signButton, talk, time, why } from './parts.js';
import { blockerText, columnOf, ownerOf, setOpenTask, warningText } from './task-parts.js';

/** Counted in UTF-16 units after trimming, as the board counts them. */
const BOUNDS = { subject: 200, description: 16_384 };

const draftName = (team, id) => `team/${team}/task-draft/${id}`;
const draftOf = (team, id) => load(draftName(team, id), null);
const setDraft = (team, id, draft) => {
  save(draftName(team, id), draft);
  update();
};

function close(team) {
  setOpenTask(team, null);
}

const lines = (text) => text.split('\n').map((line) => line.replace(/\r$/, '')).filter((line) => line.trim());

function wrong(draft) {
  for (const field of ['subject', 'description']) {
    const text = draft[field].trim();
    if (!text) return { field, text: t('bounds.empty') };
    if (text.length > BOUNDS[field]) return { field, text: t('task.long', { n: text.length, max: BOUNDS[field] }) };
  }
  return null;
}

function form(team, view, draft, id, submit) {
  // From what is stored: another field may have changed since this was painted.
  const latest = () => draftOf(team, id) ?? draft;
  const set = (part) => setDraft(team, id, { ...latest(), ...part });
  const fault = wrong(draft);
  const others = view.board.tasks.filter((task) => task.id !== id);
  const shown = fault && (draft.tried || draft[fault.field].trim()) ? fault : null;
  const field = (name, label, area) => html`<div class="field"><label for="task-${name}">${label}</label>${area}
    ${shown?.field === name ? html`<p class="field-error" role="alert">${shown.text}</p>` : nothing}</div>`;
  return html`<form class="task-form" novalidate @submit=${(event) => {
      event.preventDefault();
      const now = latest();
      if (wrong(now)) set({ tried: true });
      else submit(now);
    }}>
    ${field('subject', t('task.subject'), html`<input id="task-subject" dir="auto" autocomplete="off" .value=${live(draft.subject)} aria-invalid=${shown?.field === 'subject'} @input=${(event) => set({ subject: event.target.value })}>`)}
    ${field('description', t('task.description'), html`<textarea id="task-description" rows="6" dir="auto" .value=${live(draft.description)} aria-invalid=${shown?.field === 'description'} @input=${(event) => set({ description: event.target.value })}></textarea>`)}
    ${field('scopes', t('task.scopes'), html`<textarea id="task-scopes" class="code" rows="2" spellcheck="false" .value=${live(draft.scopes)} aria-describedby="scopes-hint" @input=${(event) => set({ scopes: event.target.value })}></textarea><span class="faint" id="scopes-hint">${t('task.scopesHint')}</span>`)}
    ${others.length ? html`<fieldset class="field blockers"><legend>${t('task.blockedBy')}</legend><div class="blocker-list">${others.map((task) => html`<label><input type="checkbox"
        .checked=${live(draft.blockedBy.includes(task.id))} @change=${(event) => set({ blockedBy: [...latest().blockedBy.filter((one) => one !== task.id), ...(event.target.checked ? [task.id] : [])] })}>
        <span class="faint">${said(task.id)}</span> <span class="clip">${said(task.subject)}</span></label>`)}</div></fieldset>` : nothing}
    ${errorBox(id)}
    <div class="actions end">${button(t('task.discard'), () => { setDraft(team, id, null); taskErrors.delete(id); if (id === 'new') close(team); })}
      <button class="button primary" ?disabled=${busy(`task/${id}`)}>${t(id === 'new' ? 'task.create' : 'task.save')}</button></div>
  </form>`;
}

function errorBox(id) {
  const error = taskErrors.get(id);
  if (!error) return nothing;
  return alertBox('bad', html`${why(error)}${error.code === 'TEAM_TASK_STALE_REVISION' ? html` ${t('task.staleKept')}` : nothing}`);
}

const sameList = (a, b) => a.length === b.length && a.every((one, i) => one === b[i]);

/** Saves an edit: the text first, then the blockers, each against the stored revision. */
async function saveEdit(team, task, draft) {
  let now = task;
  const fields = {};
  const scopes = lines(draft.scopes);
  if (draft.subject.trim() !== task.subject) fields.subject = draft.subject.trim();
  if (draft.description.trim() !== task.description) fields.description = draft.description.trim();
  if (!sameList(scopes, task.writeScopes)) fields.write_scopes = scopes;
  if (Object.keys(fields).length) {
    const reply = await updateTask(team, { id: task.id, revision: draft.revision }, 'edit', fields);
    if (!reply) return again(team, task.id);
    now = reply.task;
    setDraft(team, task.id, { ...draft, revision: now.revision });
  }
  if (!sameList(draft.blockedBy, task.blockedBy)) {
    const reply = await updateTask(team, { id: task.id, revision: Math.max(now.revision, draft.revision) }, 'set_dependencies', { blocked_by: draft.blockedBy });
    if (!reply) return again(team, task.id);
  }
  setDraft(team, task.id, null);
  return again(team, task.id);
}

/** Reads the task again; after a stale edit the next try is made against what is shown now. */
function again(team, id) {
  setOpenTask(team, id);
}

async function saveNew(team, draft) {
  const content = JSON.stringify([draft.subject.trim(), draft.description.trim(), draft.blockedBy, lines(draft.scopes)]);
  const key = draft.content === content && draft.key ? draft.key : newId();
  setDraft(team, 'new', { ...draft, key, content });
  const reply = await createTask(team, {
    request_id: key, subject: draft.subject.trim(), description: draft.description.trim(), blocked_by: draft.blockedBy, write_scopes: lines(draft.scopes),
  });
  if (!reply) return;
  setDraft(team, 'new', null);
  setOpenTask(team, reply.task.id);
}

function act(team, task, view) {
  const off = busy(`task/${task.id}`) || Boolean(view.board.report?.failure);
  const press = (action, fields) => async () => {
    await updateTask(team, task, action, fields);
    again(team, task.id);
  };
  const assignable = task.status === 'in_progress' || (task.status === 'pending');
  return html`<div class="actions task-actions">
    ${assignable ? html`<label class="assign">${t('task.assign')} <select ?disabled=${off} @change=${async (event) => {
      const { value } = event.target;
      event.target.value = '-';
      await updateTask(team, task, 'reassign', value ? { owner: value } : {});
      again(team, task.id);
    }}><option value="-" selected disabled>${t('task.choose')}</option><option value="">${t('task.nobody')}</option><option value="lead">${t('board.lead')}</option>${view.team.members.map(
      (member) => html`<option value=${member.id}>${plain(member.name)}</option>`)}</select></label>` : nothing}
    ${task.status === 'in_progress' ? button(t('task.complete'), press('complete'), { icon: 'check', disabled: off }) : nothing}
    ${task.status === 'in_progress' ? button(t('task.release'), press('release'), { disabled: off }) : nothing}
    ${task.status === 'completed' ? button(t('task.reopen'), press('reopen'), { disabled: off }) : nothing}
    ${task.status !== 'deleted' ? button(t('task.edit'), () => setDraft(team, task.id, {
      subject: task.subject, description: task.description, scopes: task.writeScopes.join('\n'), blockedBy: task.blockedBy, revision: task.revision,
    }), { disabled: off }) : nothing}
    ${task.status !== 'deleted' ? button(t('task.delete'), press('delete'), { kind: 'danger', disabled: off }) : nothing}</div>`;
}

function history(view, id) {
  const read = view.board.history.get(id);
  if (!read) return html`<p class="faint">${t('loading')}</p>`;
  if (read.error) return alertBox('bad', why(read.error));
  return html`<ol class="history" tabindex=${read.events.length > 6 ? 0 : nothing}>${read.events.map((event, i) => {
    const before = read.events[i + 1]?.task;
    return html`<li><span class="faint">${t('state.revision', { n: event.task.revision })}</span> ${changeText(before, event.task, view)}
      <span class="faint">· ${event.author.kind === 'member' ? html`<a href=${talk(event.author.thread, view.id)}>${said(event.author.member ?? event.author.thread)}</a>` : t(event.author.kind === 'lead' ? 'board.lead' : 'history.import')} ${time(event.at)}</span></li>`;
  })}</ol>${read.more ? html`<p class="faint">${t('history.more')}</p>` : nothing}`;
}

/** What a version changed, in words. */
function changeText(before, now, view) {
  if (!before) return now.revision === 1 ? t('history.created') : t(`task.${now.status}`);
  const said_ = [];
  if (before.status !== now.status) said_.push(html`${t('history.status')} ${t(`task.${now.status}`)}`);
  if (before.ownerId !== now.ownerId) said_.push(html`${t('history.owner')} ${now.ownerId ? said(ownerOf(view, now).name) : t('task.nobody')}`);
  if (before.subject !== now.subject || before.description !== now.description) said_.push(t('history.text'));
  if (!sameList(before.blockedBy, now.blockedBy)) said_.push(html`${t('history.blockers')} ${now.blockedBy.length ? now.blockedBy.map((id, i) => html`${i ? ', ' : nothing}${said(id)}`) : t('history.none')}`);
  if (!sameList(before.writeScopes, now.writeScopes)) said_.push(t('history.scopes'));
  return said_.length ? said_.map((one, i) => html`${i ? '; ' : nothing}${one}`) : t('history.same');
}

function body(team, view, task) {
  const held = ownerOf(view, task);
  const row = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
  const ids = (list) => list.map((id, i) => html`${i ? ', ' : nothing}<button type="button" class="link" @click=${() => setOpenTask(team, id)}>${said(id)}</button>`);
  const draft = draftOf(team, task.id);
  if (draft) {
    return html`${draft.revision !== task.revision ? alertBox('ask', t('task.changedMeanwhile'), button(t('task.rebase'), () => setDraft(team, task.id, { ...draft, revision: task.revision }))) : nothing}
      ${form(team, view, draft, task.id, (now) => saveEdit(team, task, now))}`;
  }
  return html`<p class="task-description" dir="auto" tabindex=${task.description.length > 600 ? 0 : nothing}>${said(task.description)}</p>
    <dl class="facts">
      ${row(t('task.state'), html`${task.status === 'deleted' ? t('task.deleted') : t(`column.${columnOf(task)}`)}`)}
      ${row(t('task.owner'), held ? html`${held.sign} ${said(held.name)}` : t('task.nobody'))}
      ${task.blockedBy.length ? row(t('task.blockedBy'), ids(task.blockedBy)) : nothing}
      ${task.openBlockers?.length ? row(t('task.openBlockers'), task.openBlockers.map((one, i) => html`${i ? ', ' : nothing}${blockerText(one)}`)) : nothing}
      ${task.dependants?.length ? row(t('task.dependants'), ids(task.dependants)) : nothing}
      ${task.writeScopes.length ? row(t('task.scopesShort'), task.writeScopes.map((scope) => html`<code class="scope">${said(scope)}</code> `)) : nothing}
    </dl>
    ${(task.writeScopeWarnings ?? []).map((warning) => html`<p class="warn task-line">${icon('warn')}${warningText(warning)}</p>`)}
    ${errorBox(task.id)}
    ${act(team, task, view)}
    <h3>${t('task.history')}</h3>${history(view, task.id)}`;
}

export function taskDialog(team, view, id) {
  if (!id) return nothing;
  const draft = draftOf(team, 'new') ?? { subject: '', description: '', scopes: '', blockedBy: [], key: null };
  const listed = view.board.tasks.find((one) => one.id === id);
  const whole = view.board.whole.get(id);
  // The list is newer than the whole text, or there is only one of them.
  const task = whole && (!listed || whole.revision >= listed.revision) ? { ...whole, ...(listed ? { openBlockers: listed.openBlockers, ready: listed.ready, dependants: listed.dependants, writeScopeWarnings: listed.writeScopeWarnings } : {}) } : listed?.truncated ? null : listed;
  const error = view.board.history.get(id)?.error;
  return html`<dialog class="dialog task-dialog" aria-labelledby="task-title" @close=${() => close(team)}>
    <div class="dialog-head"><h2 id="task-title" dir="auto">${id === 'new' ? t('board.new') : html`<span class="faint">${said(id)}</span> ${said(task?.subject ?? listed?.subject ?? '')}`}</h2>
      ${signButton(t('close'), 'close', () => close(team))}</div>
    ${id === 'new' ? form(team, view, draft, 'new', (now) => saveNew(team, now)) : task ? body(team, view, task) : error ? alertBox('bad', why(error)) : html`<p class="faint" role="status">${t('loading')}</p>`}
  </dialog>`;
}
