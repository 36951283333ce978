// The task board: columns by state; each task opens with its history.

import { html, nothing, repeat } from '../../vendor/lit-html.js';
import { acceptImport, busy, readTask, taskErrors } from '../commands.js';
import { t } from '../i18n.js';
import { opened, readBoard, setOpened, state } from '../store.js';
import { alertBox, button, empty, icon, said, why } from './parts.js';
import { taskDialog } from './task.js';
import { blockerText, columnOf, openTask, ownerOf, setOpenTask, warningText } from './task-parts.js';

const COLUMNS = ['ready', 'blocked', 'in_progress', 'completed'];
/** Finished tasks shown at first. */
const DONE = 20;

function card(team, view, task) {
  const held = ownerOf(view, task);
  return html`<li><button type="button" class="task ${columnOf(task)}" data-task=${task.id} @click=${() => setOpenTask(team, task.id)} aria-haspopup="dialog">
    <span class="task-subject" dir="auto">${said(task.subject)}</span>
    ${task.openBlockers?.length ? html`<span class="task-line">${t('board.waitsFor')} ${task.openBlockers.slice(0, 3).map((one, i) => html`${i ? ', ' : nothing}${blockerText(one)}`)}${task.openBlockers.length > 3 ? '…' : nothing}</span>` : nothing}
    ${task.writeScopeWarnings?.length ? html`<span class="task-line warn">${icon('warn')}${warningText(task.writeScopeWarnings[0])}${task.writeScopeWarnings.length > 1 ? ` +${task.writeScopeWarnings.length - 1}` : nothing}</span>` : nothing}
    <span class="task-foot"><span class="faint">${said(task.id)}</span>${task.dependants?.length ? html`<span class="faint">${t('board.unblocks', { n: task.dependants.length })}</span>` : nothing}<span class="grow"></span>
      ${held ? html`<span class="task-owner">${held.sign}<span class="clip">${said(held.name)}</span></span>` : nothing}</span>
  </button></li>`;
}

function column(team, view, name, tasks) {
  const all = name !== 'completed' || opened(team, 'all-done');
  const shown = all ? tasks : tasks.slice(-DONE);
  return html`<section class="column ${name}" aria-labelledby="column-${name}"><h2 id="column-${name}"><span class="dot"></span>${t(`column.${name}`)} <span class="count">${tasks.length}</span></h2>
    ${tasks.length ? html`<ul>${repeat(shown, (task) => task.id, (task) => card(team, view, task))}</ul>` : html`<p class="faint none">${t('column.none')}</p>`}
    ${shown.length < tasks.length ? button(t('board.allDone', { n: tasks.length - shown.length }), () => setOpened(team, 'all-done', 1), { kind: 'small' }) : nothing}</section>`;
}

export function board(team, view) {
  const part = view.board;
  if (part.missing) return empty(t('board.missing'), t('missing.text'));
  if (!part.tasks) {
    return part.error ? alertBox('bad', why(part.error), button(t('retry'), () => readBoard(view))) : html`<p class="faint" role="status">${t('loading')}</p>`;
  }
  const by = new Map(COLUMNS.map((name) => [name, []]));
  for (const task of part.tasks) by.get(columnOf(task))?.push(task);
  const { report } = part;
  const importError = taskErrors.get('import');
  return html`<div class="board">
    ${report?.failure ? alertBox('bad', html`<strong>${t('board.failure')}</strong> ${said(report.failure.message)} <span class="faint">${t('board.failureLine', { n: report.failure.line })}</span><br>${t('board.failureText')}`,
      button(t('board.accept'), () => acceptImport(team), { disabled: busy('task/import') })) : nothing}
    ${importError ? alertBox('bad', why(importError)) : nothing}
    ${part.error ? alertBox('bad', why(part.error), button(t('retry'), () => readBoard(view))) : nothing}
    ${report && report.changesLeft < 500 ? alertBox('ask', t('board.changesLeft', { n: report.changesLeft })) : nothing}
    <div class="board-head"><p class="faint grow">${t('board.lede')}</p>${button(t('board.new'), () => setOpenTask(team, 'new'), { kind: 'primary', icon: 'plus', disabled: Boolean(report?.failure) })}</div>
    ${part.tasks.length ? html`<div class="columns">${COLUMNS.map((name) => column(team, view, name, by.get(name)))}</div>` : empty(t('board.empty'), t('board.emptyText'))}
    ${taskDialog(team, view, openTask(team))}
  </div>`;
}

/** Reads the task that stayed open over a reload. */
export function resumeTask(team) {
  const id = openTask(team);
  if (id && id !== 'new' && state.route.tab === 'board') readTask(team, id);
}
