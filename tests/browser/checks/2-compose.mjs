// The composer: the picker, chips, keys, input methods, bounds.

import assert from 'node:assert/strict';

const chipNames = (page) => page.locator('.composer .chip > bdi').allInnerTexts();

export const checks = {
  async 'the picker by keyboard: exact name first, punctuation is no part of it'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Plans', {
      members: ['plan', 'plan-b', 'plan-b2', 'other'].map((name) => ({ name, agent: 'planner' })),
    });
    await visitor.open(`#/team/${team.id}`);
    const text = page.locator('#composer-text');
    for (const [typed, first] of [['@plan-b2,', 'plan-b2'], ['@plan-b.', 'plan-b'], ['(@plan)', 'plan'], ['@PLAN-B', 'plan-b'], ['@ot', 'other']]) {
      await text.fill('');
      await text.pressSequentially(`Look ${typed}`);
      await visitor.until(async () => (await page.locator('.picker li.on .grow').innerText()) === first, `${typed} → ${first}`);
    }
    await text.fill('');
    await text.pressSequentially('@plan');
    await text.press('ArrowDown');
    await text.press('Enter');
    await visitor.painted();
    assert.deepEqual(await chipNames(page), ['plan-b']);
    await visitor.painted();
    assert.equal(await text.inputValue(), '@plan-b ');
    await text.pressSequentially('and @other');
    await text.press('Tab');
    await visitor.painted();
    assert.deepEqual(await chipNames(page), ['plan-b', 'other']);
    // Enter is a new line when nothing is being chosen.
    await text.press('Enter');
    assert.match(await text.inputValue(), /\n$/);
    await text.pressSequentially('@zzz');
    await visitor.painted();
    assert.equal(await page.locator('.picker').count(), 0);
    await text.pressSequentially(' @pl');
    await page.locator('.picker').waitFor();
    await text.press('Escape');
    await visitor.painted();
    assert.equal(await page.locator('.picker').count(), 0);
  },

  async 'typed names give nobody work; near names are offered'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Nobody');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('#composer-text').fill('@adda please check, ops@builder.io, `@Bo`, \\@Cy');
    await page.locator('#composer-send').click();
    await page.getByText('Nobody is chosen').waitFor();
    assert.equal((await visitor.action('get', { team_id: team.id })).jobs.length, 0);
    await page.locator('.near button', { hasText: 'Ada' }).click();
    await page.getByText('Starts now:').waitFor();
    await page.locator('#composer-send').click();
    await page.locator('.job').waitFor();
    const { jobs } = await visitor.action('get', { team_id: team.id, details: true });
    assert.deepEqual(jobs.map((job) => [job.member, job.text]), [['Ada', '@adda please check, ops@builder.io, `@Bo`, \\@Cy']]);
    assert.equal(await page.locator('#composer-text').inputValue(), '');
  },

  async 'two recipients get a request each; Ctrl+Enter sends; an input method’s keys are its own'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Two');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.member-button', { hasText: 'Ada' }).click();
    await page.locator('.member-button', { hasText: 'Bo' }).click();
    await page.getByText('Each gets a request of its own (2).').waitFor();
    const text = page.locator('#composer-text');
    await text.fill('你好 @A');
    // While an input method composes, Enter and Ctrl+Enter choose and send nothing.
    await text.evaluate((area) => {
      for (const more of [{ key: 'Enter' }, { key: 'Enter', ctrlKey: true }]) {
        area.dispatchEvent(new KeyboardEvent('keydown', { ...more, isComposing: true, bubbles: true, cancelable: true }));
      }
    });
    await visitor.painted();
    assert.equal(await text.inputValue(), '你好 @A');
    assert.equal((await visitor.action('get', { team_id: team.id })).jobs.length, 0);
    await text.press('Control+Enter');
    await page.locator('.chain').nth(1).waitFor();
    const { jobs } = await visitor.action('get', { team_id: team.id });
    assert.deepEqual(jobs.map((job) => job.member).sort(), ['Ada', 'Bo']);
  },

  async 'a composition of an input method goes on while the page changes; ⌘+Enter sends'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Compose');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.member-button', { hasText: 'Bo' }).click();
    const text = page.locator('#composer-text');
    await text.focus();
    const browser = await visitor.context.newCDPSession(page);
    const compose = (typed) => browser.send('Input.imeSetComposition', { text: typed, selectionStart: typed.length, selectionEnd: typed.length });
    await compose('n');
    await compose('ni h');
    assert.equal(await text.inputValue(), 'ni h');
    // Everything is drawn anew while the composition is open.
    await visitor.ask(team, 'Ada', 'Meanwhile');
    await page.getByText('Done: it is finished.').waitFor();
    await compose('ni hao');
    await visitor.painted();
    assert.equal(await text.inputValue(), 'ni hao');
    await browser.send('Input.insertText', { text: '你好' });
    await visitor.painted();
    assert.equal(await text.inputValue(), '你好');
    await text.pressSequentially(' @');
    await compose('c');
    await page.locator('.picker li', { hasText: 'Cy' }).waitFor();
    await browser.send('Input.insertText', { text: 'Cy' });
    await text.press('Enter');
    await visitor.painted();
    assert.deepEqual(await chipNames(page), ['Bo', 'Cy']);
    assert.equal(await text.inputValue(), '你好 @Cy ');
    // What was chosen can be taken back as it was typed.
    await page.locator('.composer .chip', { hasText: 'Cy' }).getByRole('button').click();
    await text.press('Meta+Enter');
    await page.locator('.chain').nth(1).waitFor();
    const { jobs } = await visitor.action('get', { team_id: team.id, details: true });
    assert.deepEqual(jobs.map((job) => [job.member, job.text]), [['Bo', '你好 @Cy'], ['Ada', 'Meanwhile']]);
  },

  async 'a text over its bounds is kept and not sent; exact ones are taken'({ come }) {
    const visitor = await come();
    const { page } = visitor;
    const team = await visitor.team('Bounds');
    await visitor.open(`#/team/${team.id}`);
    await page.locator('.member-button', { hasText: 'Ada' }).click();
    for (const [good, bad, word] of [['a'.repeat(4000), 'a'.repeat(4001), 'characters'], ['队'.repeat(2666), '队'.repeat(2667), 'bytes'], ['😀'.repeat(2000), '😀'.repeat(2001), 'bytes']]) {
      await page.locator('#composer-text').fill(bad);
      await page.locator('.field-error', { hasText: word }).waitFor();
      await page.locator('#composer-send').click();
      assert.equal(await page.locator('#composer-text').inputValue(), bad);
      await page.locator('#composer-text').fill(good);
      await page.locator('.field-error').waitFor({ state: 'detached' });
      const before = (await visitor.action('get', { team_id: team.id })).jobs.length;
      await page.locator('#composer-send').click();
      await visitor.until(async () => (await visitor.action('get', { team_id: team.id })).jobs.length === before + 1, 'the exact text is taken');
      await visitor.until(async () => (await page.locator('#composer-text').inputValue()) === '', 'the draft is gone');
      await page.locator('.member-button', { hasText: 'Ada' }).click();
    }
  },
};
