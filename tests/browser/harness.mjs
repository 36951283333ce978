// The real server on a folder of its own, real Chromium, and what all checks
// share: no page error, no console error, no request to anywhere else.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const EXTENSION = '/workspace/extensions/community.agent-teams';
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const need = (name) => process.env[name] ?? assert.fail(`${name} is not set`);

/** A result of nearly the largest size that is kept. */
const LONG = `${'# Report\n\nA paragraph with **bold** words, `code` and a [link](https://example.com/a).\n\n- one\n- two\n\n'.repeat(80).slice(0, 5900)}\n\nEND`;

/** The server program on a temporary data folder. */
export class Server {
  static async make() {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), 'agent-teams-browser-'));
    const rules = (await readFile(join(HERE, 'agents.toml'), 'utf8')).split(/(?=\[\[models\.script\.rules\]\])/);
    const long = `[[models.script.rules]]\nhuman = "[Agent team request]*\\nPlease give a long report*"\ntext = ${JSON.stringify(LONG)}\n\n`;
    // One request becomes eleven more, each with a long result that returns.
    const divide = `[[models.script.rules]]\nhuman = "[Agent team request]*\\nPlease divide*"\ntool = ""\ntext = "I divide it."\n${Array.from({ length: 11 }, (_, i) =>
      `[[models.script.rules.calls]]\ntool = "send_member"\narguments = { team_id = "{{human:team_id}}", member = "${i % 2 ? 'Bo' : 'Cy'}", request_id = "part-${i}-{{run}}", text = "Please give a long report, part ${i}." }\n`).join('')}
[[models.script.rules]]\nhuman = "[Agent team request]*\\nPlease divide*"\ntext = ${JSON.stringify(LONG)}\n
[[models.script.rules]]\nhuman = '[Agent team result]*"request_id":"part-*'\ntext = ${JSON.stringify(LONG)}\n\n`;
    rules.splice(1, 0, long, divide);
    server.config = rules.join('');
    await writeFile(join(server.folder, 'agent-teams.toml'), server.config);
    await server.start(['--print-link']);
    // A restarted server is at the same address, as a user's would be.
    server.config = server.config.replace('127.0.0.1:0', new URL(server.url).host);
    await writeFile(join(server.folder, 'agent-teams.toml'), server.config);
    return server;
  }

  async start(more = []) {
    const env = { ...process.env };
    for (const name of Object.keys(env)) if (name.startsWith('AGENT_TEAMS_')) delete env[name];
    this.child = spawn(need('AGENT_TEAMS_BIN'), ['--data', this.folder, '--json', 'serve', ...more], {
      env, stdio: ['ignore', 'pipe', process.env.BROWSER_LOG ? 'inherit' : 'ignore'],
    });
    const line = await new Promise((resolve, reject) => {
      let text = '';
      this.child.stdout.on('data', (data) => {
        text += data;
        if (text.includes('\n')) resolve(text.split('\n')[0]);
      });
      this.child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    });
    const said = JSON.parse(line);
    this.url = said.url;
    if (said.sign_in_link) this.link = said.sign_in_link;
    return said;
  }

  async stop(signal = 'SIGTERM') {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill(signal);
    await ended;
  }

  async end() {
    await this.stop('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Runs the program's command and gives its JSON. */
  async command(...args) {
    const child = spawn(need('AGENT_TEAMS_BIN'), ['--data', this.folder, '--json', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    for await (const data of child.stdout) text += data;
    return JSON.parse(text);
  }

  page(hash = '') {
    return `${this.url}${EXTENSION}/teams${hash}`;
  }
}

export const launch = () =>
  chromium.launch({
    executablePath: process.env.AGENT_TEAMS_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--disable-default-apps', '--disable-extensions',
    ],
  });

/** A signed-in browser context whose pages are watched. */
export class Visitor {
  static async come(browser, server, options = {}) {
    const visitor = new Visitor();
    visitor.server = server;
    visitor.faults = [];
    visitor.context = await browser.newContext({
      viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce',
      storageState: options.from ? await options.from.context.storageState() : undefined,
      ...options.context,
    });
    // While the page is being worked on: its files from the folder, without a build.
    const web = process.env.AGENT_TEAMS_WEB;
    if (web) {
      const prefix = `${EXTENSION}/`;
      await visitor.context.route((url) => url.pathname === `${prefix}teams` || url.pathname.startsWith(`${prefix}assets/`), async (route) => {
        const path = new URL(route.request().url()).pathname.slice(prefix.length).replace(/^assets\//, '').replace(/^teams$/, 'index.html');
        const answer = await route.fetch().catch(() => null);
        if (!answer) return route.abort();
        return route.fulfill({ response: answer, body: await readFile(join(web, path)) });
      });
    }
    visitor.context.on('page', (page) => visitor.watch(page));
    visitor.page = await visitor.context.newPage();
    visitor.page.setDefaultTimeout(15_000);
    return visitor;
  }

  watch(page) {
    page.on('pageerror', (error) => this.faults.push(`page error: ${error.stack ?? error}`));
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return;
      // What a check does to the network on purpose, the browser reports.
      if (this.expectFailures && /Failed to load resource/.test(message.text())) return;
      // The page asks for what this component may not offer, and says so.
      const action = /\/actions\/(\w+)$/.exec(message.location().url)?.[1];
      if (action && this.server.actions && !this.server.actions.includes(action)) return;
      this.faults.push(`console ${message.type()}: ${message.text()}`);
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${this.server.url}/`) && !url.startsWith('data:')) this.faults.push(`outside request: ${url}`);
    });
  }

  async signIn() {
    await this.page.goto(this.server.link);
    await this.page.waitForURL(`${this.server.page()}*`);
    const list = await this.page.evaluate(() => fetch('/api/plugins/community.agent-teams/actions').then((answer) => answer.json()));
    this.server.actions = list.actions.map((one) => one.name);
    return this;
  }

  async open(hash) {
    await this.page.goto('about:blank');
    await this.page.goto(this.server.page(hash));
    await this.page.waitForSelector('#main');
  }

  /** Calls an action as the page would. */
  action(name, payload) {
    return this.page.evaluate(
      async ([name, payload]) => {
        const answer = await fetch(`/api/plugins/community.agent-teams/actions/${name}`, {
          method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(payload),
        });
        return answer.json();
      },
      [name, payload],
    );
  }

  /** A team of Ada (planner), Bo (researcher), Cy (writer). */
  async team(name, more = {}) {
    const made = await this.action('create', {
      request_id: name, name, goal: 'Choose a new host and tell our customers.',
      members: [{ name: 'Ada', agent: 'planner' }, { name: 'Bo', agent: 'researcher' }, { name: 'Cy', agent: 'writer' }],
      ...more,
    });
    assert.ok(made.team, JSON.stringify(made));
    return { ...made.team, members: Object.fromEntries(made.team.members.map((member) => [member.name, member])) };
  }

  /** Sends a request through the action and waits until it is in one of the states. */
  async ask(team, member, text, states = ['completed', 'failed', 'waiting_input']) {
    const sent = await this.action('send', { team_id: team.id, member_id: team.members?.[member]?.id ?? member, request_id: `${member}/${text}`.slice(0, 60), text });
    assert.ok(sent.job, JSON.stringify(sent));
    return this.until(async () => {
      const { jobs } = await this.action('get', { team_id: team.id, limit: 200, details: true });
      const job = jobs.find((one) => one.id === sent.job.id);
      return states.includes(job.status) ? job : null;
    }, `the job "${text}" is ${states}`);
  }

  /** Asks again until there is an answer; bounded by a long time, not by a fine one. */
  async until(look, what) {
    for (let tries = 0; tries < 400; tries += 1) {
      const found = await look();
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return assert.fail(`never happened: ${what}`);
  }

  /** What was done is seen: the page paints in the frame after it. */
  painted() {
    return this.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))));
  }

  /** No serious fault of accessibility on what is shown. */
  async accessible(where) {
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const serious = found.violations.filter((one) => ['serious', 'critical'].includes(one.impact));
    assert.deepEqual(
      serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html} ${node.any.map((any) => any.message)}`).join(' | ')}`), [], `accessibility of ${where}`,
    );
  }

  /** Nothing stands out of the page to the side. */
  async fits(where) {
    const [inner, outer] = await this.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(inner <= outer, `${where}: ${inner} px in ${outer} px`);
  }

  /** Nothing went wrong beside what was checked. */
  clean() {
    assert.deepEqual(this.faults, []);
  }

  async leave() {
    await this.context.close();
    this.clean();
  }
}

/** A picture for the documentation, when they are asked for. */
export async function picture(page, name) {
  const folder = process.env.AGENT_TEAMS_PICTURES;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
