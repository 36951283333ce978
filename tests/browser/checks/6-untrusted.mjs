// Hostile text in every field: nothing runs, nothing is loaded, layout holds.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Visitor } from '../harness.mjs';

const ATTACK = '<img src=x onerror="window.hacked=1"> [x](javascript:window.hacked=1) \u202Egnp.exe\u202C zero\u200Bwidth';
const WIDE = 'W'.repeat(600);

export const checks = {
  async 'names, requests, results, state, tasks and errors are text'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('<svg onload="window.hacked=1">', {
      goal: `${ATTACK} ${WIDE}`, members: [{ name: 'Ada', agent: 'planner' }, { name: '<b onclick="window.hacked=1">Bo</b>', agent: 'hostile' }],
    });
    await visitor.ask(team, 'Ada', `Please answer with attacks. ${ATTACK} ${WIDE}`);
    await visitor.ask(team, 'Ada', 'Please fail now.');
    await visitor.ask(team, 'Ada', 'Please publish the plan.');
    await visitor.action('create_task', { team_id: team.id, subject: ATTACK, description: `${ATTACK}\n${WIDE}`, write_scopes: ['a/<script>window.hacked=1</script>'.replace('</', '<')] });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const tab of ['', '/board', '/state', '/about', '/search']) {
        await visitor.open(`#/team/${team.id}${tab}`);
        await page.locator('.team-head').waitFor();
        await page.waitForLoadState('networkidle').catch(() => {});
        await visitor.fits(`${tab || 'activity'} at ${width}`);
      }
      await visitor.open(`#/team/${team.id}`);
      const prose = page.locator('.prose', { hasText: 'mermaid' }).or(page.locator('.prose', { hasText: 'graph TD' })).first();
      await prose.waitFor();
      const found = await prose.evaluate((node) => ({
        tags: [...new Set([...node.querySelectorAll('*')].map((one) => one.tagName))].sort(),
        links: [...node.querySelectorAll('a')].map((one) => [one.href, one.target, one.rel]),
        marks: [...node.querySelectorAll('.hidden-char')].map((one) => one.textContent),
        handlers: [...node.querySelectorAll('*')].filter((one) => [...one.attributes].some((attribute) => attribute.name.startsWith('on') || attribute.name === 'style' || attribute.name === 'id')).length,
      }));
      assert.deepEqual(found.tags.filter((tag) => !['P', 'A', 'SPAN', 'PRE', 'CODE', 'DIV'].includes(tag)), []);
      for (const [href, target, rel] of found.links) {
        assert.match(href, /^(https:\/\/example\.com\/page|http:\/\/192\.0\.2\.1\/pixel\.png)$/);
        assert.equal(target, '_blank');
        assert.match(rel, /noopener/);
      }
      assert.deepEqual(found.marks, ['U+202E', 'U+202C', 'U+200B']);
      assert.equal(found.handlers, 0);
      await page.locator('.request-text .hidden-char').first().waitFor();
    }
    await visitor.open('#/new');
    await page.locator('.agents .hidden-char').first().waitFor();
    await visitor.open(`#/conversation/${team.members.Ada.thread}`);
    await page.locator('.message').first().waitFor();
    await visitor.fits('a conversation');
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  },

  async 'questions, decisions, conversations, finds and what waits for a person are text'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('<i>Attacks</i> & more', {
      goal: ATTACK, members: [{ name: 'Ada', agent: 'planner' }, { name: '<b onclick="window.hacked=1">Bo</b>', agent: 'researcher' }, { name: '</bdi><script>', agent: 'writer' }],
    });
    const [, bo, cy] = team.members['Ada'] ? Object.keys(team.members) : [];
    await visitor.ask(team, bo, `Please ask with attacks. ${ATTACK} ${WIDE}`);
    await visitor.ask(team, cy, 'Please write with attacks.');
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const hash of [`#/team/${team.id}`, '#/now']) {
        await visitor.open(hash);
        const question = page.locator('.ask', { hasText: 'Yes</b>' });
        await question.waitFor();
        assert.ok((await question.locator('.ask-text .hidden-char').allInnerTexts()).includes('U+202E'), 'what turns text around is named');
        assert.match(await question.innerText(), /<img src=x onerror=window\.hacked=1>/);
        assert.match(await question.locator('.chip').first().innerText(), /<b onclick/);
        const call = page.locator('.ask', { hasText: 'write_file' });
        assert.match(await call.locator('pre').innerText(), /<\/pre><script>/);
        assert.equal(await call.locator('pre .hidden-char').count(), 2);
        await visitor.fits(`${hash} at ${width}`);
        await visitor.accessible(`attacks, ${hash}, ${width}`);
      }
      await visitor.open(`#/conversation/${team.members[bo].thread}/${team.id}`);
      await page.locator('.message').nth(1).waitFor();
      await visitor.fits(`a conversation at ${width}`);
      await visitor.open(`#/team/${team.id}/search`);
      await page.locator('#team-search').fill('onerror');
      await visitor.painted();
      await page.locator('.search[aria-busy="false"]').waitFor();
      assert.equal(await page.locator('.hit mark').first().innerText(), 'onerror');
      await page.locator('.hit .hidden-char').first().waitFor();
      await visitor.fits(`finds at ${width}`);
      // What somebody else made of an address is no address of this page.
      await visitor.open('#/team/<img src=x onerror=window.hacked=1>/<svg>');
      await page.getByText('There is no such team').waitFor();
    }
    await page.setViewportSize({ width: 1440, height: 844 });
    await page.route('**/actions/send', (route) => route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ code: '<b>code</b>', detail: `${ATTACK} <script>window.hacked=1</script>`, field: '<i>' }) }));
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').fill(`${ATTACK} @<b`);
    await page.locator('.member-button').first().click();
    await page.locator('#composer-send').click();
    await page.locator('.alert.bad .hidden-char').first().waitFor();
    assert.equal(await page.locator('.alert.bad img, .alert.bad script, .alert.bad i').count(), 0);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  },

  async 'the policy forbids inline script, and the page needs none'({ come, server }) {
    const visitor = await come();
    const answer = await visitor.page.request.get(server.page());
    const policy = answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    const html = await answer.text();
    assert.doesNotMatch(html, /<script(?![^>]*src=)|\son\w+=|\sstyle=/);
  },

  async 'another user sees nothing of it, and a shared browser keeps drafts apart'({ come, server, browser }) {
    const visitor = await come();
    const { page } = visitor;
    visitor.expectFailures = true;
    const team = await visitor.team('Mine alone');
    const job = await visitor.ask(team, 'Ada', 'A private matter');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').fill('my private draft');
    await server.stop();
    const name = `other-${randomBytes(4).toString('hex')}`;
    await server.command('users', 'add', name);
    const said = await server.start(['--print-link', '--link-for', name]);
    const other = await Visitor.come(browser, server, { from: visitor });
    await other.context.clearCookies();
    other.expectFailures = true;
    await other.page.goto(said.sign_in_link);
    await other.page.waitForURL(`${server.page()}*`);
    await other.page.getByText('Make your first team').waitFor();
    for (const hash of [`#/team/${team.id}`, `#/conversation/${team.members.Ada.thread}`]) {
      await other.open(hash);
      await other.page.getByText(/There is no such (team|conversation)/).first().waitFor();
    }
    const none = await other.action('get', { team_id: 'f'.repeat(64) });
    assert.deepEqual(await other.action('get', { team_id: team.id }), none, 'as if it never was');
    assert.equal((await other.action('cancel', { team_id: team.id, job_id: job.id })).code, none.code);
    const drafts = await other.page.evaluate((owner) => Object.keys(localStorage).filter((key) => key.startsWith(`agent-teams/${owner}/team/`) && key.endsWith('/draft')), name);
    assert.deepEqual(drafts, []);
    await other.leave();
  },

  async 'without a session the page says how to sign in'({ browser, server }) {
    const visitor = await Visitor.come(browser, server);
    visitor.expectFailures = true;
    await visitor.page.goto(server.page());
    await visitor.page.getByText('You are not signed in').waitFor();
    await visitor.accessible('signed out');
    await visitor.leave();
  },
};
