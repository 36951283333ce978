// Search over everything of one team: requests and what came of them, public
// state and tasks. Literal, without case.

import { html, live, nothing, repeat } from '../../vendor/lit-html.js';
import { ask, asks, more, searchOf } from '../find.js';
import { has, t } from '../i18n.js';
import { fold, plain } from '../text.js';
import { reveal } from './feed.js';
import { alertBox, button, empty, href, icon, said, status, time, why } from './parts.js';
import { setOpenTask } from './task-parts.js';

const AROUND = 90;

const marked = (before, text, after) => html`<p class="found" dir="auto">${said(before)}<mark>${said(text)}</mark>${said(after)}</p>`;

/** The text around the first find, with the find marked; whole characters only. */
function excerpt(text, query) {
  const at = fold(text).indexOf(query);
  if (at < 0) return nothing;
  // Folding may change a length in rare scripts; the place is then near enough.
  const points = [...text];
  const before = [...text.slice(0, at)].length;
  const end = before + [...query].length;
  const [from, to] = [Math.max(0, before - AROUND), end + AROUND];
  return marked((from ? '…' : '') + points.slice(from, before).join(''), points.slice(before, end).join(''), points.slice(end, to).join('') + (to < points.length ? '…' : ''));
}

function jobHit(team, view, one) {
  return html`<li class="hit"><a href=${href('team', team)} @click=${() => reveal(team, view, one.job_id)}>
    <span class="job-head"><span class="who">${said(one.member ?? t('requester.conversation'))}</span>${one.kind === 'receipt' ? html`<span class="faint">${t('receipt.short')}</span>` : nothing}<span class="grow"></span>${status(one)}${time(one.created_at)}</span>
    ${one.found.length ? one.found.map((find) => marked(find.before, find.text, find.after)) : one.request.text ? html`<p class="found" dir="auto">${said(one.request.text)}</p>` : nothing}</a></li>`;
}

const entryHit = (team, entry, query) => html`<li class="hit"><a href=${href('team', team, 'state')}>
  <span class="job-head"><span class="tag">${has(`kind.${entry.kind}`) ? t(`kind.${entry.kind}`) : said(entry.kind)}</span><span class="who">${said(entry.title)}</span></span>${excerpt(entry.content, query)}</a></li>`;

const taskHit = (team, task, query) => html`<li class="hit"><a href=${href('team', team, 'board')} @click=${() => setOpenTask(team, task.id)}>
  <span class="job-head"><span class="tag">${said(task.id)}</span><span class="who">${said(task.subject)}</span></span>${excerpt(task.description, query)}</a></li>`;

export function search(team, view) {
  const found = searchOf(team);
  const { query: typed, member, status: standing } = found.ask;
  const set = (part) => ask(view, part);
  const query = fold(typed.trim());
  const here = query && !standing && !member;
  const entries = here ? (view.state.entries ?? []).filter((entry) => fold(`${entry.title}\n${entry.content}`).includes(query)) : [];
  const tasks = here ? (view.board.tasks ?? []).filter((task) => fold(`${task.subject}\n${task.description}`).includes(query)) : [];
  const asked = asks(found.ask);
  const current = found.asked === JSON.stringify(found.ask) && !found.loading;
  const count = found.results.length + entries.length + tasks.length;
  return html`<section class="search" aria-label=${t('tab.search')} aria-busy=${asked && !current}>
    <div class="search-line"><div class="search-field">${icon('search')}<input id="team-search" type="search" dir="auto" autocomplete="off" .value=${live(typed)} placeholder=${t('search.placeholder')}
      aria-label=${t('search.placeholder')} @input=${(event) => set({ query: event.target.value })}></div>
      <select aria-label=${t('search.member')} @change=${(event) => set({ member: event.target.value })}><option value="">${t('search.anyone')}</option>${view.team.members.map(
        (one) => html`<option value=${one.id} ?selected=${member === one.id}>${plain(one.name)}</option>`)}</select>
      <select aria-label=${t('search.status')} @change=${(event) => set({ status: event.target.value })}><option value="">${t('search.anyStatus')}</option>${['open', 'completed', 'failed', 'cancelled'].map(
        (kind) => html`<option value=${kind} ?selected=${standing === kind}>${t(kind === 'open' ? 'search.open' : `status.${kind}`)}</option>`)}</select></div>
    <p class="faint" role="status">${!asked ? t('search.hint') : current ? t(found.more ? 'search.foundMore' : 'search.found', { n: count }) : t('search.looking')}</p>
    ${found.error ? alertBox('bad', why(found.error), button(t('retry'), () => set({}))) : nothing}
    ${asked && current && !count && !found.error ? empty(t('search.nothing'), t('search.nothingText')) : nothing}
    ${asked ? html`<ul class="hits">${repeat(found.results, (one) => one.job_id, (one) => jobHit(team, view, one))}
      ${entries.map((entry) => entryHit(team, entry, query))}${tasks.map((task) => taskHit(team, task, query))}</ul>
    ${found.more ? html`<div class="center">${button(t('search.more'), () => more(view), { disabled: found.loading })}</div>` : nothing}` : nothing}</section>`;
}
