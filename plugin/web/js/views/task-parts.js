/** What the board and the dialog of a task share. */

import { html } from '../../vendor/lit-html.js';
import { readTask } from '../commands.js';
import { load, save } from '../drafts.js';
import { t } from '../i18n.js';
import { update } from '../store.js';
import { avatar, owner, said } from './parts.js';

/** Which column a task is in. */
export const columnOf = (task) => (task.status === 'pending' ? (task.ready ? 'ready' : 'blocked') : task.status);

/** The open task, per team: its id, or 'new'. */
export const openTask = (team) => load(`team/${team}/task`, null);

export function setOpenTask(team, id) {
  save(`team/${team}/task`, id);
  if (id && id !== 'new') readTask(team, id);
  update();
}

/** The owner's name: the lead, a member, the conversation's title, or its id. */
export function ownerOf(view, task) {
  if (!task.ownerId) return null;
  if (task.ownerId === 'lead') return { name: t('board.lead'), sign: owner() };
  const member = view.team.members.find((one) => one.thread === task.ownerId || one.id === task.ownerId);
  const name = member?.name ?? task.ownerName ?? task.ownerId;
  return { name, sign: avatar(name, member?.id ?? task.ownerId) };
}

const OVERLAP = /^write scopes overlap with (.+)$/s;

/** A warning in the viewer's language. */
export const warningText = (warning) => {
  const other = OVERLAP.exec(warning);
  return other ? html`${t('board.overlap')} ${said(other[1])}` : said(warning);
};

/** A blocker and what it is. */
export const blockerText = (one) => html`${said(one.id)} <span class="faint">(${t(`task.${one.status}`)})</span>`;
