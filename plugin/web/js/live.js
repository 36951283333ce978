// Live updates: a stream of "something changed" with resumable ids; where it
// cannot be had, conditional reads every few seconds. A hidden page holds no
// stream, since a browser allows few connections to one server.

import { at } from './api.js';
import { refreshAll, state, update } from './store.js';

const POLL = 4000;
const SAFETY = 60_000;
const RETRY = [1000, 2000, 4000, 8000, 15_000];

let source = null;
let tries = 0;
let timer = 0;
let pending = false;
let last = 0;
let cost = 0;
let extra = () => {};

/** Reads again soon. Bursts of changes are taken together, and reading never takes more than a part of the time. */
export function changed() {
  if (pending) return;
  pending = true;
  const gap = Math.max(60, 3 * cost) - (performance.now() - last);
  setTimeout(async () => {
    const began = performance.now();
    const good = await refreshAll();
    await extra();
    last = performance.now();
    cost = Math.min(2000, last - began);
    pending = false;
    reach(good !== false);
  }, Math.max(0, gap));
}

function reach(good) {
  const live = good ? (source?.readyState === EventSource.OPEN ? 'stream' : 'poll') : 'lost';
  if (live !== state.live) {
    state.live = live;
    update();
  }
}

function listen() {
  if (source || document.hidden || state.phase !== 'ready') return;
  source = new EventSource(at('api/events'));
  source.addEventListener('open', () => {
    tries = 0;
    reach(true);
  });
  source.addEventListener('changed', changed);
  source.addEventListener('error', () => {
    // The browser would reconnect by itself, but not after a refusal; one
    // way for both keeps the pauses ours.
    source?.close();
    source = null;
    const pause = RETRY[Math.min(tries, RETRY.length - 1)];
    tries += 1;
    setTimeout(listen, pause);
    changed();
  });
}

function stop() {
  source?.close();
  source = null;
}

function tick() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (!document.hidden && state.phase === 'ready') {
      listen();
      changed();
    }
    tick();
  }, source?.readyState === EventSource.OPEN ? SAFETY : POLL);
}

/** Begins to keep the page up to date; `also` reads what else is shown. */
export function keepLive(also) {
  extra = also;
  listen();
  tick();
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) stop();
    else {
      listen();
      changed();
    }
  });
  addEventListener('online', () => {
    tries = 0;
    stop();
    listen();
    changed();
  });
  addEventListener('offline', () => reach(false));
  addEventListener('pagehide', stop);
  addEventListener('pageshow', (event) => {
    if (event.persisted) {
      listen();
      changed();
    }
  });
}
