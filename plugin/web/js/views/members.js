// The roster beside the feed: who is in the team and what each does now.

import { html, nothing } from '../../vendor/lit-html.js';
import { draftOf } from '../commands.js';
import { t } from '../i18n.js';
import { rowOf, state } from '../store.js';
import { plain } from '../text.js';
import { toggleRecipient } from './composer.js';
import { reveal } from './feed.js';
import { avatar, href, icon, said, talk } from './parts.js';

const KIND = { idle: 'quiet', queued: 'quiet', working: 'busy', waiting: 'ask', unclear: 'ask' };

function memberRow(team, view, member) {
  const to = draftOf(team).to.includes(member.id);
  const agent = state.agents?.find((one) => one.name === member.agent);
  return html`<li class="member"><div class="member-row">
    <button type="button" class="member-button" aria-pressed=${to} title=${t(to ? 'members.unpick' : 'members.pick', { name: plain(member.name) })}
      @click=${() => {
        toggleRecipient(team, member.id);
        if (state.route.tab !== 'activity') location.hash = href('team', team);
        document.querySelector('#composer-text')?.focus({ preventScroll: true });
      }}>
      ${avatar(member.name, member.id)}
      <span class="grow member-text"><span class="member-name"><span class="clip name">${said(member.name)}</span>${view.team.lead === member.id ? html`<span class="lead-mark" title=${t('members.lead')}>${icon('star')}<span class="off-screen">${t('members.lead')}</span></span>` : nothing}
          <span class="faint clip agent" title=${agent ? plain(agent.description) : nothing}>${said(agent?.display_name || member.agent)}</span></span>
        <span class="status ${KIND[member.state] ?? 'quiet'}"><span class="dot"></span>${t(`member.${member.state}`)}</span></span>
    </button>
    ${member.job_id ? html`<a class="sign-button" href=${href('team', team)} aria-label=${t('members.jobOf', { name: plain(member.name) })} title=${t('members.current')} @click=${() => reveal(team, view, member.job_id)}>${icon('arrow')}</a>` : nothing}
    <a class="sign-button" href=${talk(member.thread, team)} aria-label=${t('members.conversationOf', { name: plain(member.name) })} title=${t('members.conversationOf', { name: plain(member.name) })}>${icon('chat')}</a></div>
    ${member.problem ? html`<p class="member-problem">${icon('warn')}<span>${t('members.gone')}</span> <span class="faint">${said(member.problem.message)}</span></p>` : nothing}
  </li>`;
}

export function members(team, view) {
  return html`<section class="panel" aria-labelledby="members-title"><h2 id="members-title">${t('members.title')}</h2>
    <ul class="member-list">${view.team.members.map((member) => memberRow(team, view, member))}</ul></section>`;
}

export function goal(view) {
  const { counts } = view.team;
  const earlier = view.team.successor_of && rowOf(view.team.successor_of);
  return html`<section class="panel" aria-labelledby="goal-title"><h2 id="goal-title">${t('team.goal')}</h2>
    <p class="goal" dir="auto" tabindex=${view.team.goal.length > 300 ? 0 : nothing}>${said(view.team.goal)}</p>
    ${earlier ? html`<p class="use">${t('successor.of')} <a href=${href('team', earlier.id)}>${said(earlier.name)}</a></p>` : nothing}</section>
    <section class="panel" aria-labelledby="use-title"><h2 id="use-title">${t('team.use')}</h2>
      <p class="use"><span>${t('team.requests', { n: counts.requests, max: counts.requests + counts.requests_left })}</span>
        <meter min="0" max=${counts.requests + counts.requests_left} value=${counts.requests} high=${(counts.requests + counts.requests_left) * 0.9} aria-label=${t('team.use')}></meter></p></section>`;
}
