// The frame: teams at the side, the connection's state, language and theme.

import { html, nothing, repeat } from '../../vendor/lit-html.js';
import { signOut } from '../api.js';
import { language, LANGUAGES, t } from '../i18n.js';
import { chooseTheme, theme } from '../theme.js';
import { asks, asksOf, state, update } from '../store.js';
import { plain } from '../text.js';
import { conversation } from './conversation.js';
import { create } from './create.js';
import { now } from './now.js';
import { alertBox, button, empty, href, icon, said, signButton, why } from './parts.js';
import { teamPage } from './team.js';

function teamRow(row) {
  const here = state.route.team === row.id;
  const own = asksOf(row);
  const kind = !row.ready || (!row.connected && row.unfinished) ? 'bad' : own ? 'ask' : row.unfinished ? 'busy' : 'quiet';
  return html`<li><a class="team-link" href=${href('team', row.id)} aria-current=${here ? 'page' : nothing} title=${plain(row.name)}>
    <span class="dot ${kind}"></span><span class="clip grow">${said(row.name)}</span>
    ${own ? html`<span class="count ask" title=${t('nav.asks', { n: own })}>${own}</span>` : row.unfinished ? html`<span class="count" title=${t('now.unfinished', { n: row.unfinished })}>${row.unfinished}</span>` : nothing}
    <span class="off-screen">${t(`team.state.${kind}`)}</span></a></li>`;
}

function side(relanguage) {
  const waiting = asks();
  return html`<div class="side-top"><a class="brand" href=${href('now')}><svg class="brand-sign" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="6" r="3.2"/><circle cx="5.5" cy="17" r="3.2"/><circle cx="18.5" cy="17" r="3.2"/><path d="M10.5 9l-3.2 5M13.5 9l3.2 5M9 17h6"/></svg><span>${t('brand')}</span></a>
      <span class="drawer-close">${signButton(t('close'), 'close', () => { state.drawer = false; update(); })}</span></div>
    <a class="nav-link" href=${href('now')} aria-current=${state.route.name === 'now' ? 'page' : nothing}>${icon('inbox')}<span class="grow">${t('nav.now')}</span>${waiting ? html`<span class="count ask" title=${t('nav.asks', { n: waiting })}>${waiting}</span>` : nothing}</a>
    <div class="nav-head"><h2>${t('nav.teams')}</h2><a class="sign-button" href=${href('new')} aria-label=${t('nav.new')} title=${t('nav.new')} aria-current=${state.route.name === 'new' ? 'page' : nothing}>${icon('plus')}</a></div>
    ${state.teams ? html`<ul class="team-links">${repeat(state.teams, (row) => row.id, teamRow)}</ul>` : html`<p class="faint pad">${state.teamsError ? why(state.teamsError) : t('loading')}</p>`}
    ${state.teams && !state.teams.length ? html`<p class="faint pad">${t('nav.none')}</p>` : nothing}
    <div class="grow"></div>
    <div class="side-foot"><p class="live ${state.live}"><span class="dot"></span>${t(`live.${state.live}`)}</p>
      <div class="settings"><select aria-label=${t('settings.language')} @change=${(event) => relanguage(event.target.value)}>${LANGUAGES.map(([code, name]) => html`<option value=${code} lang=${code} ?selected=${code === language()}>${name}</option>`)}</select>
        <select aria-label=${t('settings.theme')} @change=${(event) => { chooseTheme(event.target.value); update(); }}>${['auto', 'light', 'dark'].map((name) => html`<option value=${name} ?selected=${name === theme()}>${t(`theme.${name}`)}</option>`)}</select></div>
      <p class="faint user"><span class="clip grow">${said(state.user)}</span><button type="button" class="link" @click=${async () => {
        try {
          await signOut();
        } finally {
          location.reload();
        }
      }}>${t('signOut')}</button></p></div>`;
}

const PAGES = { now, new: create, conversation, team: () => teamPage(state.route.team) };

export function shell({ relanguage, again }) {
  if (state.phase === 'loading') return html`<main class="alone"><p class="faint" role="status">${t('loading')}</p></main>`;
  if (state.phase === 'signed-out') {
    return html`<main class="alone">${empty(t('signIn.title'), t(state.failure?.code === 'user_disabled' ? 'error.user_disabled' : 'signIn.text'), button(t('retry'), again))}<p class="faint"><code>agent-teams serve --print-link</code></p></main>`;
  }
  if (state.phase === 'failed') return html`<main class="alone">${alertBox('bad', why(state.failure), button(t('retry'), again))}</main>`;
  const waiting = asks();
  return html`<a class="skip" href="#main" @click=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>${t('skip')}</a>
    <div class="layout ${state.drawer ? 'drawer-open' : ''}">
      <nav class="nav" aria-label=${t('nav.label')}>${side(relanguage)}</nav>
      ${state.drawer ? html`<div class="scrim" @click=${() => { state.drawer = false; update(); }}></div>` : nothing}
      <div class="body">
        <header class="top-bar">${signButton(t('nav.open'), 'menu', () => { state.drawer = true; update(); requestAnimationFrame(() => setTimeout(() => document.querySelector('.nav a')?.focus(), 20)); })}<a class="brand" href=${href('now')}>${t('brand')}</a><span class="grow"></span>
          ${waiting ? html`<a class="count ask" href=${href('now')} aria-label=${t('nav.asks', { n: waiting })}>${waiting}</a>` : nothing}<a class="sign-button" href=${href('new')} aria-label=${t('nav.new')}>${icon('plus')}</a></header>
        ${state.live === 'lost' ? html`<div class="lost" role="alert">${t('live.lostText')}</div>` : nothing}
        <main id="main" tabindex="-1">${(PAGES[state.route.name] ?? now)()}</main>
      </div>
    </div>
    <div class="notices" role="status" aria-live="polite">${state.notice ? html`<p class="notice ${state.notice.kind}">${said(state.notice.text)}</p>` : nothing}</div>`;
}
