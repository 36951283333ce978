// What a person must do now, across all teams.

import { html, nothing, repeat } from '../../vendor/lit-html.js';
import { busy, reconnect } from '../commands.js';
import { t } from '../i18n.js';
import { asks, refreshAll, refreshTeam, state, todo } from '../store.js';
import { answerForm } from './answer.js';
import { jobCard, jobError } from './feed.js';
import { alertBox, because, button, empty, href, icon, said, time, why } from './parts.js';

function item(one) {
  const team = html`<a class="todo-team" href=${href('team', one.team.id)}>${said(one.team.name)}</a>`;
  if (one.kind === 'reconnect') {
    return html`<li class="todo"><div class="todo-head">${icon('link')}<strong>${t('todo.reconnect')}</strong>${team}</div>
      <p class="why">${because(one.reason)}</p><div class="actions">${button(t('team.reconnect'), () => reconnect(one.team.id), { icon: 'link', disabled: busy(`connect/${one.team.id}`) })}</div></li>`;
  }
  if (one.kind === 'loading') {
    return html`<li class="todo"><div class="todo-head">${icon('chat')}${team}</div>${one.error
      ? alertBox('bad', why(one.error), button(t('retry'), () => refreshTeam(one.team.id)))
      : html`<p class="faint" role="status">${t('loading')}</p>`}</li>`;
  }
  if (one.kind === 'settle') {
    return html`<li class="todo"><div class="todo-head">${icon('warn')}<strong>${t('todo.settle')}</strong>${team}${time(one.job.created_at)}</div>${jobCard(one.team.id, one.job, true)}</li>`;
  }
  return html`<li class="todo"><div class="todo-head">${icon('chat')}<strong>${t(one.job.question ? 'todo.answer' : 'todo.decide')}</strong>${team}${time(one.job.created_at)}</div>
    <p class="todo-text" dir="auto">${said(one.job.text.slice(0, 240))}${one.job.text.length > 240 ? '…' : nothing}</p>${answerForm(one.team.id, one.job)}${jobError(one.job)}</li>`;
}

export function now() {
  if (state.teamsError && !state.teams) return html`<div class="page narrow">${alertBox('bad', why(state.teamsError), button(t('retry'), refreshAll))}</div>`;
  if (!state.teams) return html`<div class="page narrow"><p class="faint" role="status">${t('loading')}</p></div>`;
  if (!state.teams.length) {
    return html`<div class="page narrow">${empty(t('now.first'), t('now.firstText'), html`<a class="button primary" href=${href('new')}>${icon('plus')}<span>${t('nav.new')}</span></a>`)}</div>`;
  }
  const items = todo();
  // What waits for a person is shown above.
  const atWork = (team) => team.unfinished - team.waiting;
  const busyTeams = state.teams.filter((team) => team.connected && atWork(team) > 0);
  return html`<div class="page narrow"><h1>${t('nav.now')}</h1>
    ${items.length ? html`<p class="lede">${t('now.lede', { n: asks() })}</p>
      <ul class="todos">${repeat(items, (one) => `${one.kind}/${one.team.id}/${one.job?.id ?? ''}`, item)}</ul>` : empty(t('now.none'), t(busyTeams.length ? 'now.working' : 'now.idle'))}
    ${busyTeams.length ? html`<h2 class="section">${t('now.atWork')}</h2><ul class="plain-list">${busyTeams.map((team) => html`<li><a href=${href('team', team.id)}>${said(team.name)}</a> <span class="faint">${t('now.unfinished', { n: atWork(team) })}</span></li>`)}</ul>` : nothing}
  </div>`;
}
