// Runs the checks in order and ends with one line; a failed one does not keep
// the others from running. Arguments: names of checks to run.
//
// BROWSER_TIMES=10 runs each as often, to find one that fails now and then;
// BROWSER_FAULTS=FOLDER keeps pictures of what failed.

import { readdir } from 'node:fs/promises';
import { launch, Server, Visitor } from './harness.mjs';

const wanted = process.argv.slice(2);
const times = Number(process.env.BROWSER_TIMES ?? 1);
const files = (await readdir(new URL('checks/', import.meta.url))).filter((name) => name.endsWith('.mjs')).sort();
const server = await Server.make();
const browser = await launch();
const first = await (await Visitor.come(browser, server)).signIn();
first.expectFailures = true;

/** A user may have twenty teams: those of one file go before the next. */
async function clear() {
  await first.page.goto(server.page());
  for (const { id } of (await first.action('list', {})).teams) {
    const { jobs } = await first.action('get', { team_id: id, limit: 200 });
    const ended = ['completed', 'failed', 'cancelled'];
    for (const job of jobs.filter((one) => !ended.includes(one.status))) await first.action('cancel', { team_id: id, job_id: job.id });
    await first.until(async () => !(await first.action('delete', { team_id: id })).code, 'a team is deleted');
  }
}

/** Runs one check; gives what went wrong, or nothing. */
async function run(title, check) {
  const began = Date.now();
  const opened = [];
  const come = async (options = {}) => {
    const visitor = await Visitor.come(browser, server, { from: first, ...options });
    opened.push(visitor);
    await visitor.page.goto(server.page());
    return visitor;
  };
  try {
    await check({ server, browser, come });
    for (const visitor of opened) await visitor.leave();
    console.log(`ok    ${title} (${Date.now() - began} ms)`);
    return true;
  } catch (error) {
    console.log(`FAIL  ${title}\n${error.stack ?? error}`);
    for (const [i, visitor] of opened.entries()) {
      if (visitor.faults.length) console.log(visitor.faults.join('\n'));
      if (process.env.BROWSER_FAULTS) await visitor.page.screenshot({ path: `${process.env.BROWSER_FAULTS}/${title.replaceAll(/\W+/g, '-')}-${i}.png` }).catch(() => {});
      await visitor.context.close().catch(() => {});
    }
    if (server.child.exitCode !== null || server.child.signalCode) await server.start();
    return false;
  }
}

let good = 0;
const bad = [];
try {
  for (const file of files) {
    const { checks } = await import(`./checks/${file}`);
    for (const [name, check] of Object.entries(checks)) {
      const title = `${file.replace('.mjs', '')} · ${name}`;
      if (wanted.length && !wanted.some((word) => title.includes(word))) continue;
      for (let n = 1; n <= times; n += 1) {
        if (await run(title, check)) good += 1;
        else bad.push(title);
        if (n < times) await clear();
      }
    }
    await clear();
  }
} finally {
  await browser.close();
  await server.end();
}
console.log(bad.length ? `${bad.length} of ${good + bad.length} browser checks failed: ${bad.join('; ')}` : `all ${good} browser checks passed`);
process.exitCode = bad.length || !good ? 1 : 0;
