// The words of both languages, checked as text.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';

const WEB = new URL('../../../plugin/web/', import.meta.url);
const load = async (path) => readFile(new URL(path, WEB), 'utf8');
const locale = async (name) => (await import(`data:text/javascript,${encodeURIComponent(await load(`locales/${name}.js`))}`)).default;

const names = (text) => [...new Set([...String(text).matchAll(/\{(\w+)\}/g)].map((found) => found[1]))].sort();

export const checks = {
  async 'every English text has a Chinese one with the same gaps'() {
    const [en, zh] = [await locale('en'), await locale('zh')];
    assert.deepEqual(Object.keys(en).filter((key) => !(key in zh)), []);
    // What the server says in English by itself needs a translation only.
    assert.deepEqual(Object.keys(zh).filter((key) => !(key in en) && !/^(error|reason|failure)\./.test(key)), []);
    for (const [key, text] of Object.entries(en)) {
      if (typeof text === 'string' && typeof zh[key] === 'string') assert.deepEqual(names(zh[key]), names(text), key);
    }
  },

  async 'every text that the page asks for exists'() {
    const en = await locale('en');
    const missing = [];
    for (const folder of ['js/', 'js/views/']) {
      for (const name of (await readdir(new URL(folder, WEB))).filter((one) => one.endsWith('.js'))) {
        for (const [, key] of (await load(folder + name)).matchAll(/\bt\('([\w.]+)'/g)) if (!(key in en)) missing.push(`${name}: ${key}`);
      }
    }
    assert.deepEqual(missing, []);
    const sets = {
      status: ['queued', 'running', 'waiting_input', 'resuming', 'cancelling', 'completed', 'failed', 'cancelled', 'unknown'],
      member: ['idle', 'queued', 'working', 'waiting', 'unclear'],
      kind: ['objective', 'plan', 'finding', 'question', 'requirement'],
      column: ['ready', 'blocked', 'in_progress', 'completed'],
      task: ['pending', 'in_progress', 'completed', 'deleted', 'missing'],
      bounds: ['empty', 'chars', 'bytes', 'nul', 'surrogate'],
      live: ['stream', 'poll', 'lost'],
    };
    for (const [part, keys] of Object.entries(sets)) for (const key of keys) assert.ok(`${part}.${key}` in en, `${part}.${key}`);
  },
};
