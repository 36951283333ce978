// Both themes, both languages, wide and narrow, by keyboard, to a screen reader.

import assert from 'node:assert/strict';
import { picture } from '../harness.mjs';

let shown = null;

async function example(visitor) {
  if (shown && (await visitor.action('list', {})).teams.some((row) => row.id === shown.id)) return shown;
  const team = await visitor.team('Hosting move', { lead: 'Ada' });
  await visitor.ask(team, 'Cy', 'Please write the file.');
  await visitor.ask(team, 'Bo', 'Please publish the plan.');
  await visitor.ask(team, 'Ada', 'Please compare the offers over one and three years, and say which one you would take.');
  await visitor.ask(team, 'Ada', 'Please hand this over.');
  await visitor.ask(team, 'Bo', 'Write the announcement, but ask me first.');
  for (const [subject, blocked_by] of [['Collect prices', []], ['Check outages', []], ['Decide', ['task-1', 'task-2']]]) {
    await visitor.action('create_task', { team_id: team.id, subject, description: 'As discussed.', blocked_by, write_scopes: ['notes'] });
  }
  shown = team;
  return team;
}

/** The contrast of an element's text against what is behind it. */
const contrast = (node) => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  let behind = node;
  while (behind && rgb(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const [a, b] = [light(rgb(getComputedStyle(node).color)), light(rgb(getComputedStyle(behind ?? document.documentElement).backgroundColor))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};

export const checks = Object.fromEntries(
  [['light', 'en-US', 1440], ['dark', 'zh-CN', 1440], ['dark', 'en-US', 390], ['light', 'zh-CN', 390]].map(([theme, locale, width]) => [
    `${theme}, ${locale}, ${width} pixels: every page fits and is accessible`,
    async ({ come }) => {
      const visitor = await come({ context: { colorScheme: theme, locale, viewport: { width, height: width > 500 ? 900 : 844 } } });
      const { page } = visitor;
      const team = await example(visitor);
      const name = { 'light1440': '', 'dark1440': 'dark-chinese-', 'dark390': 'phone-dark-', 'light390': 'phone-chinese-' }[theme + width];
      for (const [hash, ready, shot] of [
        [`#/team/${team.id}`, '.chain', 'team'], [`#/team/${team.id}/board`, '.team-main > *', ''], [`#/team/${team.id}/state`, '.entry, .empty', 'state'],
        [`#/team/${team.id}/search`, '#team-search', ''], [`#/team/${team.id}/about`, '.goal', ''], ['#/now', '.todo', 'for-you'], ['#/new', '.agents li', ''],
        [`#/conversation/${team.members.Ada.thread}/${team.id}`, '.crumbs a:has-text("Hosting move")', 'conversation'],
      ]) {
        await visitor.open(hash);
        await page.locator(ready).first().waitFor();
        await visitor.fits(hash);
        await visitor.accessible(`${hash} ${theme} ${locale} ${width}`);
        if (shot && (!name || shot === 'team')) await picture(page, `${name}${shot}`);
      }
      // What opens over a page.
      await visitor.open(`#/team/${team.id}`);
      await page.locator('#composer-text').pressSequentially('@');
      await page.locator('.picker li').nth(2).waitFor();
      await visitor.fits('the picker');
      await visitor.accessible(`the picker ${theme} ${locale} ${width}`);
      await page.locator('#composer-text').fill('');
      await visitor.open(`#/team/${team.id}/board`);
      await page.locator('.task').first().click();
      await page.locator('.task-dialog .history li').first().waitFor();
      await visitor.fits('a task');
      await visitor.accessible(`a task ${theme} ${locale} ${width}`);
      await page.locator('.task-actions .button').nth(0).click();
      await page.locator('#task-subject').fill('');
      await visitor.accessible(`a task’s form ${theme} ${locale} ${width}`);
      await page.locator('.task-form .actions .button').first().click();
      await page.keyboard.press('Escape');
      await visitor.open(`#/team/${team.id}/search`);
      await page.locator('#team-search').fill('the');
      await visitor.painted();
      await page.locator('.search[aria-busy="false"] .hit mark').first().waitFor();
      if (!name) await picture(page, 'search');
      await visitor.fits('finds');
      await visitor.accessible(`finds ${theme} ${locale} ${width}`);
      assert.equal(await page.evaluate(() => document.documentElement.lang), locale === 'zh-CN' ? 'zh-CN' : 'en');
      // Deletion is to be read in both themes.
      await visitor.open(`#/team/${team.id}`);
      await page.locator('.menu summary').click();
      const entry = page.locator('.menu-list .danger');
      assert.ok((await entry.evaluate(contrast)) >= 4.5);
      await entry.click();
      assert.ok((await page.locator('#delete-confirm').evaluate(contrast)) >= 4.5);
      await visitor.accessible('the deletion');
      await page.keyboard.press('Escape');
      await page.locator('#delete-dialog').waitFor({ state: 'detached' });
      // No word is missing in this language: a missing one shows as its key.
      assert.doesNotMatch(await page.locator('body').innerText(), /\b(nav|team|status|member|composer|tab|live)\.[a-z]/);
      if (width < 500) {
        await page.locator('.top-bar .sign-button').first().click();
        await page.locator('.nav .team-link').first().waitFor();
        await page.keyboard.press('Escape');
      }
    },
  ]),
);

Object.assign(checks, {
  async 'language and theme can be chosen and stay'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    await visitor.open('#/now');
    await page.getByLabel('Language').selectOption('zh');
    await page.getByRole('link', { name: '待你处理' }).first().waitFor();
    await page.getByLabel('颜色').selectOption('dark');
    const dark = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await page.reload();
    await page.getByRole('link', { name: '待你处理' }).first().waitFor();
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), dark);
    await page.getByLabel('颜色').selectOption('light');
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), dark);
    await page.getByLabel('语言').selectOption('en');
    await page.evaluate(() => localStorage.clear());
  },

  async 'times are in the viewer’s zone'({ come }) {
    const visitor = await come({ context: { timezoneId: 'Asia/Tokyo' } });
    const { page } = visitor;
    const team = await example(visitor);
    await visitor.open(`#/team/${team.id}`);
    const [iso, title] = await page.locator('.job-head time').first().evaluate((time) => [time.dateTime, time.title]);
    assert.match(iso, /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/);
    assert.match(title, /GMT\+9|Japan/);
  },

  async 'by keyboard alone: from the start to a sent request'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Keyboard');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.composer').waitFor();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
    for (let i = 0; i < 40 && (await page.evaluate(() => document.activeElement.id)) !== 'composer-text'; i += 1) {
      await page.keyboard.press('Tab');
      const ring = await page.evaluate(() => {
        const style = getComputedStyle(document.activeElement);
        return style.outlineStyle !== 'none' || document.activeElement.id === 'composer-text';
      });
      assert.ok(ring, `what has the focus is seen: ${await page.evaluate(() => document.activeElement.outerHTML.slice(0, 90))}`);
    }
    await page.keyboard.type('@cy');
    // The choice is told to a screen reader with the next frame.
    await page.locator('#composer-text[aria-activedescendant]').waitFor();
    assert.equal(await page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).getAttribute('aria-selected')), 'true');
    await page.keyboard.press('Enter');
    await page.keyboard.type('do it');
    await page.keyboard.press('Control+Enter');
    await page.locator('.chain').waitFor();
    const [job] = (await visitor.action('get', { team_id: team.id })).jobs;
    // What is typed right after the choice stands behind it, however fast.
    assert.deepEqual([job.member, job.text], ['Cy', '@Cy do it']);
  },

  async 'by keyboard alone: a question answered, a task made and closed again, a menu and the drawer'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Keys');
    await visitor.ask(team, 'Bo', 'Write the announcement, but ask me first.');
    const focus = () => page.evaluate(() => {
      const node = document.activeElement;
      return `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : ''} ${node.innerText ?? ''}`;
    });
    /** Goes on with Tab until what has the focus matches. */
    const reach = async (what, back = false) => {
      for (let i = 0; i < 60; i += 1) {
        if (what.test(await focus())) return;
        await page.keyboard.press(back ? 'Shift+Tab' : 'Tab');
      }
      assert.fail(`Tab never reached ${what}: ${await focus()}`);
    };
    await visitor.open(`#/team/${team.id}`);
    await page.locator('div.ask').waitFor();
    await reach(/^button Formal/);
    await page.keyboard.press('Enter');
    await reach(/^textarea#answer-/);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Done: it is finished.').waitFor();
    await visitor.open(`#/team/${team.id}/board`);
    await page.getByText('No tasks yet').waitFor();
    await reach(/^button New task/);
    await page.keyboard.press('Enter');
    await page.locator('.task-dialog').waitFor();
    await reach(/^input#task-subject/);
    await page.keyboard.type('By keyboard');
    await reach(/^textarea#task-description/);
    await page.keyboard.type('All of it');
    await reach(/^button Add the task/);
    await page.keyboard.press('Enter');
    await page.locator('.task-dialog .history li').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.task-dialog').waitFor({ state: 'detached' });
    await reach(/^button By keyboard/);
    await page.keyboard.press('Enter');
    await page.locator('.task-dialog .history li').waitFor();
    // Behind a dialog nothing takes the focus, and after it the card has it again.
    for (let i = 0; i < 12; i += 1) {
      await page.keyboard.press('Tab');
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest('dialog')), await focus());
    }
    await page.keyboard.press('Escape');
    await page.locator('.task-dialog').waitFor({ state: 'detached' });
    assert.match(await focus(), /^button By keyboard/);
    await reach(/^summary Manage/, true);
    await page.keyboard.press('Enter');
    await page.locator('.menu-list').getByRole('button', { name: 'Reconnect' }).waitFor();
    await page.keyboard.press('Escape');
    await visitor.painted();
    assert.match(await focus(), /^summary Manage/);
    assert.equal(await page.locator('.menu[open]').count(), 0);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator('.top-bar .sign-button').first().focus();
    await page.keyboard.press('Enter');
    await visitor.until(() => page.evaluate(() => Boolean(document.activeElement.closest('.nav'))), 'the drawer has the focus');
    await page.keyboard.press('Escape');
    await page.locator('.nav').waitFor({ state: 'hidden' });
  },

  async 'reduced motion stops what moves'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Still');
    await visitor.ask(team, 'Bo', 'Please take a moment.', ['running', 'completed']);
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.chain').waitFor();
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
  },

  async 'without a secure context: ids and copying'({ come, server }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Insecure');
    // What a page at a plain http address of another machine lacks.
    await page.addInitScript(() => {
      Object.defineProperty(Crypto.prototype, 'randomUUID', { value: undefined });
      Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined });
      Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined });
    });
    await page.goto('about:blank');
    await page.goto(server.page(`#/team/${team.id}`));
    await page.locator('.member-button', { hasText: 'Ada' }).click();
    await page.locator('#composer-text').fill('no secure context');
    await page.locator('#composer-send').click();
    await page.getByText('Done: it is finished.').waitFor();
    await page.getByRole('button', { name: 'Copy the result of Ada' }).click();
    await page.getByText('Copied.').waitFor();
  },
});
