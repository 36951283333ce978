// Search over the requests, results and shared history of one team: literal,
// without case.

import { html, live, nothing, repeat } from '../../vendor/lit-html.js';
import { has, t } from '../i18n.js';
import { update } from '../store.js';
import { fold, plain } from '../text.js';
import { reveal, unfinished } from './feed.js';
import { empty, href, icon, said, status, time } from './parts.js';

const asked = new Map();
const AROUND = 90;

/** The text around the first find, with the find marked; whole characters only. */
function excerpt(text, query) {
  const at = fold(text).indexOf(query);
  if (at < 0) return nothing;
  // Folding may change a length in rare scripts; the place is then near enough.
  const points = [...text];
  const before = [...text.slice(0, at)].length;
  const size = [...query].length;
  const from = Math.max(0, before - AROUND);
  return html`<p class="found" dir="auto">${from ? '…' : nothing}${said(points.slice(from, before).join(''))}<mark>${said(points.slice(before, before + size).join(''))}</mark>${said(points.slice(before + size, before + size + AROUND).join(''))}${before + size + AROUND < points.length ? '…' : nothing}</p>`;
}

export function search(team, view) {
  const ask = asked.get(team) ?? { query: '', member: '', kind: '' };
  const set = (part) => {
    asked.set(team, { ...(asked.get(team) ?? ask), ...part });
    update();
  };
  const query = fold(ask.query.trim());
  const found = view.jobs.filter((job) => {
    if (ask.member && job.member_id !== ask.member) return false;
    if (ask.kind === 'open' && !unfinished(job)) return false;
    if (ask.kind && ask.kind !== 'open' && job.status !== ask.kind) return false;
    if (!query) return Boolean(ask.member || ask.kind);
    return fold(job.text).includes(query) || fold(job.result?.text ?? '').includes(query) || fold(job.error?.message ?? '').includes(query);
  });
  const entries = query ? (view.state.entries ?? []).filter((entry) => fold(entry.title).includes(query) || fold(entry.content).includes(query)) : [];
  const tasks = query ? (view.board.tasks ?? []).filter((task) => fold(`${task.subject}\n${task.description}`).includes(query)) : [];
  return html`<section class="search" aria-label=${t('tab.search')}>
    <div class="search-line"><div class="search-field">${icon('search')}<input id="team-search" type="search" dir="auto" .value=${live(ask.query)} placeholder=${t('search.placeholder')}
      aria-label=${t('search.placeholder')} @input=${(event) => set({ query: event.target.value })}></div>
      <select aria-label=${t('search.member')} @change=${(event) => set({ member: event.target.value })}><option value="">${t('search.anyone')}</option>${view.team.members.map(
        (member) => html`<option value=${member.id} ?selected=${ask.member === member.id}>${plain(member.name)}</option>`)}</select>
      <select aria-label=${t('search.status')} @change=${(event) => set({ kind: event.target.value })}><option value="">${t('search.anyStatus')}</option>${['open', 'completed', 'failed', 'cancelled'].map(
        (kind) => html`<option value=${kind} ?selected=${ask.kind === kind}>${t(kind === 'open' ? 'search.open' : `status.${kind}`)}</option>`)}</select></div>
    <p class="faint" role="status">${query || ask.member || ask.kind ? t('search.found', { n: found.length + entries.length + tasks.length }) : t('search.hint')}</p>
    ${view.detailed ? nothing : html`<p class="faint">${t('loading')}</p>`}
    ${(query || ask.member || ask.kind) && !found.length && !entries.length && !tasks.length ? empty(t('search.nothing'), t('search.nothingText')) : nothing}
    <ul class="hits">${repeat(found.slice(0, 100), (job) => job.id, (job) => html`<li class="hit"><a href=${href('team', team)} @click=${() => reveal(team, view, job.id)}>
      <span class="job-head"><span class="who">${said(job.member ?? t('requester.conversation'))}</span>${job.kind === 'receipt' ? html`<span class="faint">${t('receipt.short')}</span>` : nothing}<span class="grow"></span>${status(job)}${time(job.created_at)}</span>
      ${query ? html`${excerpt(job.text, query)}${excerpt(job.result?.text ?? '', query)}${excerpt(job.error?.message ?? '', query)}` : html`<p class="found" dir="auto">${said(job.text.slice(0, 160))}</p>`}</a></li>`)}
      ${entries.map((entry) => html`<li class="hit"><a href=${href('team', team, 'state')}><span class="job-head"><span class="tag">${has(`kind.${entry.kind}`) ? t(`kind.${entry.kind}`) : entry.kind}</span>${said(entry.title)}</span>${excerpt(entry.content, query)}</a></li>`)}
      ${tasks.map((task) => html`<li class="hit"><a href=${href('team', team, 'board')}><span class="job-head"><span class="tag">${said(task.id)}</span>${said(task.subject)}</span>${excerpt(task.description, query)}</a></li>`)}
    </ul></section>`;
}
