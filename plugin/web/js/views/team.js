// One team: head, banners, tabs and the panels beside them.

import { html, nothing } from '../../vendor/lit-html.js';
import { busy, deleteTeam, reconnect, setNewTeam } from '../commands.js';
import { t } from '../i18n.js';
import { refreshTeam, state, update, viewOf } from '../store.js';
import { BOUNDS, cutTo, plain } from '../text.js';
import { board } from './board.js';
import { composer } from './composer.js';
import { feed } from './feed.js';
import { goal, members } from './members.js';
import { alertBox, because, button, empty, href, icon, said, why } from './parts.js';
import { search } from './search.js';
import { stateTab } from './state-tab.js';

/** Requests left at which the page speaks of a successor. */
const NEAR = 10;
export const TABS = ['activity', 'board', 'state', 'search', 'about'];

let asking = null;

function banners(team, view) {
  const { team: facts } = view;
  const out = [];
  if (view.error) out.push(alertBox('bad', html`${t('team.stale')} ${why(view.error)}`, button(t('retry'), () => refreshTeam(team, true))));
  if (facts.reason?.code === 'damaged') {
    out.push(alertBox('bad', html`<strong>${t('team.damaged')}</strong> ${because(facts.reason)}`));
  } else if (!facts.ready || !facts.connected) {
    out.push(alertBox(facts.counts.unfinished || !facts.ready ? 'bad' : 'info',
      html`<strong>${t(facts.ready ? 'team.disconnected' : 'team.notReady')}</strong> ${because(facts.reason)}`,
      button(busy(`connect/${team}`) ? t('team.connecting') : t('team.reconnect'), () => reconnect(team), { icon: 'link', disabled: busy(`connect/${team}`) })));
  }
  if (facts.counts.requests_left <= NEAR) {
    out.push(alertBox('ask', t(facts.counts.requests_left ? 'successor.near' : 'successor.full', { n: facts.counts.requests_left }),
      button(t('successor.make'), () => successor(view), { icon: 'plus' })));
  }
  return out;
}

/** A new team with the same roster, goal and public state, to be looked at before it is made. */
function successor(view) {
  const { team } = view;
  const number = /^(.*\D)(\d{1,4})$/u.exec(team.name);
  const base = number ? number[1] : `${team.name} `;
  const tail = String(number ? Number(number[2]) + 1 : 2);
  const room = { chars: BOUNDS.teamName.chars - tail.length - 1, bytes: BOUNDS.teamName.bytes - tail.length - 1 };
  const lead = team.members.findIndex((member) => member.id === team.lead);
  setNewTeam({
    name: `${cutTo(base, room)}${base.endsWith(' ') ? ' ' : ''}${tail}`,
    goal: team.goal,
    members: team.members.map(({ name, agent }) => ({ name, agent })),
    lead: lead < 0 ? '' : lead,
    key: null,
    earlier: { id: team.id, name: team.name },
  });
  location.hash = href('new');
}

function deletion(team, view) {
  if (asking?.team !== team) return nothing;
  const close = () => {
    asking = null;
    update();
  };
  const open = view.team.counts.unfinished;
  return html`<dialog id="delete-dialog" class="dialog" aria-labelledby="delete-title" @close=${close} @cancel=${close}>
    <h2 id="delete-title">${t('delete.title')}</h2>
    <p>${t('delete.text')} <strong>${said(view.team.name)}</strong></p>
    ${open ? alertBox('ask', t('delete.unfinished', { n: open })) : nothing}
    ${asking.error ? alertBox('bad', why(asking.error)) : nothing}
    <div class="actions end">${button(t('close'), close)}
      <button type="button" class="button danger solid" id="delete-confirm" ?disabled=${busy(`delete/${team}`)} @click=${async () => {
        const error = await deleteTeam(team);
        if (error) {
          asking = { team, error };
          update();
        } else {
          asking = null;
          location.hash = href('now');
        }
      }}>${t('delete.confirm')}</button></div></dialog>`;
}

/** Dialogs open as modal once they are in the document. */
export function openDialogs() {
  for (const dialog of document.querySelectorAll('dialog:not([open])')) dialog.showModal();
}

function manage(team) {
  return html`<details class="menu"><summary class="button">${t('team.manage')}${icon('down')}</summary><div class="menu-list">
    ${button(t('team.reconnect'), (event) => { event.currentTarget.closest('details').open = false; reconnect(team); }, { icon: 'link', disabled: busy(`connect/${team}`) })}
    ${button(t('successor.make'), (event) => { event.currentTarget.closest('details').open = false; successor(viewOf(team)); }, { icon: 'plus' })}
    ${button(t('team.delete'), (event) => { event.currentTarget.closest('details').open = false; asking = { team }; update(); }, { kind: 'danger', icon: 'close' })}
  </div></details>`;
}

function tabs(team, view) {
  const counts = {
    state: view.state.entries?.filter((entry) => entry.status === 'active').length || '',
    board: view.board.tasks?.filter((task) => task.status !== 'completed').length || '',
    activity: view.team.counts.unfinished || '',
  };
  return html`<nav class="tabs" aria-label=${t('tabs.label')}>${TABS.map((name) => html`<a href=${name === 'activity' ? href('team', team) : href('team', team, name)}
    class=${name} aria-current=${state.route.tab === name ? 'page' : nothing}>${t(`tab.${name}`)}${counts[name] ? html`<span class="count">${counts[name]}</span>` : nothing}</a>`)}</nav>`;
}

export function teamPage(team) {
  const view = viewOf(team);
  if (view.gone) return html`<div class="page narrow">${empty(t('team.gone'), t('team.goneText'), html`<a class="button" href=${href('now')}>${t('nav.now')}</a>`)}</div>`;
  if (!view.team) {
    return html`<div class="page narrow">${view.error
      ? alertBox('bad', why(view.error), button(t('retry'), () => refreshTeam(team)))
      : html`<p class="faint" role="status">${t('loading')}</p>`}</div>`;
  }
  const { tab } = state.route;
  return html`<div class="team-page tab-${tab}">
    <header class="team-head"><div class="grow"><h1 dir="auto" title=${plain(view.team.name)}>${said(view.team.name)}</h1></div>${manage(team)}</header>
    ${tabs(team, view)}
    <div class="team-columns"><div class="team-main">
      ${banners(team, view)}
      ${tab === 'activity' ? html`${composer(team)}${feed(team, view)}` : nothing}
      ${tab === 'board' ? board(team, view) : nothing}
      ${tab === 'state' ? stateTab(team, view) : nothing}
      ${tab === 'search' ? search(team, view) : nothing}
      ${tab === 'about' ? html`${members(team, view)}${goal(view)}` : nothing}
    </div>
    ${tab === 'activity' || tab === 'state' ? html`<aside class="side" aria-label=${t('team.aside')}>${members(team, view)}${goal(view)}</aside>` : nothing}</div>
    ${deletion(team, view)}</div>`;
}
