// The team's public state: what members keep together beside their messages.

import { html, nothing, repeat } from '../../vendor/lit-html.js';
import { has, t } from '../i18n.js';
import { opened, refreshParts, setOpened, state } from '../store.js';
import { alertBox, avatar, button, empty, href, said, summary, talk, time, why } from './parts.js';

const ORDER = ['objective', 'plan', 'requirement', 'question', 'finding'];

const rank = (entry) => (ORDER.indexOf(entry.kind) + ORDER.length) % ORDER.length;

/** The earlier team from which an entry was carried over, as long as it exists. */
function origin(by) {
  const earlier = state.teams?.find((row) => row.id === by.team);
  return html`<span>${t('state.carried')} ${earlier ? html`<a href=${href('team', earlier.id)}>${said(earlier.name)}</a>` : t('state.earlierTeam')}</span>`;
}

function entryCard(team, entry) {
  const first = entry.created_by ?? {};
  const last = entry.edited_by ?? first;
  return html`<li class="entry ${entry.status}" id="entry-${entry.id}">
    <div class="entry-head"><span class="tag">${has(`kind.${entry.kind}`) ? t(`kind.${entry.kind}`) : said(entry.kind)}</span>
      <h2 dir="auto">${said(entry.title)}</h2><span class="grow"></span><span class="faint">${t('state.revision', { n: entry.revision })}</span></div>
    <p class="entry-text" dir="auto">${said(entry.content)}</p>
    <p class="entry-foot faint">${avatar(last.member ?? '?', last.member_id ?? last.thread)}<span>${
      entry.edited_by ? t('state.edited') : t('state.published')} ${said(last.member ?? t('requester.conversation'))} ${time(last.at)}</span>
      ${last.thread ? html`<a href=${talk(last.thread, last.team ?? team)}>${t('state.source')}</a>` : nothing}
      ${entry.edited_by ? html`<span>${t('state.firstBy')} ${said(first.member)}</span>` : nothing}
      ${first.team ? origin(first) : nothing}</p>
  </li>`;
}

export function stateTab(team, view) {
  const part = view.state;
  if (part.missing) return empty(t('state.missing'), t('missing.text'));
  if (!part.entries) {
    return part.error
      ? alertBox('bad', why(part.error), button(t('retry'), () => refreshParts(view)))
      : html`<p class="faint" role="status">${t('loading')}</p>`;
  }
  const active = part.entries.filter((entry) => entry.status === 'active').sort((a, b) => rank(a) - rank(b));
  const archived = part.entries.filter((entry) => entry.status !== 'active');
  const keep = (open) => {
    if (open !== Boolean(opened(team, 'archived'))) setOpened(team, 'archived', open ? 1 : undefined);
  };
  return html`<div class="entries">
    ${part.error ? alertBox('bad', why(part.error)) : nothing}
    ${part.left !== null && part.left <= 3 ? alertBox('ask', t('state.left', { n: part.left })) : nothing}
    ${active.length ? html`<ul class="entry-list" aria-label=${t('state.active')}>${repeat(active, (entry) => entry.id, (entry) => entryCard(team, entry))}</ul>` : empty(t('state.empty'), t('state.emptyText'))}
    ${archived.length ? html`<details ?open=${Boolean(opened(team, 'archived'))} @toggle=${(event) => keep(event.target.open)}>
      ${summary(t('state.archived', { n: archived.length }), keep)}
      <ul class="entry-list">${repeat(archived, (entry) => entry.id, (entry) => entryCard(team, entry))}</ul></details>` : nothing}
  </div>`;
}
